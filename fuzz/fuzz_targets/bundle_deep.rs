#![no_main]

use libfuzzer_sys::fuzz_target;

// With any valid index and layout, arbitrary chunks are read to the end or rejected with a content error.
fuzz_target!(|data: &[u8]| sealift_tests::targets::bundle_deep(data));
