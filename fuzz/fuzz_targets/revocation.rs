#![no_main]

use libfuzzer_sys::fuzz_target;

// A list is read the same way each time, and revokes no key that it does not name.
fuzz_target!(|data: &[u8]| sealift_tests::targets::revocation(data));
