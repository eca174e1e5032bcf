#![no_main]

use libfuzzer_sys::fuzz_target;

// A layout encodes to what it was parsed from, and places each object of its index once.
fuzz_target!(|data: &[u8]| sealift_tests::targets::layout(data));
