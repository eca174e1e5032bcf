#![no_main]

use libfuzzer_sys::fuzz_target;

// Preamble, root and signature area encode to the bytes that they were parsed from.
fuzz_target!(|data: &[u8]| sealift_tests::targets::preamble_head(data));
