#![no_main]

use libfuzzer_sys::fuzz_target;

// Header and geometry of a recovery file re-encode to the same bytes, and its codewords have each byte of the body once.
fuzz_target!(|data: &[u8]| sealift_tests::targets::recovery(data));
