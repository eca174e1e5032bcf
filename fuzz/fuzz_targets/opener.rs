#![no_main]

use libfuzzer_sys::fuzz_target;

// The sizes of reads do not affect the result.
fuzz_target!(|data: &[u8]| sealift_tests::targets::opener(data));
