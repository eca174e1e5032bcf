#![no_main]

use libfuzzer_sys::fuzz_target;

// The same content has one index: the builder reproduces the bytes of a parsed index.
fuzz_target!(|data: &[u8]| sealift_tests::targets::index(data));
