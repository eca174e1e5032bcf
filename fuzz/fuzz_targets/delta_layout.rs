#![no_main]

use libfuzzer_sys::fuzz_target;

// A delta bundle's layout re-encodes to the same bytes, and what is stored for each object can be told.
fuzz_target!(|data: &[u8]| sealift_tests::targets::delta_layout(data));
