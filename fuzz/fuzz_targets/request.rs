#![no_main]

use libfuzzer_sys::fuzz_target;

// A request re-encodes to an equivalent one, and completing it gives an index of the stated length.
fuzz_target!(|data: &[u8]| sealift_tests::targets::request(data));
