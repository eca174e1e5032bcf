//! The memory for a bundle never exceeds what its root declares, as `sealift info` prints it, for any command: the program runs with a limited
//! address space, and must succeed or exit with a regular error.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use sealift_desk::{folder_in_memory, noise};
use sealift_tests::bundle::{Bundle, Packing};
use sealift_tests::large::{
    self, deep, directories, doubling, files, hard_links, one_of_xattrs, pipes, symlinks, xattrs,
};
use sealift_tests::ostree::{Commit, deep_parent, dictionary, long_history};
use sealift_tests::tree::dir;
use tempfile::TempDir;

/// A thread's stack and guard page.
const STACK: u64 = 3 << 20;

/// Returns the program, built for tests.
fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        // Uses the same features and environment as the tests of the command line: otherwise the program would be compiled again, and also if build
        // scripts saw cargo's variables for this package.
        let mut build = Command::new(cargo);
        let of_package = |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
        std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(of_package)).for_each(|(name, _)| {
            build.env_remove(name);
        });
        let built = build.args(["tests", "--quiet", "--no-run", "--test", "cli"]).status();
        assert!(built.expect("cargo runs").success(), "the program is built");
        let test = std::env::current_exe().expect("this test");
        test.ancestors().nth(2).expect("it lies in target/debug/deps").join("sealift")
    })
}

/// Returns the least address space in which the program starts: its code and libraries, of which most pages are never touched.
fn own_map() -> u64 {
    static FOUND: OnceLock<u64> = OnceLock::new();
    *FOUND.get_or_init(|| {
        let starts = |mebibytes: &u64| {
            let mut shell = Command::new("sh");
            shell.args(["-c", &format!("ulimit -v {}; exec \"$0\" --version", mebibytes << 10)]).arg(program());
            shell.env("MALLOC_ARENA_MAX", "1").output().expect("it runs").status.success()
        };
        (1..200).find(starts).expect("the program starts") << 20
    })
}

/// A folder with bundles.
struct Desk(TempDir, RefCell<BTreeMap<String, (u64, u64)>>);

impl Desk {
    fn new(bundles: Vec<(&str, Bundle)>) -> Self {
        let folder = folder_in_memory();
        for (name, bundle) in bundles {
            std::fs::write(folder.path().join(name), bundle.encode()).expect("it is written");
        }
        std::fs::create_dir(folder.path().join("empty")).expect("it is made");
        Self(folder, RefCell::default())
    }

    fn command(&self, command: &mut Command) -> Output {
        let command = command.current_dir(self.0.path()).env("XDG_STATE_HOME", self.0.path().join("state"));
        // glibc reserves 64 MiB of addresses, unused, for each allocating thread.
        let command = command.env("MALLOC_ARENA_MAX", "1").env("RUST_BACKTRACE", "0");
        command.stdin(Stdio::null()).output().expect("it runs")
    }

    /// Returns the memory that a bundle declares, and the number of threads. Cached.
    fn declared(&self, bundle: &str) -> (u64, u64) {
        *self.1.borrow_mut().entry(bundle.to_owned()).or_insert_with(|| self.ask(bundle))
    }

    fn ask(&self, bundle: &str) -> (u64, u64) {
        let output = self.command(Command::new(program()).args(["info", "--json", bundle]));
        let text = String::from_utf8(output.stdout).expect("JSON");
        let cost = text.split("\"cost\":").nth(1).unwrap_or_else(|| panic!("{text}"));
        let number = |field: &str| {
            let rest = cost.split(&format!("\"{field}\":")).nth(1).unwrap_or_else(|| panic!("{text}"));
            rest.chars().take_while(char::is_ascii_digit).collect::<String>().parse().expect("a number")
        };
        (number("memory_bytes"), number("threads"))
    }

