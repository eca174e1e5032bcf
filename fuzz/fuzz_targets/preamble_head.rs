#![no_main]

use libfuzzer_sys::fuzz_target;

// Preamble, root and signature area re-encode to the same bytes.
fuzz_target!(|data: &[u8]| sealift_tests::targets::preamble_head(data));
