//! A fresh machine: a root directory of its own, with this machine's programs, and a shell on it, as root or as a user.

use std::env;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use sealift_desk::is_root;
use tempfile::TempDir;

/// The user of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    Root,
    User,
}

pub(crate) struct Machine {
    root: TempDir,
    shell: Child,
    commands: Option<ChildStdin>,
    done: BufReader<ChildStdout>,
}

/// The script that `unshare` runs: it makes the root directory `$1`, with sealift from `$2`, its pages from `$3` and moto from `$6`, and starts a shell
/// in it for `$4`. /usr is this machine's; /usr/local contains only sealift's archive, and everything else is empty.
const SET_UP: &str = r#"
set -eu
mount --bind "$1" "$1"
cd "$1"
for name in bin sbin lib lib32 lib64 libx32; do
    if [ -L "/$name" ]; then cp -P "/$name" .; elif [ -d "/$name" ]; then mkdir "$name"; mount --rbind "/$name" "$name"; fi
done
mkdir -p usr dev proc sys etc/ssl tmp srv mnt media run opt root home/user var/lib var/tmp var/cache
chmod 1777 tmp var/tmp
mount --rbind /usr usr
mount --rbind /dev dev
mount --rbind /proc proc
mount -t tmpfs -o mode=0755 none usr/local
mkdir -p usr/local/bin usr/local/share/doc/sealift
cp "$2" usr/local/bin/sealift
cp -R "$3" usr/local/share/doc/sealift/docs
if [ -n "$6" ]; then mkdir opt/moto; mount --bind "$6" opt/moto; fi
for name in alternatives ld.so.cache os-release ssl/openssl.cnf; do
    if [ -e "/etc/$name" ]; then cp -RP "/etc/$name" "etc/$name"; fi
done
printf 'root:x:0:0::/root:/bin/sh\nuser:x:1000:1000::/home/user:/bin/sh\n' > etc/passwd
printf 'root:x:0:\nuser:x:1000:\n' > etc/group
case "$4 $5" in
    root*) home=/root; set -- ;;
    "user root") home=/home/user; chown 1000:1000 home/user session; set -- setpriv --reuid=1000 --regid=1000 --clear-groups ;;
    *) home=/home/user; set -- unshare --user --map-user=1000 --map-group=1000 ;;
esac
# What was found before may lie outside of the new root.
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
# Not by chroot: below one, the kernel makes no user namespace.
pivot_root . mnt
umount -l mnt
exec env -i HOME="$home" USER="${home##*/}" LC_ALL=C PATH="$PATH" "$@" sh -c 'cd; umask 022; exec sh'
"#;

impl Machine {
    /// Starts a machine, or returns why that is impossible here.
    pub(crate) fn start(who: Who) -> Result<Self, String> {
        let root = tempfile::tempdir().unwrap();
        fs::set_permissions(root.path(), fs::Permissions::from_mode(0o755)).unwrap();
        fs::create_dir(root.path().join("session")).unwrap();
        let is_root = is_root();
        let mut shell = Command::new("unshare");
        shell.arg("--mount").args((!is_root).then_some(["--user", "--map-root-user"]).iter().flatten());
        shell
            .env("PATH", path())
            .args(["sh", "-c", SET_UP, "sh"])
            .arg(root.path())
            .arg(env!("CARGO_BIN_EXE_sealift"))
            .arg(DOCS);
        shell.arg(if who == Who::Root { "root" } else { "user" }).arg(if is_root { "root" } else { "user" });
        shell.arg(moto().unwrap_or_default());
        shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut shell = shell.spawn().map_err(|error| error.to_string())?;
        let (commands, done) = (shell.stdin.take(), BufReader::new(shell.stdout.take().unwrap()));
        let mut machine = Self { root, shell, commands, done };
        match machine.try_run("true") {
            Some((0, _)) => Ok(machine),
            _ => {
                let mut said = String::new();
                std::io::Read::read_to_string(&mut machine.shell.stderr.take().unwrap(), &mut said).unwrap();
                Err(said)
            }
        }
    }

    /// Runs a command, and returns its exit status and all of its output.
    pub(crate) fn run(&mut self, command: &str) -> (i32, String) {
        self.try_run(command).unwrap_or_else(|| panic!("it ended the shell: {command}"))
    }

    fn try_run(&mut self, command: &str) -> Option<(i32, String)> {
        let session = self.root.path().join("session");
        fs::write(session.join("command"), command).unwrap();
        fs::set_permissions(session.join("command"), fs::Permissions::from_mode(0o644)).unwrap();
        // The command is sourced, so that its variables stay. It must not read standard input, from which the commands come.
        let line = ". /session/command </dev/null >/session/output 2>&1; echo $?\n";
        self.commands.as_mut()?.write_all(line.as_bytes()).ok()?;
        let mut status = String::new();
        self.done.read_line(&mut status).ok()?;
        let output = fs::read(session.join("output")).ok()?;
        Some((status.trim().parse().ok()?, String::from_utf8_lossy(&output).into_owned()))
    }

    /// Runs a command that must succeed.
    pub(crate) fn good(&mut self, command: &str) -> String {
        let (status, said) = self.run(command);
        assert_eq!(status, 0, "{command}\n{said}");
        said
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // The shell ends with its input, and all mounts end with the shell.
        drop(self.commands.take());
        let _ = self.shell.wait();
    }
}

/// Returns the folder of moto, a server like that of a bucket: the one that `SEALIFT_MOTO` names, or the one that ci fetched.
pub(crate) fn moto() -> Option<PathBuf> {
    let given = env::var_os("SEALIFT_MOTO").map(PathBuf::from);
    let cache = env::var_os("XDG_CACHE_HOME").map(PathBuf::from).or_else(|| Some(env::home_dir()?.join(".cache")));
    [given, cache.map(|cache| cache.join("sealift/moto"))].into_iter().flatten().find(|dir| dir.join("moto").is_dir())
}

/// A user's PATH often lacks the folder of pivot_root.
fn path() -> String {
    format!("{}:/usr/sbin:/sbin", env::var("PATH").unwrap())
}

/// The pages, which the archive also contains.
const DOCS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs");

/// The repository's root.
pub(crate) fn repository() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}
