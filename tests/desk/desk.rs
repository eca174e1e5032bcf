//! A folder, and what runs in it.

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::skipped::for_every_user;
use crate::{NOBODY, folder_in_memory, has, is_root, out, told};

/// A temporary folder, in which programs run without the settings, keys and state of whoever runs the test.
#[derive(Debug)]
pub struct Desk(TempDir);

/// The program `sealift`, which cargo built for this test.
///
/// # Panics
///
/// Panics if cargo does not run the test, or runs one of a package without programs.
#[must_use]
pub fn program() -> String {
    std::env::var("CARGO_BIN_EXE_sealift").expect("cargo runs the test, and built the program for it")
}

impl Desk {
    /// Creates an empty folder.
    ///
    /// # Panics
    ///
    /// Panics if it cannot be created. So do all functions that read and write files: what a test needs is there.
    #[must_use]
    #[allow(clippy::new_without_default, reason = "it creates a folder")]
    pub fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }

    /// Creates an empty folder that is in memory where possible, for files that come and go.
    #[must_use]
    pub fn in_memory() -> Self {
        Self(folder_in_memory())
    }

    /// Creates a folder with a key `release`, which the file `signers` allows to sign `os`.
    #[must_use]
    #[track_caller]
    pub fn with_key() -> Self {
        let desk = Self::new();
        desk.make_key("release");
        desk
    }

    /// Makes a key, and writes the file `signers`, which allows it alone to sign `os`.
    #[track_caller]
    pub fn make_key(&self, name: &str) {
        self.good(&format!("key generate -o {name}"));
        self.write("signers", format!("os namespaces=\"sealift\" {}", self.text(&format!("{name}.pub"))));
    }

    /// Makes a key with the program ssh-keygen, which `SSH_KEYGEN` may name: without a passphrase, unless the options have one.
    #[track_caller]
    pub fn make_ssh_key(&self, name: &str, options: &[&str]) {
        let mut keygen = self.command_of(std::env::var_os("SSH_KEYGEN").unwrap_or_else(|| "ssh-keygen".into()));
        keygen.args(["-q", "-f", name, "-C", "me@desk"]).args(options);
        keygen.args((!options.contains(&"-N")).then_some(["-N", ""]).iter().flatten());
        out(&mut keygen);
    }

    /// The path of a file in the folder; of the folder itself if the name is empty.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a file, and creates the directories above it that are missing.
    #[track_caller]
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        if !path.exists() {
            fs::create_dir_all(path.parent().expect("it is in the folder")).expect("they can be created");
        }
        fs::write(path, content).unwrap_or_else(|error| panic!("{name}: {error}"));
    }

    /// Returns the content of a file.
    #[track_caller]
    pub fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Returns the content of a text file.
    #[track_caller]
    pub fn text(&self, name: &str) -> String {
        String::from_utf8(self.read(name)).expect("it is text")
    }

    /// Returns the names in a directory, sorted.
    #[track_caller]
    pub fn names(&self, directory: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(directory)).unwrap_or_else(|error| panic!("{directory}: {error}"));
        let names = entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("it is text"));
        let mut names: Vec<_> = names.collect();
        names.sort();
        names
    }

    /// Sets the permissions of a file.
    #[track_caller]
    pub fn set_mode(&self, name: &str, mode: u32) {
        fs::set_permissions(self.path(name), Permissions::from_mode(mode)).expect("it is ours");
    }

    /// Returns a command that runs a program in the folder, with nothing to read.
    pub fn command_of(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.path("")).env("SOURCE_DATE_EPOCH", "1700000000");
        command.env("HOME", self.path("home")).env("XDG_CONFIG_HOME", self.path("config"));
        command.env("SEALIFT_STATE", self.path("state")).env("OSTREE_GPG_HOME", self.path("shared"));
        command.env("LC_ALL", "C.UTF-8");
        for name in ["SSH_AUTH_SOCK", "SSH_ASKPASS", "SSH_ASKPASS_REQUIRE", "DISPLAY"] {
            command.env_remove(name);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Returns a command that runs `sealift` with the words of this line.
    pub fn command(&self, line: &str) -> Command {
        let mut command = self.command_of(program());
        command.args(line.split_whitespace());
        command
    }

    /// Returns the same for a user who is not root, even if the test's is; the folder is opened to that user.
    #[track_caller]
    pub fn command_as_user(&self, line: &str) -> Command {
        self.set_mode("", 0o755);
        let mut command = self.command_of(for_every_user(&program(), Path::new(&self.path(""))));
        command.args(line.split_whitespace());
        if is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    }

    /// Returns a shell command line that knows the program as `sealift`.
    pub fn shell(&self, line: &str) -> Command {
        let mut command = self.command_of("bash");
        command.args(["-c", &format!("sealift() {{ '{}' \"$@\"; }}; {line}", program())]);
        command
    }

    /// Runs a shell line where it can mount, and returns its output; `None` if that is impossible, for which the line exits with 99.
    #[track_caller]
    pub fn in_namespace(&self, line: &str) -> Option<String> {
        let mut unshare = self.command_of("unshare");
        unshare.args((!is_root()).then_some(["--user", "--map-root-user"]).iter().flatten());
        let (status, said) = told(unshare.args(["--mount", "sh", "-c", &format!("exec 2>&1; {line}")]));
        let is_impossible = status == Some(99) || said.starts_with("unshare: ");
        assert!(is_impossible || status == Some(0), "{said}");
        (!is_impossible).then_some(said)
    }

    /// Returns a command that runs `sealift` below strace with these options; reports the test as skipped where there is no strace.
    pub fn strace(&self, options: &[&str], line: &str) -> Option<Command> {
        has(&["strace"]).then(|| {
            let mut command = self.command_of("strace");
            command.args(["-f", "-qq", "-o", "/dev/null"]).args(options).arg(program()).args(line.split_whitespace());
            command
        })
    }

    /// Runs a line. Returns its exit status, and everything that it printed.
    #[track_caller]
    pub fn run(&self, line: &str) -> (Option<i32>, String) {
        told(&mut self.command(line))
    }

    /// Runs an `unpack` with this command for `--then`. Returns its exit status, and everything that it printed.
    #[track_caller]
    pub fn run_then(&self, line: &str, then: &str) -> (Option<i32>, String) {
        told(self.command(line).args(["--then", then]))
    }

    /// Runs a line that must succeed, and returns everything that it printed.
    #[track_caller]
    pub fn good(&self, line: &str) -> String {
        let (status, said) = self.run(line);
        assert_eq!(status, Some(0), "{line}: {said}");
        said
    }

    /// Runs a line that must succeed and print `what`. Returns everything that it printed.
    #[track_caller]
    pub fn says(&self, line: &str, what: &str) -> String {
        let said = self.good(line);
        assert!(said.contains(what), "{line}: {what:?}: {said}");
        said
    }

    /// Runs a line that must end with this status, and a message that contains `why`. Returns everything that it printed.
    #[track_caller]
    pub fn refused(&self, line: &str, status: i32, why: &str) -> String {
        let (found, said) = self.run(line);
        assert!(found == Some(status) && said.contains(why), "{line}: {found:?} {why:?}: {said}");
        said
    }

    /// Runs a line that must succeed, and returns its standard output.
    #[track_caller]
    pub fn out(&self, line: &str) -> String {
        out(&mut self.command(line))
    }

    /// Runs a line that must succeed, and returns its standard output, which must be JSON.
    #[track_caller]
    pub fn json(&self, line: &str) -> serde_json::Value {
        let out = self.out(line);
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("{line}: {error}: {out}"))
    }

    /// Compares trees with rsync, which is independent of our code.
    #[track_caller]
    pub fn assert_same(&self, a: &str, b: &str) {
        let mut rsync = self.command_of("rsync");
        let differences = told(rsync.args(["-aHAXnci", "--delete", &format!("{a}/"), &format!("{b}/")]));
        assert_eq!(differences, (Some(0), String::new()), "{a} and {b}");
    }
}
