#![no_main]

use libfuzzer_sys::fuzz_target;

// OSTree objects have a single encoding.
fuzz_target!(|data: &[u8]| sealift_tests::targets::ostree_object(data));