    /// Runs a command with the address space that the bundles in its arguments declare. It must exit with one of the given statuses.
    fn run(&self, bundles: &[&str], arguments: &str, good: &[i32]) -> Vec<String> {
        let declared: Vec<(u64, u64)> = bundles.iter().map(|bundle| self.declared(bundle)).collect();
        let threads = declared.iter().map(|(_, threads)| *threads).max().unwrap_or(1);
        let declared: u64 = declared.iter().map(|(memory, _)| memory).sum();
        let limit = (declared + own_map() + threads * STACK) >> 10;
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("ulimit -v {limit}; exec \"$@\" >/dev/null"), "sh"]);
        let output = self.command(shell.arg(program()).args(arguments.split(' ')));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let status = output.status.code();
        println!("{arguments}: {status:?} of {} MiB {said}", declared >> 20);
        match status {
            Some(status) if good.contains(&status) => Vec::new(),
            _ => vec![format!("sealift {arguments}: {status:?} within {} MiB\n{said}", declared >> 20)],
        }
    }

    /// Runs every command that reads bundles on `one` and `other`.
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
        failed.extend(self.run(&["one"], "diff empty one", &[0]));
        failed.extend(self.run(&["one"], &format!("cat one none {unsigned}"), &[2]));
        failed.extend(self.run(&["one"], &format!("unpack one to --path none {unsigned}"), &[2]));
        assert!(failed.is_empty(), "{}", failed.join("\n"));
    }

    /// Runs every command that creates or compares a repository or a store.
    fn keep(&self, good: &[i32]) {
        let unsigned = "--allow-unsigned";
        for folder in ["objects", "refs/heads", "refs/mirrors", "refs/remotes", "state", "tmp"] {
            std::fs::create_dir_all(self.0.path().join("repo").join(folder)).expect("it is made");
        }
        std::fs::write(self.0.path().join("repo/config"), "[core]\nrepo_version=1\nmode=archive-z2\n")
            .expect("it is written");
        let mut failed = Vec::new();
        for (target, good) in [("ostree:repo", good), ("composefs:store", &[0, 1, 2])] {
            for arguments in [
                format!("unpack one {target} {unsigned}"),
                format!("unpack one {target} {unsigned}"),
                format!("unpack one {target} --rehash {unsigned}"),
                format!("audit {target} {unsigned}"),
            ] {
                failed.extend(self.run(&["one"], &arguments, good));
            }
        }
        // Everything that the repository had is missing.
        let _ = std::fs::remove_dir_all(self.0.path().join("repo/objects"));
        failed.extend(self.run(&["one"], &format!("audit ostree:repo {unsigned}"), &[1, 2]));
        assert!(failed.is_empty(), "{}", failed.join("\n"));
    }

    /// Runs every command that creates or compares a target, or packs one. Unsupported files are a regular error.
    fn write(&self, good: &[i32]) {
        let unsigned = "--allow-unsigned";
        let unpack = format!("--durability none {unsigned}");
        let pack = format!("--name test --bundle-version 2 --force {unsigned}");
        let steps: [(&[&str], String); 19] = [
            (&["one"], format!("unpack one target {unpack}")),
            (&["one"], format!("unpack one target --update {unpack}")),
            (&["one"], format!("unpack one target --update --rehash {unpack}")),
            (&["one"], format!("audit target {unsigned}")),
            (&["one"], format!("audit target one {unsigned}")),
            (&["one", "other"], format!("audit target other {unsigned}")),
            (&["one"], "diff one target".into()),
            (&["one"], "request target -o request --force".into()),
            (&["one"], format!("pack empty --base one -o delta {pack}")),
            (&["one", "other"], format!("pack target --base other -o delta {pack}")),
            (&["other", "delta"], "diff other delta".into()),
            (&["one", "other"], format!("unpack other target --update --delete {unpack}")),
            // Commands that read a delta over its base, which is in the target.
            (&["delta"], "info delta".into()),
            (&["delta"], "ls delta".into()),
            (&["delta"], format!("verify --deep delta {unsigned}")),
            (&["other", "delta"], format!("unpack delta target --delete {unpack}")),
            (&["delta"], format!("unpack delta target --delete {unpack}")),
            (&["other", "delta"], format!("unpack delta target --delete --rehash {unpack}")),
            (&["one", "other"], format!("unpack one target --update --rehash {unpack}")),
        ];
        let failed: Vec<String> =
            steps.iter().flat_map(|(bundles, arguments)| self.run(bundles, arguments, good)).collect();
        assert!(failed.is_empty(), "{}", failed.join("\n"));
        // A tree deeper than the path limit cannot be removed by path alone.
        let _ = Command::new("rm").args(["-rf", "target", "to"]).current_dir(self.0.path()).status();
    }
}

/// Returns two bundles of the same form that share no name.
fn pair(make: impl Fn(char) -> Bundle) -> Desk {
    Desk::new(vec![("one", make('a')), ("other", make('b'))])
}

/// The number of names of each kind: enough to dominate the program's fixed memory.
const MANY: usize = 50_000;
/// The same for tests that create each file on a file system.
const MADE: usize = 20_000;

#[test]
fn many_names() {
    pair(|letter| pipes(MANY, letter)).read();
    pair(|letter| pipes(MADE, letter)).write(&[0, 1]);
}

#[test]
fn many_links() {
    pair(|letter| hard_links(MANY, letter)).read();
    pair(|letter| hard_links(MADE, letter)).write(&[0, 1, 2]);
}

