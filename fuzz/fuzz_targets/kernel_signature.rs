#![no_main]

use libfuzzer_sys::fuzz_target;

// A signature for the kernel has one outermost layer, and does not fit other bytes.
fuzz_target!(|data: &[u8]| sealift_tests::targets::kernel_signature(data));
