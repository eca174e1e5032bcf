#![no_main]

use libfuzzer_sys::fuzz_target;

// A layout re-encodes to the same bytes, and places each object of its index once.
fuzz_target!(|data: &[u8]| sealift_tests::targets::layout(data));
