//! Names that are not plain ASCII: every verb that expects a path accepts what `ls` and `ls --json` print.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;

use sealift_desk::{program, said};

use crate::installed::Installed;

/// Names, with the output of `ls` and of `ls --json`.
const NAMES: [(&[u8], &str, &str); 8] = [
    (b"plain", "plain", "plain"),
    ("gr\u{fc}n \u{4e2d}".as_bytes(), "gr\u{fc}n \u{4e2d}", "gr\u{fc}n \u{4e2d}"),
    (b"latin-\xfc", "latin-\\xfc", "latin-%FC"),
    (b"new\nline", "new\\nline", "new%0Aline"),
    (b"\x1b]0;title\x07", "\\u{1b}]0;title\\u{7}", "%1B]0;title%07"),
    (b"back\\slash", "back\\\\slash", "back\\slash"),
    (b"100%", "100%", "100%25"),
    ("c1-\u{85}".as_bytes(), "c1-\\u{85}", "c1-%C2%85"),
];

fn tree() -> Installed {
    let desk = Installed::new();
    for (number, (name, ..)) in NAMES.iter().enumerate() {
        let directory = desk.path("tree").join(OsStr::from_bytes(name));
        fs::create_dir(&directory).unwrap();
        fs::write(directory.join(OsStr::from_bytes(name)), number.to_string()).unwrap();
    }
    desk.pack(1);
    desk
}

#[test]
fn every_verb_takes_what_a_list_prints() {
    let desk = tree();
    let done = |line: &[&str]| {
        let done = desk.command_of(program()).args(line).output().unwrap();
        (done.status.code(), String::from_utf8(done.stdout.clone()).unwrap(), said(&done))
    };
    let listed = done(&["ls", "1.sealift"]).1;
    let json = done(&["ls", "1.sealift", "--json"]).1;
    let paths: Vec<String> = json
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["path"].as_str().unwrap().to_owned())
        .collect();
    desk.unpack(1, "whole");
    for (number, (name, text, in_json)) in NAMES.iter().enumerate() {
        let [text, in_json] = [text, in_json].map(|shown| format!("{shown}/{shown}"));
        assert!(listed.lines().any(|line| line == text), "{text}: {listed}");
        assert!(paths.contains(&in_json), "{in_json}: {paths:?}");
        for (form, shown) in [&text, &in_json].into_iter().enumerate() {
            let (status, content, errors) = done(&["cat", "1.sealift", shown, "--allow-unsigned"]);
            assert_eq!((status, content), (Some(0), number.to_string()), "{shown}: {errors}");
            assert_eq!(done(&["ls", "1.sealift", shown]).1, format!("{text}\n"), "{shown}");

            let target = format!("target-{number}-{form}");
            for again in [&[][..], &["--update"]] {
                let line = ["unpack", "1.sealift", &target, "--path", shown, "--allow-unsigned"];
                let (status, _, errors) = done(&[&line[..], again].concat());
                assert_eq!(status, Some(0), "{shown}: {errors}");
            }
            let file = desk.path(&target).join(OsStr::from_bytes(name)).join(OsStr::from_bytes(name));
            assert_eq!(fs::read(&file).unwrap(), number.to_string().as_bytes());

            for line in [
                &["diff", "1.sealift", "whole", "--path", shown, "--exit-code", "--ignore", "metadata"][..],
                &["audit", "whole", "--path", shown, "--allow-unsigned"],
            ] {
                let (status, out, errors) = done(line);
                assert_eq!(status, Some(0), "{line:?}: {out}{errors}");
            }
        }
    }
    let (status, _, errors) = done(&["cat", "1.sealift", "gr\u{fc}n/no", "--allow-unsigned"]);
    assert!(status == Some(2) && errors.contains("the bundle has no file gr\u{fc}n/no"), "{errors}");
}

/// No file is mistaken for another: a path that could mean two is refused, and each of these has an unambiguous form.
#[test]
fn a_path_that_could_mean_two_files_is_refused() {
    let desk = tree();
    desk.write("tree/50%", "half");
    desk.write("tree/50%25", "another");
    desk.pack(2);
    for line in ["cat 2.sealift 50%25", "unpack 2.sealift new --path 50%25", "diff 2.sealift tree --path 50%25"] {
        let trust = if line.starts_with("diff") { "" } else { " --allow-unsigned" };
        let done = desk.command(&format!("{line}{trust}")).output().unwrap();
        assert!(
            done.status.code() == Some(2) && said(&done).contains("could mean the file"),
            "{line}: {}",
            said(&done)
        );
    }
    for (path, content) in [("50%2525", "another"), ("50%", "half")] {
        let done = desk.command(&format!("cat 2.sealift {path} --allow-unsigned")).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&done.stdout), content, "{path}: {}", said(&done));
    }
}
