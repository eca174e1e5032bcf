//! Sectors that the system cannot read.

use std::fs;

use sealift_desk::told;

use super::{protected, repaired};

#[test]
fn reads_that_fail_are_narrowed_down() {
    let desk = protected(10, &["r"]);
    fs::copy(desk.path("good.sealift"), desk.path("bad.sealift")).unwrap();
    let bad = desk.path("bad.sealift");
    // A read that fails is repeated in parts. Those fail as well, some of them to the end.
    for (number, when) in ["20", "20..21", "20..40", "30..90"].iter().enumerate() {
        let fail = format!("inject=pread64:error=EIO:when={when}");
        let options = ["-P", bad.to_str().unwrap(), "-e", "trace=pread64", "-e", &fail];
        let line = format!("repair {} --recovery r -o out-{number} --jobs 1 --json", bad.display());
        let Some(mut run) = desk.strace(&options, &line) else { return };
        let (status, said) = told(&mut run);
        assert_eq!(status, Some(0), "{when}: {said}");
        assert!(desk.read(&format!("out-{number}")) == desk.read("good.sealift"), "{when}: {said}");
        let lost = said.contains(r#""unreadable_bytes":0,"#);
        assert_eq!(lost, number < 2, "{when}: {said}");
    }
    let report = repaired(&desk, "--recovery r");
    assert_eq!(report["repaired_bytes"], 0, "{report}");
}
