//! The man pages: every verb has one, and man reports no problem in them.

use std::fs;
use std::path::Path;
use std::process::Command;

fn sealift(arguments: &[&str]) -> String {
    let done = Command::new(env!("CARGO_BIN_EXE_sealift")).args(arguments).output().expect("sealift runs");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).expect("UTF-8")
}

/// A folder with the pages.
fn manual() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    sealift(&["manual", folder.path().to_str().expect("a path of ours")]);
    folder
}

fn headings(page: &str) -> Vec<&str> {
    page.lines().filter_map(|line| line.strip_prefix(".SH ")).map(|heading| heading.trim_matches('"')).collect()
}

fn read(folder: &Path, name: &str) -> String {
    fs::read_to_string(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[test]
fn every_verb_has_a_page() {
    let (folder, help) = (manual(), sealift(&["--help"]));
    let (verbs, _) = help.split_once("\nOptions\n").expect("the options");
    let verbs = verbs.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    for verb in verbs.filter(|verb| verb.starts_with(|first: char| first.is_ascii_lowercase())) {
        let page = read(folder.path(), &format!("sealift-{verb}.1"));
        let about = sealift(&[verb, "--help"]).lines().next().expect("what the verb does").to_owned();
        assert!(page.replace("\\-", "-").replace("\\*(Aq", "'").contains(&about), "{verb}: {about}");
        let headings = headings(&page);
        assert_eq!(headings[..4], ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS"], "{verb}");
        assert!(headings.contains(&"EXIT STATUS") && headings.last() == Some(&"SEE ALSO"), "{verb}: {headings:?}");
    }
    assert!(!folder.path().join("sealift-manual.1").exists());
    // Verbs that this program was built without have no page, and no page refers to them.
    let page = read(folder.path(), "sealift.1");
    let is_there = cfg!(feature = "portal");
    assert_eq!(folder.path().join("sealift-portal.1").exists(), is_there);
    assert_eq!(page.contains("sealift\\-portal"), is_there);
}

#[test]
fn pages_say_what_belongs_to_their_verb() {
    let folder = manual();
    let expected = [
        ("sealift.1", "VERBS, LIMITS, PROGRESS, EXIT STATUS, ENVIRONMENT, FILES, EXAMPLES, SEE ALSO"),
        ("sealift-pack.1", "EXIT STATUS, ENVIRONMENT, FILES, EXAMPLES, SEE ALSO"),
        ("sealift-verify.1", "EXIT STATUS, ENVIRONMENT, FILES, EXAMPLES, SEE ALSO"),
        ("sealift-ls.1", "EXIT STATUS, ENVIRONMENT, FILES, EXAMPLES, SEE ALSO"),
        ("sealift-split.1", "EXIT STATUS, EXAMPLES, SEE ALSO"),
        ("sealift-trust.1", "VERBS, EXIT STATUS, SEE ALSO"),
        ("sealift-trust-add.1", "EXIT STATUS, ENVIRONMENT, FILES, EXAMPLES, SEE ALSO"),
        ("sealift-trust-reset.1", "EXIT STATUS, ENVIRONMENT, FILES, EXAMPLES, SEE ALSO"),
    ];
    for (name, sections) in expected {
        assert_eq!(headings(&read(folder.path(), name))[4..].join(", "), sections, "{name}");
    }
}

#[test]
fn man_finds_nothing_wrong() {
    let folder = manual();
    let pages = fs::read_dir(folder.path()).expect("it is there");
    for page in pages.map(|page| page.expect("a page").path()) {
        let man = Command::new("man").args(["--warnings=w", "-l"]).arg(&page).env("MANWIDTH", "80").output();
        let done = man.expect("man runs");
        let complaints = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success() && complaints.is_empty(), "{}: {complaints}", page.display());
        assert!(done.stdout.len() > 500, "{} is nearly empty", page.display());
    }
}

#[test]
fn the_page_of_the_plugin_has_what_its_help_has() {
    let folder = manual();
    let page = read(folder.path(), "nbdkit-sealift-plugin.1").replace("\\-", "-");
    let expected = "NAME, SYNOPSIS, DESCRIPTION, PARAMETERS, EXAMPLES, ENVIRONMENT, FILES, SEE ALSO";
    assert_eq!(headings(&page).join(", "), expected);
    let (_, parameters) = page.split_once(".SH PARAMETERS").expect("it has them");
    let (parameters, _) = parameters.split_once(".SH EXAMPLES").expect("examples follow");
    let names = |text: &str, start: &str, end: char| -> Vec<String> {
        let lines = text.lines().filter_map(|line| line.strip_prefix(start)?.split_once(end));
        lines.map(|(name, _)| name.trim_start_matches('[').to_owned()).collect()
    };
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../nbdkit/src/parameters.rs");
    let source = fs::read_to_string(source).expect("the plugin is there");
    let (_, help) = source.split_once("c\"\\\n").expect("it has a help");
    let (help, _) = help.split_once("\";").expect("it ends");
    let of_help = names(help, "", '=');
    assert_eq!(names(parameters, "\\fB", '='), of_help);
    assert!(of_help.len() > 10, "{of_help:?}");
}

/// As the help says: the program is where `cargo install` puts it, and the pages are where man looks for those of programs in PATH.
#[test]
fn man_finds_the_pages_beside_an_installed_program() {
    let root = tempfile::tempdir().expect("a temporary folder");
    let bin = root.path().join("bin");
    fs::create_dir(&bin).expect("a new folder");
    // By another process: what another thread of this one starts meanwhile would hold it open for writing.
    let copied = Command::new("cp").args([env!("CARGO_BIN_EXE_sealift")]).arg(&bin).status();
    assert!(copied.expect("cp runs").success());
    let pages = root.path().join("share/man/man1");
    let done = Command::new(bin.join("sealift")).arg("manual").arg(&pages).output().expect("it is installed");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    // man finds ../share/man beside each folder of PATH.
    let path = format!("{}:/usr/bin:/bin", bin.display());
    for page in ["sealift", "sealift-unpack", "sealift-trust-add"] {
        let man = Command::new("man").args(["--where", page]).env("PATH", &path).env_remove("MANPATH").output();
        let done = man.expect("man runs");
        let found = String::from_utf8_lossy(&done.stdout);
        assert_eq!(found.trim(), pages.join(format!("{page}.1")).to_string_lossy(), "{done:?}");
    }
}
