//! Embeds the build time in the library: a clock that is earlier is wrong (trust 2).

use std::env;
use std::time::{SystemTime, UNIX_EPOCH};

fn main() {
    println!("cargo:rerun-if-env-changed=SOURCE_DATE_EPOCH");
    // During development an earlier build time is as valid a floor, and keeping it avoids recompilation.
    let sources = if env::var("PROFILE").as_deref() == Ok("release") { "src" } else { "build.rs" };
    println!("cargo:rerun-if-changed={sources}");
    let clock = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    // A reproducible build sets the time. A malformed one fails the build, so that devices never lack this floor.
    let seconds = match env::var("SOURCE_DATE_EPOCH") {
        Ok(text) => text.parse().expect("SOURCE_DATE_EPOCH is a number of seconds"),
        Err(_) => clock(),
    };
    println!("cargo:rustc-env=SEALIFT_BUILD_TIME={seconds}");
}
