//! The output of `strace -f -y -e trace=open,openat,execve,mmap,read,pread64`, to a terminal or by `-o`.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::io::BufRead;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use sealift_store::OrderFault;

use super::root::{Rooted, without_parents};
use super::{Fault, lines};
use crate::order::profile::OrderEntry;

/// What was read of a file.
#[derive(Default)]
struct Use {
    /// Whether a call read from it without naming an offset.
    is_whole: bool,
    ranges: Vec<Range<u64>>,
}

impl Use {
    fn add(&mut self, read: Read) {
        match read {
            Read::Nothing => {}
            Read::Whole => self.is_whole = true,
            Read::Range(range) => self.ranges.push(range),
        }
    }
}

/// The directories of a root system that a system in use fills: what is in them is not of the tree.
const OF_A_RUNNING_SYSTEM: [&[u8]; 6] = [b"proc/", b"sys/", b"dev/", b"run/", b"tmp/", b"var/tmp/"];

/// Reads the log: each file takes its place at its first successful call. A large file gets ranges if all calls that read from it name an offset.
pub(super) fn read(input: &mut dyn BufRead, rooted: &mut Rooted) -> Result<Vec<OrderEntry>, Fault> {
    let mut trace = Trace::new(rooted);
    // The beginnings of calls that other threads' lines interrupt, by thread.
    let mut begun: HashMap<Vec<u8>, Vec<u8>> = HashMap::new();
    let mut calls = 0_u64;
    lines::each(input, |line, _| {
        let (thread, rest) = split_thread(line);
        let joined;
        let call = if let Some(begin) = rest.strip_suffix(b"<unfinished ...>") {
            begun.insert(thread.to_vec(), begin.to_vec());
            return Ok(());
        } else if rest.starts_with(b"<... ") {
            let end = find(rest, b" resumed>").map(|at| &rest[at + b" resumed>".len()..]);
            let Some((begin, end)) = begun.remove(thread).zip(end) else { return Ok(()) };
            joined = [&begin[..], end].concat();
            Call::parse(&joined)
        } else {
            Call::parse(rest)
        };
        let Some(call) = call else { return Ok(()) };
        calls += 1;
        trace.take(thread, &call);
        Ok(())
    })?;
    if calls == 0 {
        return Err(OrderFault::Whole("not the output of strace").into());
    }
    Ok(trace.finish())
}

/// What the calls so far used.
///
/// A program in a chroot names files by paths below that directory, but the paths of its descriptors, which `-y` shows, are those of the machine.
/// Whether a program is in the root shows when it opens a file by an absolute path, as its loader does at once.
struct Trace<'a> {
    rooted: &'a mut Rooted,
    /// Files in the order of their first use; `None` for a program of which it does not show yet whether it is in the root, or that is not.
    used: Vec<(Option<Vec<u8>>, Use)>,
    places: HashMap<Vec<u8>, usize>,
    /// Files that were made while the log was written.
    made: HashSet<Vec<u8>>,
    /// Whether a thread is in the root.
    is_inside: HashMap<Vec<u8>, bool>,
    /// By thread, the programs that it became since that showed last.
    pending: HashMap<Vec<u8>, Vec<Program>>,
    /// Whether the root is that of a system in use.
    is_system: bool,
}

/// A program of which it does not show yet whether it is in the root.
struct Program {
    place: usize,
    /// Its path as the thread named it.
    named: Vec<u8>,
    /// Whether the thread was in the root when it became this program.
    was_inside: bool,
}

impl<'a> Trace<'a> {
    fn new(rooted: &'a mut Rooted) -> Self {
        let is_system = rooted.root().is_empty();
        Self {
            rooted,
            used: Vec::new(),
            places: HashMap::new(),
            made: HashSet::new(),
            is_inside: HashMap::new(),
            pending: HashMap::new(),
            is_system,
        }
    }

