#![no_main]

use libfuzzer_sys::fuzz_target;

// Parsing a list is deterministic, and it revokes only the keys that it names.
fuzz_target!(|data: &[u8]| sealift_tests::targets::revocation(data));
