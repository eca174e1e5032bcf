//! The output of `strace -f -y -e trace=open,openat,execve,mmap,read,pread64`, to a terminal or by `-o`.

use std::collections::HashMap;
use std::io::BufRead;
use std::ops::Range;

use sealift_store::OrderFault;

use super::root::Rooted;
use super::{Fault, lines};
use crate::order::profile::OrderEntry;

/// What was read of a file.
#[derive(Default)]
struct Use {
    /// Whether a call read from it without naming an offset.
    is_whole: bool,
    ranges: Vec<Range<u64>>,
}

/// Reads the log: each file takes its place at its first successful call. A large file gets ranges if all calls that read from it name an offset.
pub(super) fn read(input: &mut dyn BufRead, rooted: &mut Rooted) -> Result<Vec<OrderEntry>, Fault> {
    let mut used: Vec<(Vec<u8>, Use)> = Vec::new();
    let mut places: HashMap<Vec<u8>, usize> = HashMap::new();
    // The beginnings of calls that other threads' lines interrupt, by thread.
    let mut begun: HashMap<Vec<u8>, Vec<u8>> = HashMap::new();
    let mut calls = 0_u64;
    lines::each(input, |line, number| {
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
        let Some((path, range)) = call.uses() else { return Ok(()) };
        let below = rooted.below(&without_parents(&path));
        let below = below.map_err(|what| OrderFault::Line { line: number, what })?;
        let Some(path) = below else { return Ok(()) };
        let place = *places.entry(path).or_insert_with_key(|path| {
            used.push((path.clone(), Use::default()));
            used.len() - 1
        });
        match range {
            Read::Nothing => {}
            Read::Whole => used[place].1.is_whole = true,
            Read::Range(range) => used[place].1.ranges.push(range),
        }
        Ok(())
    })?;
    if calls == 0 {
        return Err(OrderFault::Whole("not the output of strace").into());
    }
    let entries = used.into_iter().map(|(path, Use { is_whole, ranges })| {
        OrderEntry::of_reads(path, if is_whole { Vec::new() } else { ranges }, None)
    });
    Ok(entries.collect())
}

/// A call that has returned.
struct Call<'a> {
    name: &'a [u8],
    arguments: &'a [u8],
    result: &'a [u8],
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

    /// Returns the absolute path of a file that a successful call uses, and what it reads of it.
    fn uses(&self) -> Option<(Vec<u8>, Read)> {
        let number = self.result.split(|byte| !byte.is_ascii_hexdigit() && *byte != b'x').next()?;
        if number.is_empty() {
            return None; // -1, or ?
        }
        match self.name {
            b"open" | b"openat" | b"openat2" => {
                let (quoted, flags) = quoted(self.arguments)?;
                // A file that is only open for writing is not read.
                if [&b"O_DIRECTORY"[..], b"O_PATH", b"O_WRONLY"].iter().any(|flag| find(flags, flag).is_some()) {
                    return None;
                }
                // With -y, the descriptor's path, in which links are resolved; without, the argument.
                let path = described(self.result).unwrap_or(quoted);
                path.starts_with(b"/").then_some((path, Read::Nothing))
            }
            b"execve" => {
                quoted(self.arguments).filter(|(path, _)| path.starts_with(b"/")).map(|(path, _)| (path, Read::Whole))
            }
            b"read" => Some((described(self.arguments)?, Read::Whole)),
            b"pread64" => {
                let offset = decimal(self.arguments.rsplit(|byte| *byte == b',').next()?)?;
                let end = offset.checked_add(decimal(number)?)?;
                Some((described(self.arguments)?, Read::Range(offset..end)))
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
                Some((described(descriptor)?, Read::Range(offset..end)))
            }
            _ => None,
        }
        .filter(|(_, read)| !matches!(read, Read::Range(range) if i64::try_from(range.end).is_err()))
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

/// Returns an absolute path without `..`, which programs use to name a sibling of their folder. If the name before `..` is a symbolic link, the
/// result is the path of another file, or of none.
fn without_parents(path: &[u8]) -> Vec<u8> {
    let mut names: Vec<&[u8]> = Vec::new();
    for name in path.split(|byte| *byte == b'/') {
        match name {
            b"" | b"." => {}
            b".." => drop(names.pop()),
            name => names.push(name),
        }
    }
    [b"/", &names.join(&b'/')[..]].concat()
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
