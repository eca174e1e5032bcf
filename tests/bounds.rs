//! What a bundle takes of memory is no more than its root declares, as `sealift info` prints it, for every verb: the program runs under a
//! limit of its address space, and ends well or with an error of its own.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use sealift_tests::bundle::{Attributes, Bundle, Packing};
use sealift_tests::ostree::{Grown, nested};
use sealift_tests::tree::dir;
use tempfile::TempDir;

/// What the program has whatever it reads: its code and libraries, their pages, and the stacks of its threads, of which pages that
/// nobody has touched count as well.
const ALLOWANCE: u64 = 96 << 20;

/// The program, as it is built for tests.
fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let built =
            Command::new(cargo).args(["build", "--quiet", "--locked", "-p", "sealift", "--bin", "sealift"]).status();
        assert!(built.expect("cargo runs").success(), "the program is built");
        let test = std::env::current_exe().expect("this test");
        test.ancestors().nth(2).expect("it lies in target/debug/deps").join("sealift")
    })
}

/// A folder with bundles in it.
struct Desk(TempDir);

impl Desk {
    fn new(bundles: Vec<(&str, Bundle)>) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for (name, bundle) in bundles {
            std::fs::write(folder.path().join(name), bundle.encode()).expect("it is written");
        }
        std::fs::create_dir(folder.path().join("empty")).expect("it is made");
        Self(folder)
    }

    fn command(&self, command: &mut Command) -> Output {
        let command = command.current_dir(self.0.path()).env("XDG_STATE_HOME", self.0.path().join("state"));
        // glibc reserves 64 MiB of addresses for each thread that allocates, and uses none of it.
        let command = command.env("MALLOC_ARENA_MAX", "1").env("RUST_BACKTRACE", "0");
        command.stdin(Stdio::null()).output().expect("it runs")
    }

    /// What a bundle declares.
    fn declared(&self, bundle: &str) -> u64 {
        let output = self.command(Command::new(program()).args(["info", "--json", bundle]));
        let text = String::from_utf8(output.stdout).expect("JSON");
        let rest = text.split("\"memory_bytes\":").nth(1).unwrap_or_else(|| panic!("{text}"));
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().expect("a number")
    }

    /// Runs a verb with no more addresses than the bundles in its arguments declare. It is to end with one of these statuses.
    fn run(&self, bundles: &[&str], arguments: &str, good: &[i32]) -> Vec<String> {
        let declared: u64 = bundles.iter().map(|bundle| self.declared(bundle)).sum();
        let limit = (declared + ALLOWANCE) >> 10;
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("ulimit -v {limit}; exec \"$@\" >out"), "sh"]);
        let output = self.command(shell.arg(program()).args(arguments.split(' ')));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let status = output.status.code();
        println!("{arguments}: {status:?} of {} MiB {said}", declared >> 20);
        match status {
            Some(status) if good.contains(&status) => Vec::new(),
            _ => vec![format!("sealift {arguments}: {status:?} within {} MiB\n{said}", declared >> 20)],
        }
    }

    /// Runs every verb that reads bundles on `one` and `other`.
    fn read(&self) {
        let unsigned = "--allow-unsigned";
        let mut failed = Vec::new();
        for arguments in ["info one", "ls one", "ls -l one", "ls --json one"] {
            failed.extend(self.run(&["one"], arguments, &[0]));
        }
        for arguments in ["verify one", "verify --deep one"] {
            failed.extend(self.run(&["one"], &format!("{arguments} {unsigned}"), &[0]));
        }
        for arguments in ["diff one other", "diff --json one other", "diff --exit-code one other"] {
            failed.extend(self.run(&["one", "other"], arguments, &[0, 1]));
        }
        failed.extend(self.run(&["one"], "diff one empty", &[0]));
        failed.extend(self.run(&["one"], &format!("cat one none {unsigned}"), &[2]));
        failed.extend(self.run(&["one"], &format!("unpack one to --path none {unsigned}"), &[2]));
        assert!(failed.is_empty(), "{}", failed.join("\n"));
    }

    /// Runs every verb that makes or compares a target.
    fn write(&self) {
        let unsigned = "--allow-unsigned";
        let mut failed = Vec::new();
        // What no file system takes is an error.
        let unpack = format!("unpack one target --durability none {unsigned}");
        failed.extend(self.run(&["one"], &unpack, &[0, 1, 2]));
        let update = format!("unpack other target --update --rehash --durability none {unsigned}");
        failed.extend(self.run(&["one", "other"], &update, &[0, 1, 2]));
        failed.extend(self.run(&["one", "other"], &format!("audit target {unsigned}"), &[0, 1, 2]));
        failed.extend(self.run(&["one", "other"], &format!("audit target other {unsigned}"), &[0, 1, 2]));
        failed.extend(self.run(&["one", "other"], "request target -o request --force", &[0, 1, 2]));
        let pack = format!("pack empty --base one -o delta --name test --bundle-version 2 {unsigned}");
        failed.extend(self.run(&["one"], &pack, &[0, 1, 2]));
        assert!(failed.is_empty(), "{}", failed.join("\n"));
        // What has directories deeper than a path may be is not removed by path alone.
        let _ = Command::new("rm").args(["-rf", "target", "to"]).current_dir(self.0.path()).status();
    }
}

