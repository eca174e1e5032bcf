#![no_main]

use libfuzzer_sys::fuzz_target;

// What a repository holds has one encoding.
fuzz_target!(|data: &[u8]| sealift_tests::targets::ostree_object(data));
