//! The command line's cases: each file in tests/cmd is a session with output and exit status, of a program with all features; those in
//! tests/cmd/plain are of a program without features. After a change of wording, `TRYCMD=overwrite cargo tests --test cli` rewrites them, and `git
//! diff` shows the changes.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use sealift_desk::{Desk, noise, out, program, skipped};

#[test]
fn cases() {
    let cases = trycmd::TestCases::new();
    cases.env("SOURCE_DATE_EPOCH", "1700000000").env("HOME", "/nonexistent").env("XDG_CONFIG_HOME", "/nonexistent");
    cases.env("SEALIFT_STATE", "/nonexistent");
    if cfg!(all(feature = "composefs", feature = "portal")) {
        cases.case("tests/cmd/*.md");
    } else {
        // `cargo xtask big plain` runs these.
        cases.case("tests/cmd/plain/*.md");
        skipped("needs composefs and the page: run cargo tests, and not cargo test");
    }
}

/// Returns a desk with a tree and its bundle.
fn packed(fill: impl FnOnce(&Path)) -> Desk {
    let desk = Desk::new();
    let tree = desk.path("tree");
    fs::create_dir(&tree).expect("a new folder");
    fill(&tree);
    desk.good("pack tree -o b.sealift --quiet");
    desk
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let desk = packed(|tree| {
        // The output exceeds the capacity of a pipe.
        for number in 0..3000 {
            File::create(tree.join(format!("a-name-of-some-length-so-that-they-are-many-bytes-{number}")))
                .expect("a new file");
        }
    });
    for arguments in [["ls", "b.sealift", "--long"], ["ls", "b.sealift", "--json"], ["ls", "b.sealift", "-0"]] {
        let mut child = desk.command("").args(arguments).spawn().expect("sealift runs");
        let stdout = child.stdout.take().expect("it is piped");
        BufReader::with_capacity(64, stdout).read_until(b'a', &mut Vec::new()).expect("some output");
        let done = child.wait_with_output().expect("it ends");
        assert_eq!((done.status.code(), &done.stderr[..]), (Some(0), &b""[..]), "{arguments:?}");
    }
}

