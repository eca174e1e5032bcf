//! The commands in docs/*.md, run as they stand there.
//!
//! Each page is a session of its own, in a folder with a tree `os`: the blocks marked `console` are run one after the other by `sh`, with
//! keys that ssh-keygen makes. In the output that a page shows, `[..]` stands for anything within a line, and `...` for any lines; a
//! line `? N` says the exit status where it is not 0. `DOCS=overwrite` writes what came out instead, for `git diff` to show.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown, lchown, symlink};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

#[test]
fn json() {
    page("json.md");
}

#[test]
fn progress() {
    page("progress.md");
}

#[test]
fn publish() {
    page("publish.md");
}

#[test]
fn administer() {
    page("administer.md");
}

#[test]
fn device() {
    page("device.md");
}

#[test]
fn coming_from() {
    page("coming-from.md");
}

/// The commands of the front page, in one folder one after the other: what they read that no other makes stands ready, and nothing is
/// fetched.
#[test]
fn the_front_page() {
    let folder = tempfile::tempdir().unwrap();
    fill(folder.path());
    let good = |line: &str| {
        let (status, said) = run(folder.path(), line);
        assert_eq!(status, 0, "{line}\n{said}");
    };
    good("mkdir -p srv .ssh && mv os srv/os");
    let front = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md")).unwrap();
    let (_, commands) = front.split_once("## Publish").unwrap();
    let (commands, _) = commands.split_once("## Have it").unwrap();
    let mut count = 0;
    for line in commands.lines().filter(|line| ["sealift ", "curl ", "ssh-keygen "].iter().any(|w| line.starts_with(w)))
    {
        let line = line.replace("/srv/", "srv/").replace("/ostree/repo", "repo").replace("~/.ssh", ".ssh");
        good(&line.replace("curl -s https://example.org/", "cat "));
        count += 1;
        match count {
            1 => {
                good("printf 'os namespaces=\"sealift\" %s\\n' \"$(cat release-key.pub)\" > allowed_signers");
                for version in ["6", "8"] {
                    good(&format!("echo {version} > srv/os/etc/os-release"));
                    good(&format!(
                        "sealift pack srv/os -o os-{version}.sealift --name os --bundle-version {version} --key release-key -q"
                    ));
                }
                good("cp -a srv/os srv/os-9 && echo 9 > srv/os-9/etc/os-release");
                good("ssh-keygen -q -t ed25519 -N '' -f .ssh/id_ed25519_sk");
                good("ostree --repo=repo init --mode=bare-user");
                good("ostree --repo=repo commit --branch=os/stable --tree=dir=srv/os");
            }
            2 => assert!(line.contains("sealift pack"), "{line}"),
            _ => {}
        }
    }
    assert!(count >= 14, "{count}");
}

/// Each command in the tables of the page is understood, and one that is whole runs as it stands, with things that are called KEY, DIR,
/// REPO or the like.
#[test]
fn the_tables_of_coming_from() {
    let folder = tempfile::tempdir().unwrap();
    fill(folder.path());
    let good = |line: &str| {
        let (status, said) = run(folder.path(), line);
        assert_eq!(status, 0, "{line}\n{said}");
    };
    good(
        "ostree --repo=REPO init --mode=bare-user --collection-id=org.example.Os; \
        ostree --repo=REPO commit --branch=FROM --tree=dir=os >/dev/null; \
        echo a > os/FILE; echo a > disk.img; tar -cf os.tar os; mkdir -p stick; \
        ssh-keygen -q -t ed25519 -N '' -f KEY; \
        ostree --repo=REPO commit --branch=REF --tree=dir=os >/dev/null; mkdir -p home/.config/sealift; \
        printf '* namespaces=\"sealift\" %s\\n' \"$(cat KEY.pub)\" > home/.config/sealift/allowed_signers",
    );
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/coming-from.md")).unwrap();
    let (mut understood, mut done) = (0, 0);
    for line in page.lines().filter(|line| line.starts_with('|')) {
        let spans = line.split('`').skip(1).step_by(2).filter_map(|span| span.rsplit("| ").next());
        for command in spans.filter(|span| span.starts_with("sealift ")) {
            let ends_in_option = command.ends_with("--key");
            // What is asked for help looks at all words before that, and does nothing.
            good(&format!("{command}{} --help", if ends_in_option { " KEY" } else { "" }));
            understood += 1;
            if ends_in_option || command.split(' ').count() < 3 {
                continue;
            }
            good(&prepare(command));
            let input = if command.contains(" - ") { "cat os.sealift | " } else { "" };
            good(&format!("{input}{}", command.replace("/media/stick", "stick")));
            done += 1;
        }
    }
    assert!(understood > 20 && done > 16, "{understood}, {done}");
}