    fn take(&mut self, thread: &[u8], call: &Call<'_>) {
        if let Some(root) = call.new_root() {
            let is_it = absolute(&root) == self.root_path();
            self.is_inside.insert(thread.to_vec(), is_it);
            return;
        }
        let Some(Used { named, described, read, is_new, is_program }) = call.uses() else { return };
        if let (Some(named), Some(described)) = (&named, &described) {
            self.learn(thread, named, described);
        }
        let path = match (described, named) {
            (Some(path), _) => path,
            (None, Some(named)) if self.needs_root(&named) => match self.is_inside.get(thread) {
                _ if is_program => return self.start(thread, named),
                Some(true) => [&self.root_path()[..], &named].concat(),
                _ => named,
            },
            (None, Some(named)) => named,
            (None, None) => return,
        };
        self.place(&path, read, is_new);
    }

    /// Keeps a place for a program until it shows whether the thread is in the root: it may have entered the root just before.
    fn start(&mut self, thread: &[u8], named: Vec<u8>) {
        let was_inside = self.is_inside.get(thread).is_some_and(|inside| *inside);
        let programs = self.pending.entry(thread.to_vec()).or_default();
        programs.push(Program { place: self.used.len(), named, was_inside });
        self.used.push((None, Use { is_whole: true, ranges: Vec::new() }));
    }

    /// Returns whether a path may be one in the root, rather than one of the machine.
    fn needs_root(&self, named: &[u8]) -> bool {
        let root = self.root_path();
        !(root.len() == 1 || named.starts_with(&root))
    }

    /// Returns the absolute path of the root.
    fn root_path(&self) -> Vec<u8> {
        [b"/", self.rooted.root()].concat()
    }

    /// Learns from the two paths of one file whether a thread is in the root.
    fn learn(&mut self, thread: &[u8], named: &[u8], described: &[u8]) {
        let named = absolute(named);
        let is_inside = match described.strip_suffix(&named[..]) {
            Some(b"") => false,
            Some(root) if root == self.root_path() => true,
            _ => return, // through a symbolic link
        };
        self.is_system |= is_inside;
        self.is_inside.insert(thread.to_vec(), is_inside);
        for program in self.pending.remove(thread).unwrap_or_default() {
            self.resolve(program, is_inside);
        }
    }

    /// Gives a program its path, unless the file has an earlier place.
    fn resolve(&mut self, Program { place, named, .. }: Program, is_inside: bool) {
        let path = if is_inside { [&self.root_path()[..], &named].concat() } else { named };
        let Some(path) = self.rooted.below(&path) else { return };
        match self.places.get(&path).copied() {
            Some(earlier) if earlier < place => self.used[earlier].1.is_whole = true,
            later => {
                if let Some(later) = later {
                    self.used[later].0 = None;
                }
                self.places.insert(path.clone(), place);
                self.used[place].0 = Some(path);
            }
        }
    }

    fn place(&mut self, path: &[u8], read: Read, is_new: bool) {
        let Some(path) = self.rooted.below(path) else { return };
        if is_new && !self.places.contains_key(&path) {
            self.made.insert(path);
            return;
        }
        if self.made.contains(&path) {
            return;
        }
        let place = *self.places.entry(path).or_insert_with_key(|path| {
            self.used.push((Some(path.clone()), Use::default()));
            self.used.len() - 1
        });
        self.used[place].1.add(read);
    }

    /// Returns the files, without directories and what else is no file of the tree.
    fn finish(mut self) -> Vec<OrderEntry> {
        for program in std::mem::take(&mut self.pending).into_values().flatten() {
            let was_inside = program.was_inside;
            self.resolve(program, was_inside);
        }
        let Self { rooted, used, is_system, .. } = self;
        let root = [b"/", rooted.root()].concat();
        let is_file = |path: &[u8]| {
            let found = Path::new(OsStr::from_bytes(&[&root[..], b"/", path].concat())).symlink_metadata();
            // A file that is not here may be in another version of the tree.
            found.map_or(true, |found| found.is_file() || found.is_symlink())
        };
        let is_foreign = |path: &[u8]| is_system && OF_A_RUNNING_SYSTEM.iter().any(|folder| path.starts_with(folder));
        let named = used.into_iter().filter_map(|(path, read)| Some((path?, read)));
        let kept = named.filter(|(path, _)| !is_foreign(path) && is_file(path));
        kept.map(|(path, Use { is_whole, ranges })| {
            OrderEntry::of_reads(path, if is_whole { Vec::new() } else { ranges }, None)
        })
        .collect()
    }
}

