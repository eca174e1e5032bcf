#![no_main]

use libfuzzer_sys::fuzz_target;

// A difference re-encodes to the same bytes, can be listed completely, and the result of applying it is bounded by the base and the difference.
fuzz_target!(|data: &[u8]| sealift_tests::targets::difference(data));
