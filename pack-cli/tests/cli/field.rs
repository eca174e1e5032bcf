//! tests/field.sh with the program under test: ten months of updates from sticks, with runs that are killed. `SEED=N` plays other months.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

use sealift_desk::skipped;

#[test]
fn ten_months() {
    for program in ["ostree", "flatpak"] {
        if Command::new(program).arg("--version").stdout(Stdio::null()).status().is_err() {
            return skipped(&format!("needs {program} (Debian: {program})"));
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for name in ["bin", "field"] {
        std::fs::create_dir(at(name)).unwrap();
    }
    symlink(env!("CARGO_BIN_EXE_sealift"), at("bin/sealift")).unwrap();
    let seed = std::env::var("SEED").unwrap_or_else(|_| "1".to_owned());
    let mut script = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/field.sh"));
    script.arg(at("field")).arg(&seed);
    script.env("PATH", format!("{}:{}", at("bin").display(), std::env::var("PATH").unwrap()));
    script.env_remove("SOURCE_DATE_EPOCH").env_remove("SEALIFT_LOG").env_remove("XDG_DATA_HOME");
    let done = script.stdin(Stdio::null()).output().unwrap();
    let (said, complaint) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success(), "seed {seed}: {said}{complaint}");
    let kills = said.strip_prefix("field: ten months, ").and_then(|rest| rest.split(' ').next()?.parse::<u32>().ok());
    // On a fast machine, some runs end before they would be killed.
    assert!(kills.is_some_and(|kills| kills > 5), "{said}");
}