/// A call that has returned.
struct Call<'a> {
    name: &'a [u8],
    arguments: &'a [u8],
    result: &'a [u8],
}

/// A file that a call uses.
struct Used {
    /// The absolute path by which the call names it.
    named: Option<Vec<u8>>,
    /// Its path on the machine, as -y shows it.
    described: Option<Vec<u8>>,
    read: Read,
    /// Whether the call may have made it.
    is_new: bool,
    /// Whether the thread becomes this program.
    is_program: bool,
}

/// What a call reads.
enum Read {
    Nothing,
    Whole,
    Range(Range<u64>),
}

impl<'a> Call<'a> {
    /// Parses `openat(AT_FDCWD</>, "a", O_RDONLY) = 3</a>`.
    fn parse(line: &'a [u8]) -> Option<Self> {
        let open = line.iter().position(|byte| *byte == b'(')?;
        let name = &line[..open];
        let is_name =
            !name.is_empty() && name.iter().all(|byte| byte.is_ascii_lowercase() || b"_0123456789".contains(byte));
        // The last one: a path in the arguments may look like it.
        let mut equals = line.windows(3).enumerate().rev().filter(|(_, three)| three == b" = ").map(|(at, _)| at);
        let (arguments, at) =
            equals.find_map(|at| Some((line.get(open..at)?.trim_ascii_end().strip_suffix(b")")?, at)))?;
        is_name.then_some(Self { name, arguments: arguments.get(1..)?, result: &line[at + 3..] })
    }

    /// Returns the result's first number, if the call succeeded.
    fn number(&self) -> Option<&'a [u8]> {
        let number = self.result.split(|byte| !byte.is_ascii_hexdigit() && *byte != b'x').next()?;
        (!number.is_empty()).then_some(number) // otherwise -1, or ?
    }

    /// Returns the directory to which a successful call confined the thread.
    fn new_root(&self) -> Option<Vec<u8>> {
        (self.name == b"chroot" && self.number().is_some()).then(|| quoted(self.arguments))?.map(|(path, _)| path)
    }

    /// Returns the file that a successful call uses, and what it reads of it.
    fn uses(&self) -> Option<Used> {
        let number = self.number()?;
        let of_descriptor = |described: Vec<u8>, read| {
            Some(Used { named: None, described: Some(described), read, is_new: false, is_program: false })
        };
        match self.name {
            b"open" | b"openat" | b"openat2" => {
                let (quoted, flags) = quoted(self.arguments)?;
                let has = |wanted: &[&[u8]]| wanted.iter().any(|flag| find(flags, flag).is_some());
                // A file that is only open for writing is not read.
                if has(&[b"O_DIRECTORY", b"O_PATH", b"O_WRONLY"]) {
                    return None;
                }
                Some(Used {
                    named: Some(quoted).filter(|path| path.starts_with(b"/")),
                    described: described(self.result),
                    read: Read::Nothing,
                    is_new: has(&[b"O_CREAT"]) && has(&[b"O_EXCL", b"O_TRUNC"]),
                    is_program: false,
                })
            }
            b"execve" => {
                let (path, _) = quoted(self.arguments).filter(|(path, _)| path.starts_with(b"/"))?;
                Some(Used { named: Some(path), described: None, read: Read::Whole, is_new: false, is_program: true })
            }
            b"read" => of_descriptor(described(self.arguments)?, Read::Whole),
            b"pread64" => {
                let offset = decimal(self.arguments.rsplit(|byte| *byte == b',').next()?)?;
                let end = offset.checked_add(decimal(number)?)?;
                of_descriptor(described(self.arguments)?, Read::Range(offset..end))
            }
            b"mmap" => {
                let mut parts = self.arguments.splitn(5, |byte| *byte == b',').skip(1);
                let (len, descriptor) = (parts.next()?, parts.last()?);
                let digits = descriptor.rsplit(|byte| *byte == b',').next()?.trim_ascii();
                let offset = match digits.strip_prefix(b"0x") {
                    Some(digits) => u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?,
                    None => decimal(digits)?,
                };
                let end = offset.checked_add(decimal(len)?)?;
                of_descriptor(described(descriptor)?, Read::Range(offset..end))
            }
            _ => None,
        }
        .filter(|used| !matches!(&used.read, Read::Range(range) if i64::try_from(range.end).is_err()))
    }
}