#[test]
fn many_symbolic_links() {
    pair(|letter| symlinks(MANY, letter)).read();
    pair(|letter| symlinks(MADE, letter)).write(&[0, 1]);
}

#[test]
fn many_files() {
    pair(|letter| files(MANY, letter)).read();
    pair(|letter| files(MADE, letter)).write(&[0, 1]);
}

#[test]
fn many_directories() {
    pair(|letter| directories(MANY, letter)).read();
    pair(|letter| directories(MADE, letter)).write(&[0, 1]);
}

#[test]
fn many_xattrs() {
    pair(|letter| xattrs(MANY, letter)).read();
    pair(|letter| one_of_xattrs(60_000, letter)).read();
}

#[test]
fn deep_names() {
    pair(|letter| deep(500, letter)).read();
    pair(|letter| deep(300, letter)).write(&[0, 1]);
}

#[test]
fn long_xattrs() {
    pair(|letter| large::long_xattrs(700, letter)).read();
}

#[test]
fn deep_commits() {
    let desk = pair(|letter| large::deep_commit(300, letter));
    desk.read();
    desk.keep(&[0]);
}

#[test]
fn parents_of_commits() {
    for bundle in [deep_parent(4000, &[b'p'; 255]), long_history(16_000)] {
        let desk = Desk::new(vec![("one", bundle)]);
        desk.keep(&[0]);
        let failed = desk.run(&["one"], "ls one", &[0]);
        assert!(failed.is_empty(), "{}", failed.join("\n"));
    }
}

/// A commitmeta of 300,000 keys, of which the root states only the length.
#[test]
fn many_keys_in_metadata() {
    let desk = pair(|letter| {
        let keys: Vec<String> = (0..300_000).map(|number| format!("{letter}{number}")).collect();
        let entries: Vec<(&str, &str, &[u8])> = keys.iter().map(|key| (&**key, "y", &[0][..])).collect();
        let commit = Commit { tree: dir([]), beside: Some(dictionary(&entries)) };
        Bundle::with_commits(&[], &[("os", vec![commit])], Packing::default())
    });
    desk.read();
    desk.keep(&[0]);
}

/// What recipes say takes memory before anything is made.
#[test]
fn many_leaves_and_ranges() {
    pair(|letter| large::leaves(50_000, letter)).read();
    pair(|letter| large::ranges(500_000, letter)).read();
}

/// A recipe of a few bytes makes large pieces, or has an encoder take a large input.
#[test]
fn large_pieces_are_made() {
    pair(|letter| large::zeros(130 << 20, letter)).read();
    pair(large::encoded).read();
}

/// Envelopes that nobody knows are not counted by the root.
#[test]
fn many_envelopes() {
    let desk = pair(|letter| {
        let mut bundle = pipes(10, letter);
        // Two of each kind, one of them empty.
        for kind in 3..45_003 {
            bundle.envelopes.push(Box::new(move |_| (kind, Vec::new())));
            bundle.envelopes.push(Box::new(move |_| (kind, vec![1])));
        }
        bundle.area_len = 600_000;
        bundle
    });
    desk.read();
    desk.write(&[0, 1]);
}

#[test]
fn many_refs() {
    let desk = Desk::new(vec![("one", large::refs(65_535)), ("other", large::refs(65_534))]);
    let mut failed = Vec::new();
    for arguments in ["info one", "ls one", "verify --deep one --allow-unsigned", "unpack one to --allow-unsigned"] {
        failed.extend(desk.run(&["one"], arguments, &[0, 2]));
    }
    failed.extend(desk.run(&["one", "other"], "diff one other", &[0]));
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// A listing writes each path in full.
#[test]
fn paths_that_are_long_together_are_refused() {
    let desk = Desk::new(vec![("one", large::comb(4000, 10_000))]);
    for arguments in ["info one", "ls one", "diff one one", "verify one --allow-unsigned"] {
        let output = desk.command(Command::new(program()).args(arguments.split(' ')));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments}: {said}");
        assert!(said.contains("--limit paths="), "{said}");
    }
}

#[test]
fn doubling_dirtrees() {
    let pair = |levels| {
        let [one, other] = [[b"a", b"b"], [b"c", b"d"]].map(|[a, b]: [&[u8; 1]; 2]| doubling(levels, [a, b]));
        Desk::new(vec![("one", one), ("other", other)])
    };
    pair(15).read();
    pair(13).write(&[0, 1]);
}

