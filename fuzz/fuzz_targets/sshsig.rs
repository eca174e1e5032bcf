#![no_main]

use libfuzzer_sys::fuzz_target;

// A signature has one spelling, and does not fit other bytes.
fuzz_target!(|data: &[u8]| sealift_tests::targets::sshsig(data));