/// Splits the thread from a line: `[pid 12] `, or `12 ` in a file, and a time.
fn split_thread(line: &[u8]) -> (&[u8], &[u8]) {
    let line = line.trim_ascii();
    let (thread, mut rest) = match line.strip_prefix(b"[pid").and_then(|rest| Some((rest, find(rest, b"]")?))) {
        Some((rest, end)) => (rest[..end].trim_ascii(), &rest[end + 1..]),
        None => {
            let digits = line.iter().take_while(|byte| byte.is_ascii_digit()).count();
            if line.get(digits) == Some(&b' ') { line.split_at(digits) } else { (&[][..], line) }
        }
    };
    rest = rest.trim_ascii_start();
    let time = rest.iter().take_while(|byte| byte.is_ascii_digit() || b".:".contains(byte)).count();
    if time > 0 && rest.get(time) == Some(&b' ') {
        rest = rest[time..].trim_ascii_start();
    }
    (thread, rest)
}

/// Returns the path that -y prints after a descriptor, `3</a>`, unless the file is deleted, or the descriptor is not of a file.
fn described(text: &[u8]) -> Option<Vec<u8>> {
    let text = text.trim_ascii_start();
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let rest = text[digits..].strip_prefix(b"<").filter(|_| digits > 0)?;
    let end = rest.iter().position(|byte| *byte == b'>')?;
    let is_gone = rest[end + 1..].starts_with(b"(deleted)");
    let path = unescaped(rest[..end].split(|byte| *byte == b'<').next()?)?;
    (path.starts_with(b"/") && !is_gone).then_some(path)
}

/// Returns an absolute path in its shortest form.
fn absolute(path: &[u8]) -> Vec<u8> {
    [b"/", &without_parents(path, true).unwrap_or_default()[..]].concat()
}

/// Returns the first string of the arguments, and what follows it.
fn quoted(arguments: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let start = arguments.iter().position(|byte| *byte == b'"')? + 1;
    let mut is_escaped = false;
    let len = arguments[start..].iter().position(|byte| {
        let ends = *byte == b'"' && !is_escaped;
        is_escaped = *byte == b'\\' && !is_escaped;
        ends
    })?;
    Some((unescaped(&arguments[start..start + len])?, &arguments[start + len + 1..]))
}

/// Resolves the escapes of C.
fn unescaped(text: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        if *byte != b'\\' {
            out.push(*byte);
            continue;
        }
        let octal = rest.iter().take(3).take_while(|byte| (b'0'..=b'7').contains(byte)).count();
        if octal > 0 {
            let digits = std::str::from_utf8(&rest[..octal]).ok()?;
            out.push(u8::from_str_radix(digits, 8).ok()?);
            rest = &rest[octal..];
            continue;
        }
        let (letter, after) = rest.split_first()?;
        rest = after;
        out.push(match letter {
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            b'f' => 0x0c,
            b'v' => 0x0b,
            b'x' => {
                let (digits, after) = rest.split_at_checked(2)?;
                rest = after;
                u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?
            }
            other => *other,
        });
    }
    Some(out)
}

fn decimal(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text.trim_ascii()).ok()?.parse().ok()
}

fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    text.windows(what.len()).position(|part| part == what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::OrderProfile;

    fn text(log: &[u8], root: &str) -> String {
        let Ok(entries) = read(&mut &log[..], &mut Rooted::new(root.as_ref())) else { return "refused".into() };
        OrderProfile::new(entries).to_text()
    }

    #[test]
    fn successful_opens_and_execs_in_order() {
        let log = br#"execve("/srv/os/usr/bin/cat", ["cat", "a = b"], 0x7ffc /* 39 vars */) = 0
openat(AT_FDCWD</srv/os>, "etc/ld.so.cache", O_RDONLY|O_CLOEXEC) = 3</srv/os/etc/ld.so.cache>
openat(AT_FDCWD</srv/os>, "/etc/ld.so.preload", O_RDONLY) = -1 ENOENT (No such file or directory)
read(3</srv/os/etc/ld.so.cache>, "\177ELF) = 7", 832)    = 832
[pid 12] openat(AT_FDCWD</srv/os>, "late", O_RDONLY <unfinished ...>
[pid    13] 07:08:09.12 open("/srv/os/b\303\274\"\\", O_RDONLY) = 4
[pid 12] <... openat resumed>)   = 5</srv/os/late>
openat(AT_FDCWD</srv/os>, ".", O_RDONLY|O_DIRECTORY) = 3</srv/os>
openat2(AT_FDCWD</srv/os>, "two", {flags=O_RDONLY, mode=0, resolve=RESOLVE_BENEATH}, 24) = 3</srv/os/two>
14    openat(AT_FDCWD</srv/os>, "gone", O_RDWR) = 6</srv/os/gone>(deleted)
openat(AT_FDCWD</srv/os>, "/proc/self/maps", O_RDONLY) = 3</proc/14/maps>
--- SIGCHLD {si_signo=SIGCHLD} ---
+++ exited with 0 +++
"#;
        let expected = "# sealift order 1\nusr/bin/cat\netc/ld.so.cache\nb\u{fc}\"\\\\\nlate\ntwo\n";
        assert_eq!(text(log, "/srv/os"), expected);
        assert_eq!(text(b"\x7fELF\x01(= \0\n) = 3\n", "/"), "refused");
    }

    /// As a compiler starts an assembler, and a program opens the library that it came with; without -y, the argument is all that there is.
    #[test]
    fn a_folder_beside_is_resolved() {
        let log = br#"execve("/usr/lib/gcc/12/../../bin/./as", ["as"], 0x7ffc /* 39 vars */) = 0
openat(AT_FDCWD, "/opt/x/bin/../lib/libx.so", O_RDONLY|O_CLOEXEC) = 3
openat(AT_FDCWD, "/../../etc/a", O_RDONLY) = 3
openat(AT_FDCWD, "/usr/../proc/cpuinfo", O_RDONLY) = 3
"#;
        assert_eq!(text(log, "/"), "# sealift order 1\nusr/lib/bin/as\nopt/x/lib/libx.so\netc/a\n");
    }

    /// The strings of a chroot's programs are paths in it, and the paths of descriptors are those of the machine. `/lib` is a link to `/usr/lib`.
    #[test]
    fn paths_in_a_chroot_are_those_of_its_tree() {
        let log = br#"7 execve("/usr/sbin/chroot", ["chroot", "/srv/os", "sh"], 0x7ffc /* 39 vars */) = 0
7 openat(AT_FDCWD</>, "/lib/x86_64-linux-gnu/libc.so.6", O_RDONLY|O_CLOEXEC) = 3</usr/lib/x86_64-linux-gnu/libc.so.6>
7 openat(AT_FDCWD</>, "/etc/ld.so.cache", O_RDONLY|O_CLOEXEC) = 3</etc/ld.so.cache>
7 execve("/bin/sh", ["sh"], 0x7ffc /* 39 vars */) = 0
7 openat(AT_FDCWD</srv/os>, "/lib/x86_64-linux-gnu/libc.so.6", O_RDONLY|O_CLOEXEC) = 3</srv/os/usr/lib/x86_64-linux-gnu/libc.so.6>
8 execve("/bin/lost", ["lost"], 0x7ffc /* 39 vars */) = -1 ENOENT (No such file or directory)
7 openat(AT_FDCWD</srv/os>, "/etc/ld.so.cache", O_RDONLY|O_CLOEXEC) = 3</srv/os/etc/ld.so.cache>
8 execve("/usr/bin/cat", ["cat"], 0x7ffc /* 39 vars */) = 0
8 openat(AT_FDCWD</srv/os>, "/etc/ld.so.cache", O_RDONLY|O_CLOEXEC) = 3</srv/os/etc/ld.so.cache>
8 openat(AT_FDCWD</srv/os>, "/proc/self/maps", O_RDONLY) = 4</srv/os/proc/8/maps>
8 openat(AT_FDCWD</srv/os>, "/tmp/x", O_RDONLY) = 4</srv/os/tmp/x>
9 chroot("/srv/os/.") = 0
9 execve("/sbin/static", ["static"], 0x7ffc /* 39 vars */) = 0
10 execve("/usr/bin/date", ["date"], 0x7ffc /* 39 vars */) = 0
"#;
        let expected = "# sealift order 1\nbin/sh\nusr/lib/x86_64-linux-gnu/libc.so.6\netc/ld.so.cache\nusr/bin/cat\nsbin/static\n";
        assert_eq!(text(log, "/srv/os"), expected);
        // The tree of an application has folders of its own with these names.
        let log = b"openat(AT_FDCWD</>, \"/srv/app/tmp/x\", O_RDONLY) = 4</srv/app/tmp/x>\n";
        assert_eq!(text(log, "/srv/app"), "# sealift order 1\ntmp/x\n");
    }

    #[test]
    fn directories_and_files_made_meanwhile_are_no_files_of_the_tree() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("etc")).expect("made");
        std::fs::write(folder.path().join("etc/here"), "").expect("written");
        let root = folder.path().canonicalize().expect("it is there").to_str().expect("UTF-8").to_owned();
        let lines = [
            ("etc", "O_RDONLY"),
            ("etc/here", "O_RDONLY"),
            ("etc/gone", "O_RDONLY"),
            ("etc/lock", "O_RDWR|O_CREAT|O_EXCL, 0600"),
            ("etc/lock", "O_RDONLY"),
            ("etc/new", "O_RDWR|O_CREAT|O_TRUNC, 0666"),
            ("etc/read", "O_RDONLY"),
            ("etc/read", "O_RDWR|O_CREAT|O_TRUNC, 0666"),
        ];
        let line = |(path, flags)| format!("openat(AT_FDCWD</>, \"{root}/{path}\", {flags}) = 3<{root}/{path}>\n");
        let log: String = lines.into_iter().map(line).collect();
        assert_eq!(text(log.as_bytes(), &root), "# sealift order 1\netc/here\netc/gone\netc/read\n");
    }

    #[test]
    fn what_is_only_written_is_not_read() {
        let log = br#"openat(AT_FDCWD</>, "/a", O_WRONLY|O_CREAT|O_TRUNC, 0666) = 3</a>
openat(AT_FDCWD</>, "/b", O_RDWR|O_CREAT, 0666) = 4</b>
openat(AT_FDCWD</>, "/c", O_WRONLY|O_APPEND) = 5</c>
openat(AT_FDCWD</>, "/c", O_RDONLY) = 6</c>
"#;
        assert_eq!(text(log, "/"), "# sealift order 1\nb\nc\n");
    }

    #[test]
    fn ranges_where_calls_have_them() {
        let log = br#"openat(AT_FDCWD</>, "/a", O_RDONLY) = 3</a>
pread64(3</a>, "a, b) = 9"..., 65536, 0) = 65536
mmap(NULL, 65536, PROT_READ, MAP_PRIVATE, 3</a>, 0x100000) = 0x7f49408f8000
mmap(NULL, 8192, PROT_READ, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0) = 0x7f4940901000
pread64(4</b>, "b", 65536, 0) = 65536
pread64(5</c>, "c", 65536, 5000000) = 65536
read(5</c>, "c", 10) = 10
"#;
        assert_eq!(text(log, "/"), "# sealift order 1\na\t0-65535,1048576-1114111\nb\nc\n");
    }
}