/// Makes anew what a command of the tables reads.
fn prepare(command: &str) -> String {
    let is_commit = ["ostree:", "--usb"].iter().any(|word| command.contains(word));
    let source = if is_commit { "ostree:REPO --ref REF" } else { "os" };
    let dir = if command.contains("unpack") { "" } else { "; sealift unpack os.sealift DIR -q" };
    format!(
        "set -e; rm -rf DIR .DIR.sealift-state home/.local; \
        sealift pack {source} -o os.sealift --bundle-version 1 --key KEY -q; sealift pack app=os b=os -o app.sealift --bundle-version 1 --key KEY -q; \
        for copy in FILE stick/os.sealift a.sealift b.sealift; do cp os.sealift $copy; done{dir}"
    )
}

const DEVICE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/examples/device");

/// What systemd and udev say of the files for a device, where they are here to be asked.
#[test]
fn the_unit_and_the_rule_are_well_formed() {
    for (program, verb, file) in
        [("systemd-analyze", "verify", "sealift-stick@.service"), ("udevadm", "verify", "99-sealift-stick.rules")]
    {
        let file = Path::new(DEVICE).join(file);
        match Command::new(program).arg(verb).arg(&file).output() {
            Err(error) => eprintln!("skipped: no {program} ({error})"),
            // Before systemd 254 udevadm knows no such verb.
            Ok(done) if String::from_utf8_lossy(&done.stderr).contains("unknown command") => {
                eprintln!("skipped: {program} has no {verb}");
            }
            Ok(done) => {
                let said = [done.stdout, done.stderr].concat();
                let said = String::from_utf8_lossy(&said);
                assert!(done.status.success() && !said.contains("sealift-stick"), "{program}: {said}");
            }
        }
    }
}

/// Runs a page.
fn page(name: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs").join(name);
    let text = fs::read_to_string(&path).unwrap();
    let folder = tempfile::tempdir().unwrap();
    fill(folder.path());
    let (mut new, mut wrong) = (String::new(), Vec::new());
    for part in parts(&text) {
        let Part::Command { shown, command, status, output } = part else {
            new.push_str(part.shown());
            continue;
        };
        let (got_status, got) = run(folder.path(), &command);
        let is_right = got_status == status && matches(&output, &got);
        if is_right {
            new.push_str(&[shown, &output].concat());
            continue;
        }
        let first = shown.split_inclusive('\n').filter(|line| !line.starts_with("? "));
        let status_line = if got_status == 0 { String::new() } else { format!("? {got_status}\n") };
        new.push_str(&[first.collect::<String>(), status_line, got.clone()].concat());
        wrong.push(format!("$ {command}\n? {got_status}, expected {status}\n{got}--- expected:\n{output}"));
    }
    if std::env::var_os("DOCS").is_some_and(|wish| wish == "overwrite") {
        return fs::write(&path, new).unwrap();
    }
    assert!(wrong.is_empty(), "docs/{name}:\n{}", wrong.join("\n"));
}

enum Part<'a> {
    /// Everything else.
    Text(&'a str),
    Command {
        shown: &'a str,
        command: String,
        status: i32,
        output: String,
    },
}

impl<'a> Part<'a> {
    fn shown(&self) -> &'a str {
        match self {
            Self::Text(text) | Self::Command { shown: text, .. } => text,
        }
    }
}

fn parts(text: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let (mut in_console, mut rest) = (false, text);
    while !rest.is_empty() {
        let line_len = |text: &str| text.find('\n').map_or(text.len(), |at| at + 1);
        let line = &rest[..line_len(rest)];
        if !in_console || !line.starts_with("$ ") {
            in_console = if in_console { line != "```\n" } else { line == "```console\n" };
            parts.push(Part::Text(line));
            rest = &rest[line.len()..];
            continue;
        }
        let mut len = line.len();
        let mut command = line[2..].to_owned();
        while let Some(more) = rest[len..].strip_prefix("> ") {
            command.push_str(&more[..line_len(more)]);
            len += 2 + line_len(more);
        }
        let mut status = 0;
        if let Some(number) = rest[len..].strip_prefix("? ") {
            status = number[..line_len(number)].trim().parse().unwrap();
            len += 2 + line_len(number);
        }
        let shown = &rest[..len];
        rest = &rest[len..];
        let lines = rest.split_inclusive('\n').take_while(|line| !line.starts_with("$ ") && *line != "```\n");
        let output: String = lines.collect();
        rest = &rest[output.len()..];
        // An empty line before the next command is for the eye.
        let gap = if output.ends_with("\n\n") || output == "\n" { 1 } else { 0 };
        let at = text.len() - rest.len();
        parts.push(Part::Command { shown, command, status, output: output[..output.len() - gap].to_owned() });
        parts.push(Part::Text(&text[at - gap..at]));
    }
    parts
}

