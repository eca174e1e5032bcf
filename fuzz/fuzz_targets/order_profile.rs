#![no_main]

use libfuzzer_sys::fuzz_target;

// The last line of a profile may lack its newline.
fuzz_target!(|data: &[u8]| sealift_tests::targets::order_profile(data));
