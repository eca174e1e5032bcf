#![no_main]

use libfuzzer_sys::fuzz_target;

// A byte difference that fits the lengths of a chunk and of its prefix makes a chunk of that length, or does not decode.
fuzz_target!(|data: &[u8]| sealift_tests::targets::suffix(data));
