#![no_main]

use libfuzzer_sys::fuzz_target;

// A kernel signature has a single outer encoding, and does not verify for other bytes.
fuzz_target!(|data: &[u8]| sealift_tests::targets::kernel_signature(data));
