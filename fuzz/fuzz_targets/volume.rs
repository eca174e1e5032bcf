#![no_main]

use libfuzzer_sys::fuzz_target;

// A volume's header re-encodes to its bytes, and what a bundle is split into is the bundle without a gap.
fuzz_target!(|data: &[u8]| sealift_tests::targets::volume(data));
