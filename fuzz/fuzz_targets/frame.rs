#![no_main]

use libfuzzer_sys::fuzz_target;

// A frame accepted by the header check is one frame of that length to zstd as well.
fuzz_target!(|data: &[u8]| sealift_tests::targets::frame(data));
