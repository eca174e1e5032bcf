#![no_main]

use libfuzzer_sys::fuzz_target;

// A profile's last line may end or not.
fuzz_target!(|data: &[u8]| sealift_tests::targets::order_profile(data));