#[test]
fn names_are_escaped_unless_a_program_asks() {
    let name = b"red\x1b[31m \xff\n\\\xe2\x80\xae";
    let desk = packed(|tree| {
        File::create(tree.join(std::ffi::OsStr::from_bytes(name))).expect("a new file");
    });
    let ls = |flag: &str| desk.command("").args(["ls", "b.sealift", flag]).output().expect("sealift runs").stdout;
    assert_eq!(ls("--null"), [&name[..], b"\0"].concat());
    assert_eq!(&ls("--long")[..3], b"-rw");
    let plain = desk.command("ls b.sealift").output().expect("sealift runs").stdout;
    assert_eq!(String::from_utf8_lossy(&plain), "red\\u{1b}[31m \\xff\\n\\\\\\u{202e}\n");
    let json = String::from_utf8(ls("--json")).expect("JSON is UTF-8");
    let (root, entry) = json.split_once('\n').expect("a line for the root, and one for the file");
    assert!(root.starts_with(r#"{"ref":"main","path":".","type":"dir","mode":"#), "{root}");
    assert!(
        entry.starts_with("{\"ref\":\"main\",\"path\":\"red%1B[31m %FF%0A\\\\%E2%80%AE\",\"type\":\"file\",\"mode\":"),
        "{entry}"
    );
}

#[test]
fn a_name_is_found_as_it_is_listed() {
    let desk = packed(|tree| {
        fs::write(tree.join("two\nlines"), "escaped").expect("a new file");
        fs::write(tree.join("b\\ck"), "backslash").expect("a new file");
        fs::write(tree.join("t\\tab"), "exact").expect("a new file");
        fs::write(tree.join("t\tab"), "tabulator").expect("a new file");
        fs::write(tree.join(std::ffi::OsStr::from_bytes(b"\xff")), "no UTF-8").expect("a new file");
    });
    let run = |arguments: &[&str]| {
        let done = desk.command("").args(arguments).output().expect("sealift runs");
        (done.status.code(), String::from_utf8(done.stdout).expect("text"))
    };
    let cat = |name: &str| run(&["cat", "b.sealift", name, "--allow-unsigned"]);
    let listed = desk.command("ls b.sealift").output().expect("sealift runs").stdout;
    let listed = String::from_utf8(listed).expect("text");
    for (name, content) in
        [("two\\nlines", "escaped"), ("b\\\\ck", "backslash"), ("t\\\\tab", "exact"), ("\\xff", "no UTF-8")]
    {
        assert!(listed.lines().any(|line| line == name), "{name} in {listed}");
        assert_eq!(cat(name), (Some(0), content.to_owned()), "{name}");
    }
    // A name that could mean two files is refused; each of the two has another form.
    assert_eq!(cat("two\nlines").1, "escaped");
    assert_eq!(cat("t\\tab").0, Some(2));
    assert_eq!(cat("t\tab").1, "tabulator");
    assert_eq!(cat("t%09ab").1, "tabulator");
    assert_eq!(cat("b\\qck").0, Some(2));
    let line = desk.command("").args(["ls", "b.sealift", "two\\nlines"]).output().expect("sealift runs");
    assert_eq!(String::from_utf8_lossy(&line.stdout), "two\\nlines\n");
}

#[test]
fn names_are_escaped_in_differences() {
    let desk = packed(|tree| {
        File::create(tree.join(std::ffi::OsStr::from_bytes(b"red\x1b[31m \xff"))).expect("a new file");
    });
    fs::create_dir(desk.path("empty")).expect("a new folder");
    let diff = |flag: &str| {
        let arguments = ["diff", "b.sealift", "empty", "--ignore", "metadata", flag];
        String::from_utf8(desk.command("").args(arguments).output().expect("sealift runs").stdout).expect("text")
    };
    assert_eq!(diff("--exit-code").lines().next(), Some("D  0 bytes  red\\u{1b}[31m \\xff"));
    assert!(diff("--json").contains(r#""entries":[{"kind":"removed","path":"red%1B[31m %FF","old":{"type":"file""#));
}

#[test]
fn a_bundle_comes_through_pipes() {
    let desk = packed(|tree| fs::write(tree.join("file"), "content").expect("a new file"));
    for arguments in [
        &["verify", "-"][..],
        &["info", "-"],
        &["ls", "-"],
        &["unpack", "-", "out"],
        &["cat", "-", "file"],
        &["diff", "-", "tree"],
        &["audit", "out", "-"],
    ] {
        let trust: &[&str] = match arguments[0] {
            "ls" | "diff" => &[],
            "info" => &["--state", "state"],
            _ => &["--allow-unsigned", "--state", "state"],
        };
        let done = desk
            .command("")
            .args(arguments)
            .args(trust)
            .stdin(File::open(desk.path("b.sealift")).expect("it was packed"))
            .output()
            .expect("sealift runs");
        assert!(done.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
        if arguments[0] == "cat" {
            assert_eq!(done.stdout, b"content");
        }
    }
    assert_eq!(fs::read(desk.path("out/file")).expect("it was unpacked"), b"content");
}

#[test]
fn what_the_head_says_is_shown_of_a_damaged_bundle() {
    let desk = packed(|tree| fs::write(tree.join("file"), "content").expect("a new file"));
    let info = |bundle: &str, json: bool| {
        let mut command = desk.command("");
        command.args(["info", bundle]).args(json.then_some("--json"));
        command.stdin(File::open(desk.path("damaged.sealift")).expect("it was written"));
        let done = command.output().expect("sealift runs");
        let text = |bytes| String::from_utf8(bytes).expect("text");
        (done.status.code(), text(done.stdout), text(done.stderr))
    };
    let sound = fs::read(desk.path("b.sealift")).expect("it was packed");
    fs::write(desk.path("damaged.sealift"), &sound).expect("a new file");
    let (status, facts, said) = info("damaged.sealift", false);
    assert!(
        status == Some(0) && said.is_empty() && facts.contains("\n  Refs          1\n                main\n"),
        "{facts}"
    );
    let json: serde_json::Value = serde_json::from_str(&info("-", true).1).expect("JSON");
    assert_eq!(json["refs"], serde_json::json!([{"name": "main", "kind": "tree"}]));
    let number =
        |field: &str| usize::try_from(json["contents"][field].as_u64().expect("a number")).expect("a small number");
    let (layout, index) = (number("head_bytes"), number("head_bytes") + number("layout_bytes"));
    let flipped = |at: usize| {
        let mut bytes = sound.clone();
        bytes[at] ^= 1;
        bytes
    };
    for damaged in [flipped(layout), flipped(index), sound[..index].to_vec(), sound[..layout].to_vec()] {
        fs::write(desk.path("damaged.sealift"), damaged).expect("a new file");
        for bundle in ["damaged.sealift", "-"] {
            let (status, facts, said) = info(bundle, false);
            assert_eq!(status, Some(1), "{said}");
            assert!(facts.contains("Name          b\n") && facts.contains("their names cannot be read\n"), "{facts}");
            let name = if bundle == "-" { "standard input" } else { bundle };
            assert!(said.starts_with(&format!("sealift: {name}: ")), "{said}");
            let (status, facts, said) = info(bundle, true);
            let json: serde_json::Value = serde_json::from_str(&facts).expect("JSON");
            assert!(status == Some(1) && json["refs"].is_null() && json["identity"]["name"] == "b", "{facts}");
            assert!(said.starts_with("{\"error\":{\"kind\":"), "{said}");
        }
    }
}

#[test]
fn equal_trees_make_equal_bundles() {
    let desk = packed(|tree| fs::write(tree.join("file"), "content").expect("a new file"));
    let out = desk.command("").args(["pack", "tree", "-o", "-", "--name", "b"]).output().expect("sealift runs");
    let b = fs::read(desk.path("b.sealift")).expect("it was packed");
    // Only the head of a file is padded to the end of a block.
    assert!(out.status.success() && out.stdout.starts_with(&b[..8]));
    let again = desk.command("").args(["pack", "tree", "-o", "c.sealift", "--name", "b", "-q", "-j1"]).output();
    assert!(again.expect("sealift runs").status.success());
    assert_eq!(b, fs::read(desk.path("c.sealift")).expect("it was packed"));
}

/// The same for every user: root takes no folder other than this from the environment.
#[test]
fn the_environment_names_the_state() {
    let desk = Desk::new();
    let state_of = |line: &str| {
        let report = out(desk.command(line).env("SEALIFT_STATE", "/named"));
        let report: serde_json::Value = serde_json::from_str(&report).expect("JSON");
        report["state"].as_str().expect("a path").to_owned()
    };
    assert_eq!(state_of("trust list --json"), "/named");
    assert_eq!(state_of("trust list --json --state /given"), "/given");
}

/// Runs `line` on a terminal of its own, and returns what the terminal shows.
fn on_a_terminal(desk: &Desk, line: &str) -> String {
    let line = format!("{} {line}", program());
    out(desk.command_of("script").args(["-qec", &line, "/dev/null"]).env("TERM", "xterm"))
}

#[test]
fn a_terminal_has_a_bar_until_the_work_ends() {
    let desk = packed(|tree| {
        fs::write(tree.join("file"), noise(1, 24_000_000)).expect("a new file");
    });
    let shown = on_a_terminal(&desk, "pack tree -o c.sealift --bundle-version 1 --level 22 --jobs 1");
    assert!(shown.contains("Packing") && shown.contains(" of 24.0 MB"), "{shown:?}");
    let (bar, summary) =
        shown.rsplit_once("\x1b[2K").or_else(|| shown.rsplit_once("\r")).expect("the bar is taken away");
    assert!(!summary.contains("Packing") && bar.contains("Packing"), "{shown:?}");
    let quiet = on_a_terminal(&desk, "pack tree -o d.sealift --bundle-version 1 --level 22 --jobs 1 --progress none");
    assert!(!quiet.contains("Packing"), "{quiet:?}");
}

#[test]
fn a_dry_run_of_pack_tells_the_size_and_writes_nothing() {
    // 60 chunks: more than the dry run samples.
    let desk = packed(|tree| {
        for file in 0..120_u32 {
            let noise = |at: u32| (at.wrapping_mul(2_654_435_761) >> (file % 7)).to_le_bytes()[0];
            let content: Vec<u8> = (0..40_000).map(|at| noise(at + file * 40_000)).collect();
            fs::write(tree.join(format!("file-{file}")), content).expect("a new file");
        }
    });
    let line = "pack tree -o c.sealift --name b --chunk-size 64KiB";
    let expected = desk.json(&format!("{line} --dry-run --json"));
    assert!(!desk.path("c.sealift").exists());
    let packed = desk.json(&format!("{line} --json"));
    fs::remove_file(desk.path("c.sealift")).expect("it was packed");
    let near = |what: &str, by: f64| {
        let (expected, found) = (expected[what].as_f64().expect(what), packed[what].as_f64().expect(what));
        assert!((expected / found - 1.0).abs() <= by, "{what}: {expected} and {found}");
    };
    near("file_bytes", 0.2);
    near("chunks", 0.5);
    near("logical_bytes", 0.0);
    assert_eq!(expected["dry_run"], true);
    assert!(expected["seconds"].as_f64().is_some_and(|seconds| seconds > 0.0));
    assert!(expected["sampled_bytes"].as_u64() < expected["logical_bytes"].as_u64());
    assert_eq!(desk.names(""), ["b.sealift", "tree"]);
}

#[test]
fn an_update_says_why_it_hashed() {
    let desk = packed(|tree| fs::write(tree.join("file"), "content").expect("a new file"));
    let update = "unpack b.sealift target --allow-unsigned --update";
    let run = |options: &str| desk.out(&format!("{update}{options}"));
    assert!(!run("").contains("hashed"));
    assert!(run(" --rehash").contains("  hashed 1 file\n"));
    fs::remove_dir_all(desk.path(".target.sealift-state")).expect("it is ours");
    assert!(run(" --adopt --yes --assume-mtime").contains("hashed 0 files, trusted size and time of the others"));
    fs::remove_dir_all(desk.path(".target.sealift-state")).expect("it is ours");
    assert!(run(" --adopt --yes").contains("hashed its 1 file"));
}

#[test]
fn an_audit_of_a_part_names_it() {
    let desk = packed(|tree| {
        fs::create_dir(tree.join("etc")).expect("a new folder");
        fs::write(tree.join("etc/file"), "content").expect("a new file");
    });
    desk.out("unpack b.sealift target --allow-unsigned --path etc");
    let audit = "audit target --allow-unsigned --ignore privileged";
    assert!(desk.out(audit).starts_with("target: sound, b version 0 at etc, UNSIGNED\n"));
    assert!(desk.out(&format!("{audit} --json")).contains(r#""path":"etc","#));
}
