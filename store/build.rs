//! Tells the library when it was built: no clock that is earlier can be right (spec 9).

use std::env;
use std::time::{SystemTime, UNIX_EPOCH};

fn main() {
    println!("cargo:rerun-if-env-changed=SOURCE_DATE_EPOCH");
    // While somebody works on the program, the moment of an earlier build does: it is as true a floor, and compiles nothing again.
    let sources = if env::var("PROFILE").as_deref() == Ok("release") { "src" } else { "build.rs" };
    println!("cargo:rerun-if-changed={sources}");
    let clock = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    // Whoever builds reproducibly says when, and a slip there would leave devices without this floor.
    let seconds = match env::var("SOURCE_DATE_EPOCH") {
        Ok(text) => text.parse().expect("SOURCE_DATE_EPOCH is a number of seconds"),
        Err(_) => clock(),
    };
    println!("cargo:rustc-env=SEALIFT_BUILD_TIME={seconds}");
}