/// A delta declares its own cost, which includes its bases. Here it is read with prefixes from the base.
#[test]
fn reading_over_a_delta() {
    let desk = Desk::new(Vec::new());
    let path = |name: &str| desk.0.path().join(name);
    std::fs::create_dir(path("tree")).expect("it is made");
    let version = |edit: usize| {
        for file in 0..12_u64 {
            let mut content = noise(file + 1, 5 << 20);
            // One edit in each piece, and an insertion that shifts everything after it.
            (edit..content.len()).step_by(1 << 18).for_each(|at| content[at] ^= 0xff);
            content.splice(100..100, std::iter::repeat_n(7, edit));
            std::fs::write(path(&format!("tree/{file}")), content).expect("it is written");
        }
        for file in 0..3000 {
            std::fs::write(path(&format!("tree/small{file}")), format!("{file} of {edit}")).expect("it is written");
        }
    };
    let plain = |arguments: &str| {
        let output = desk.command(Command::new(program()).args(arguments.split(' ')));
        assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
    };
    version(0);
    plain("pack tree -o one --name test --bundle-version 1 --allow-unsigned");
    version(1000);
    plain("pack tree -o other --name test --bundle-version 2 --allow-unsigned");
    plain("pack tree -o delta --base one --name test --bundle-version 2 --allow-unsigned");
    let len = |name: &str| std::fs::metadata(path(name)).expect("it is there").len();
    assert!(len("delta") < len("other") / 20, "it is of prefixes: {} of {}", len("delta"), len("other"));
    let unsigned = "--allow-unsigned";
    let unpack = format!("--durability none {unsigned}");
    let steps: [(&[&str], String); 12] = [
        (&["one"], format!("unpack one target {unpack}")),
        (&["delta"], "info delta".into()),
        (&["delta"], "ls -l delta".into()),
        (&["delta"], format!("verify {unsigned} delta")),
        (&["delta"], format!("verify --deep {unsigned} delta")),
        (&["delta"], format!("unpack delta target --delete --dry-run {unpack}")),
        (&["delta"], format!("unpack delta target --delete {unpack}")),
        (&["delta"], format!("unpack delta target {unpack}")),
        (&["delta"], format!("unpack delta target --rehash {unpack}")),
        // If the target has no record, it is hashed.
        (&["one"], format!("unpack one bare {unpack}")),
        (&["delta"], format!("unpack delta bare --adopt --yes --delete {unpack}")),
        (&["other"], format!("unpack other bare --update --delete {unpack}")),
    ];
    let mut failed = Vec::new();
    for (bundles, arguments) in &steps {
        if arguments.contains("bare --adopt") {
            std::fs::remove_dir_all(path(".bare.sealift-state")).expect("it has a record");
        }
        failed.extend(desk.run(bundles, arguments, &[0]));
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    let same = Command::new("diff").args(["-r", "target", "tree"]).current_dir(desk.0.path()).status();
    assert!(same.expect("diff runs").success());
}

#[test]
fn more_entries_than_anybody_has_are_refused() {
    let desk = Desk::new(vec![("one", doubling(26, [b"a", b"b"]))]);
    for arguments in ["info one", "ls one", "verify one --allow-unsigned", "unpack one to --allow-unsigned"] {
        let output = desk.command(Command::new(program()).args(arguments.split(' ')));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments}: {said}");
        assert!(said.contains("--limit entries=134217726"), "{said}");
    }
    // If that much memory is requested but unavailable, that is a regular error too.
    let mut shell = Command::new("sh");
    shell.args(["-c", "ulimit -v 1000000; exec \"$@\"", "sh"]).arg(program());
    let output = desk.command(shell.args(["ls", "one", "--limit", "entries=1000000000,paths=10G"]));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && said.contains("there is not enough memory for its"), "{said}");
}

#[test]
fn limits_are_lowered_by_an_option() {
    let desk = Desk::new(vec![("one", pipes(1000, 'a'))]);
    for (limit, status) in
        [("entries=1000", 0), ("entries=999", 2), ("depth=0", 2), ("memory=1M", 2), ("memory=1G,depth=1", 0)]
    {
        let output = desk.command(Command::new(program()).args(["ls", "one", "--limit", limit]));
        assert_eq!(output.status.code(), Some(status), "{limit}: {}", String::from_utf8_lossy(&output.stderr));
    }
    let desk = Desk::new(vec![("one", files(1000, 'a'))]);
    let output = desk.command(Command::new(program()).args(["ls", "one", "--limit", "size=3K"]));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("declares size = 3890, which exceeds the limit of 3072"), "{said}");
    assert!(said.contains("to accept it, use --limit size=3890"), "{said}");
}

