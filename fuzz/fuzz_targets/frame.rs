#![no_main]

use libfuzzer_sys::fuzz_target;

// What the check of a frame's headers takes is one frame of that length to zstd as well.
fuzz_target!(|data: &[u8]| sealift_tests::targets::frame(data));