/// Who runs the commands where this is root, whose state is the machine's: nobody, whose state is in the folder.
const NOBODY: u32 = 65534;

fn run(folder: &Path, command: &str) -> (i32, String) {
    let home = folder.join("home");
    let mut shell = Command::new("sh");
    shell
        .args(["-c", &format!("umask 022; exec 2>&1; {command}")])
        .current_dir(folder)
        .env("PATH", format!("{}:{}", home.join("bin").display(), std::env::var("PATH").unwrap()))
        .env("HOME", &home)
        .env("LC_ALL", "C")
        .envs([("XDG_CONFIG_HOME", home.join(".config")), ("XDG_STATE_HOME", home.join(".local/state"))])
        .env_remove("SOURCE_DATE_EPOCH")
        .env_remove("SSH_AUTH_SOCK")
        .env_remove("SEALIFT_LOG")
        .env_remove("SEALIFT_STATE")
        .stdin(Stdio::null());
    if is_root() {
        shell.uid(NOBODY).gid(NOBODY);
    }
    let done = shell.output().unwrap();
    (done.status.code().unwrap(), String::from_utf8_lossy(&done.stdout).into_owned())
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Whether `got` is as `pattern` says.
fn matches(pattern: &str, got: &str) -> bool {
    let (pattern, got): (Vec<_>, Vec<_>) = (pattern.lines().collect(), got.lines().collect());
    lines_match(&pattern, &got)
}

fn lines_match(pattern: &[&str], got: &[&str]) -> bool {
    match pattern {
        [] => got.is_empty(),
        ["...", rest @ ..] => (0..=got.len()).any(|skipped| lines_match(rest, &got[skipped..])),
        [first, rest @ ..] => {
            got.split_first().is_some_and(|(line, got)| line_matches(first, line) && lines_match(rest, got))
        }
    }
}

fn line_matches(pattern: &str, line: &str) -> bool {
    match pattern.split_once("[..]") {
        None => pattern == line,
        Some((start, rest)) => line.strip_prefix(start).is_some_and(|line| {
            line.char_indices().map(|(at, _)| at).chain([line.len()]).any(|at| line_matches(rest, &line[at..]))
        }),
    }
}

/// The tree that every page has, and the program under test.
fn fill(folder: &Path) {
    let at = |name: &str| folder.join("os").join(name);
    for directory in ["os/etc", "os/usr/bin", "os/usr/lib", "home/bin"] {
        fs::create_dir_all(folder.join(directory)).unwrap();
    }
    fs::write(at("etc/os-release"), "ID=example\nVERSION_ID=7\n").unwrap();
    fs::write(at("usr/bin/hello"), "#!/bin/sh\necho hello\n").unwrap();
    fs::write(at("usr/lib/libhello.so.1"), vec![7; 40_000]).unwrap();
    symlink("libhello.so.1", at("usr/lib/libhello.so")).unwrap();
    for (name, mode) in [("etc/os-release", 0o644), ("usr/bin/hello", 0o755), ("usr/lib/libhello.so.1", 0o644)] {
        fs::set_permissions(at(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    let (from, to) = (env!("CARGO_BIN_EXE_sealift"), folder.join("home/bin/sealift"));
    // Another user may not get to where it was built.
    fs::hard_link(from, &to).or_else(|_| fs::copy(from, &to).map(drop)).unwrap();
    fs::copy(Path::new(DEVICE).join("sealift-stick"), folder.join("home/bin/sealift-stick")).unwrap();
    if is_root() {
        give_away(&folder.join("os"));
        for directory in ["home", "home/bin", ""] {
            chown(folder.join(directory), Some(NOBODY), Some(NOBODY)).unwrap();
        }
    }
}

fn give_away(path: &Path) {
    lchown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    if path.is_dir() {
        fs::read_dir(path).unwrap().for_each(|entry| give_away(&entry.unwrap().path()));
    }
}

#[test]
fn patterns() {
    assert!(matches("a [..] c\n...\nz\n", "a b c\nd\ne\nz\n"));
    assert!(matches("...\n", ""));
    assert!(!matches("a\n", "b\n"));
    assert!(!matches("a [..]c\n", "a d\n"));
    let page = "text\n```console\n$ one \\\n> two\n? 1\nout\n\n$ three\n```\n";
    let parts = parts(page);
    assert_eq!(parts.iter().map(Part::shown).collect::<String>(), page.replace("out\n", ""));
    let commands = parts.iter().filter_map(|part| match part {
        Part::Command { command, status, output, .. } => Some((command.as_str(), *status, output.as_str())),
        Part::Text(_) => None,
    });
    assert_eq!(commands.collect::<Vec<_>>(), [("one \\\ntwo\n", 1, "out\n"), ("three\n", 0, "")]);
}
