#![no_main]

use libfuzzer_sys::fuzz_target;

// Anything may lie behind the file system of an image.
fuzz_target!(|data: &[u8]| sealift_tests::targets::dm_verity(data));
