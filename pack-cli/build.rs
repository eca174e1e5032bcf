//! Tells the program when it was built: no clock that is earlier can be right (spec 9).

use std::time::{SystemTime, UNIX_EPOCH};

fn main() {
    println!("cargo:rerun-if-env-changed=SOURCE_DATE_EPOCH");
    println!("cargo:rerun-if-changed=src");
    let clock = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    // Whoever builds reproducibly says when, and a slip there would leave devices without this floor.
    let seconds = match std::env::var("SOURCE_DATE_EPOCH") {
        Ok(text) => text.parse().expect("SOURCE_DATE_EPOCH is a number of seconds"),
        Err(_) => clock(),
    };
    println!("cargo:rustc-env=SEALIFT_BUILD_TIME={seconds}");
}
