#![no_main]

use libfuzzer_sys::fuzz_target;

// A channel's list re-encodes to itself.
fuzz_target!(|data: &[u8]| sealift_tests::targets::channel(data));
