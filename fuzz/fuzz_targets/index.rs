#![no_main]

use libfuzzer_sys::fuzz_target;

// One content has one index: what the builder makes of a parsed index are its bytes.
fuzz_target!(|data: &[u8]| sealift_tests::targets::index(data));
