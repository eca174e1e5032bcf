#![no_main]

use libfuzzer_sys::fuzz_target;

// The portions in which a file is read do not matter.
fuzz_target!(|data: &[u8]| sealift_tests::targets::opener(data));