/// Runs the program in a shell after `first`, and returns its exit status and what it said.
fn after(desk: &Desk, first: &str, arguments: &str) -> (Option<i32>, String) {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("{first}; exec \"$@\""), "sh"]).arg(program());
    let output = desk.command(shell.args(arguments.split(' ')));
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn threads_and_cache_count_as_memory() {
    let desk = Desk::new(vec![("one", files(1000, 'a'))]);
    let number = |arguments: &str, field: &str| -> u64 {
        let output = desk.command(Command::new(program()).args(arguments.split(' ')));
        let text = String::from_utf8(output.stdout).expect("JSON");
        let rest = text.split(&format!("\"{field}\":")).nth(1).unwrap_or_else(|| panic!("{text}"));
        rest.chars().take_while(char::is_ascii_digit).collect::<String>().parse().expect("a number")
    };
    let [one, eight] = ["1", "8"].map(|jobs| number(&format!("info --json one -j {jobs}"), "memory_bytes"));
    assert!(eight > one + (7 << 20), "{one}, {eight}");
    assert_eq!(number("info --json one -j 1", "mount_memory_bytes"), one + (64 << 20));
    let verify = format!("verify one --allow-unsigned --limit memory={one}");
    assert_eq!(after(&desk, ":", &format!("{verify} -j 1")).0, Some(0));
    let (status, said) = after(&desk, ":", &format!("{verify} -j 8"));
    assert!(status == Some(2) && said.contains(&format!("--limit memory={eight}, or fewer threads")), "{said}");
    let mount = format!("mount one empty --allow-unsigned -j 1 --limit memory={}", one + (8 << 20));
    let (status, said) = after(&desk, ":", &mount);
    assert!(status == Some(2) && said.contains(&format!("memory = {}", one + (64 << 20))), "{said}");
    let (status, said) = after(&desk, ":", &format!("{mount} --cache 9MiB"));
    assert!(status == Some(2) && said.contains(&format!("memory = {}", one + (9 << 20))), "{said}");
}

#[test]
fn limits_of_the_process_are_errors() {
    let desk = Desk::new(vec![("one", large::long_xattrs(1000, 'a'))]);
    let (status, said) = after(&desk, "ulimit -v 70000", "ls one");
    assert!(status == Some(2) && said.contains("memory allocation of"), "{status:?} {said}");
    std::fs::create_dir(desk.0.path().join("tree")).expect("it is made");
    std::fs::write(desk.0.path().join("tree/file"), noise(1, 1 << 20)).expect("it is written");
    let pack = "pack tree -o packed --name test --bundle-version 1 --allow-unsigned";
    let (status, said) = after(&desk, "ulimit -f 64", pack);
    assert!(status == Some(2) && said.contains("File too large"), "{status:?} {said}");
    assert_eq!(after(&desk, ":", pack).0, Some(0));
    let (status, said) = after(&desk, "ulimit -f 64", "unpack packed made --allow-unsigned");
    assert!(status == Some(2) && said.contains("File too large"), "{status:?} {said}");
}

/// What a file system says of holes only saves reading: the bytes that a process and its children read are counted.
#[test]
fn holes_are_not_read() {
    let desk = Desk::new(Vec::new());
    let path = |name: &str| desk.0.path().join(name);
    std::fs::create_dir(path("tree")).expect("it is made");
    let disk = std::fs::File::create_new(path("tree/disk")).expect("it is made");
    disk.set_len(1 << 30).expect("it is sparse");
    std::os::unix::fs::FileExt::write_all_at(&disk, b"x", 1 << 29).expect("it is written");
    let unsigned = "--allow-unsigned --name test";
    for arguments in [
        format!("pack tree -o one --bundle-version 1 {unsigned}"),
        "unpack one target --allow-unsigned".into(),
        "audit target --allow-unsigned".into(),
        "unpack one target --update --rehash --allow-unsigned".into(),
        "diff one tree".into(),
    ] {
        let mut shell = Command::new("sh");
        shell.args(["-c", "\"$@\" >/dev/null || exit; grep rchar /proc/$$/io", "sh"]).arg(program());
        let output = desk.command(shell.args(arguments.split(' ')));
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let read: u64 = said.trim().rsplit(' ').next().and_then(|count| count.parse().ok()).unwrap_or(u64::MAX);
        assert!(read < 64 << 20, "{arguments}: {said}{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn the_reader_in_node_has_these_bundles() {
    for (name, bytes) in large::for_node() {
        let stored = std::fs::read(large::node_folder().join(name)).unwrap_or_default();
        assert!(stored == bytes, "{name} is another; run: cargo run -p sealift-tests --bin vectors");
    }
}