fn empty() -> Bundle {
    Bundle::new(&[("main", dir([]))], Packing::default())
}

/// Named pipes of one directory.
fn wide(count: usize, letter: char) -> Bundle {
    let mut bundle = empty();
    let index = &mut bundle.index;
    index.names = (0..count).map(|number| format!("{letter}{number:07}").into_bytes()).collect();
    index.links = vec![0; count];
    index.rows = [&[0][..], &vec![1; count]].concat();
    index.mtimes = vec![0; count + 1];
    index.mtime_ns = vec![0; count + 1];
    index.children = vec![u32::try_from(count).expect("32 bits")];
    index.attributes.push(Attributes { mode: 0x11a4, ..Attributes::default() });
    bundle
}

/// A commit of which each directory has the next one twice.
fn doubling(levels: u32, names: [&[u8]; 2]) -> Bundle {
    let mut bundle = nested(usize::try_from(levels).expect("32 bits"), &names);
    let entries = (2 << u64::from(levels)) - 2;
    let ostree = bundle.index.ostree.as_mut().expect("it has a commit");
    ostree.grown = Grown { entries, inodes: entries + 1, depth: levels, objects: Vec::new() };
    bundle
}

#[test]
fn doubling_dirtrees() {
    Desk::new(vec![("one", doubling(9, [b"a", b"b"])), ("other", doubling(9, [b"c", b"d"]))]).read();
    Desk::new(vec![("one", doubling(7, [b"a", b"b"])), ("other", doubling(7, [b"c", b"d"]))]).write();
}

#[test]
fn more_entries_than_anybody_has_are_refused() {
    let desk = Desk::new(vec![("one", doubling(26, [b"a", b"b"]))]);
    for arguments in ["info one", "ls one", "verify one --allow-unsigned", "unpack one to --allow-unsigned"] {
        let output = desk.command(Command::new(program()).args(arguments.split(' ')));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{arguments}: {said}");
        assert!(said.contains("--limit entries=134217726"), "{said}");
    }
    // Where it is asked for, and there is no such memory, that is an error as well.
    let mut shell = Command::new("sh");
    shell.args(["-c", "ulimit -v 1000000; exec \"$@\"", "sh"]).arg(program());
    let output = desk.command(shell.args(["ls", "one", "--limit", "entries=1000000000"]));
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn limits_are_lowered_by_an_option() {
    let desk = Desk::new(vec![("one", wide(1000, 'a'))]);
    for (limit, status) in
        [("entries=1000", 0), ("entries=999", 1), ("depth=0", 1), ("memory=1M", 1), ("memory=1G,depth=1", 0)]
    {
        let output = desk.command(Command::new(program()).args(["ls", "one", "--limit", limit]));
        assert_eq!(output.status.code(), Some(status), "{limit}: {}", String::from_utf8_lossy(&output.stderr));
    }
}
