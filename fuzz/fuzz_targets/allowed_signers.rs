#![no_main]

use libfuzzer_sys::fuzz_target;

// Comments change nothing, and a key that is not listed is not trusted.
fuzz_target!(|data: &[u8]| sealift_tests::targets::allowed_signers(data));
