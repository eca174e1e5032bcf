#![no_main]

use libfuzzer_sys::fuzz_target;

// A byte difference that matches the lengths of a chunk and its prefix either makes a chunk of that length, or fails to decode.
fuzz_target!(|data: &[u8]| sealift_tests::targets::suffix(data));
