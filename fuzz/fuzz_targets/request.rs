#![no_main]

use libfuzzer_sys::fuzz_target;

// A request encodes to what says the same, and what it is completed to is an index of the length that it says.
fuzz_target!(|data: &[u8]| sealift_tests::targets::request(data));
