#![no_main]

use libfuzzer_sys::fuzz_target;

// A signature has a single encoding, and does not verify for other bytes.
fuzz_target!(|data: &[u8]| sealift_tests::targets::sshsig(data));
