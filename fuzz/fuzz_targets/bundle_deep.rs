#![no_main]

use libfuzzer_sys::fuzz_target;

// Around any sound index and layout, any chunks are read to the end or refused under the content's words.
fuzz_target!(|data: &[u8]| sealift_tests::targets::bundle_deep(data));
