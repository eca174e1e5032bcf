#![no_main]

use libfuzzer_sys::fuzz_target;

// A difference encodes to the bytes that it was parsed from, all of it can be listed, and what it makes of a base is bounded by the two.
fuzz_target!(|data: &[u8]| sealift_tests::targets::difference(data));
