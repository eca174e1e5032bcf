#![no_main]

use libfuzzer_sys::fuzz_target;

// A container that lies is refused, in bounded time and memory.
fuzz_target!(|data: &[u8]| sealift_tests::targets::container(data));
