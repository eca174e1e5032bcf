//! What is mounted where (proc_pid_mountinfo(5)).

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

use rustix::fs::{Dev, makedev};

use crate::Error;

/// A line of the list.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListedMount {
    /// The device, or the number that stands for one.
    pub device: Dev,
    /// Where it is mounted.
    pub place: PathBuf,
    /// The type of its file system.
    pub kind: String,
    /// What was mounted, as the file system names it.
    pub source: PathBuf,
    /// Whether the file system may be written to, if only through another mount.
    pub is_writable: bool,
}

/// Lists the mounts that this process sees.
///
/// # Errors
/// Returns an error if they cannot be read.
pub fn listed_mounts() -> Result<Vec<ListedMount>, Error> {
    // Of this thread: another one may be in another namespace.
    const LIST: &str = "/proc/thread-self/mountinfo";
    let list = fs::read(LIST).map_err(|error| Error::io("read", LIST, error))?;
    Ok(list.split(|byte| *byte == b'\n').filter_map(ListedMount::parse).collect())
}

impl ListedMount {
    fn parse(line: &[u8]) -> Option<Self> {
        let mut words = line.split(|byte| *byte == b' ');
        let device = parse_device(std::str::from_utf8(words.nth(2)?).ok()?)?;
        let place = unescaped(words.nth(1)?);
        let mut words = words.skip_while(|word| *word != b"-").skip(1);
        let kind = String::from_utf8_lossy(words.next()?).into_owned();
        let source = unescaped(words.next()?);
        let is_writable = words.next()?.split(|byte| *byte == b',').any(|option| option == b"rw");
        Some(Self { device, place, kind, source, is_writable })
    }
}

/// Parses the number of a device, as in `8:1`.
pub(crate) fn parse_device(text: &str) -> Option<Dev> {
    let (major, minor) = text.split_once(':')?;
    Some(makedev(major.parse().ok()?, minor.parse().ok()?))
}

/// Resolves the escapes: a backslash and three octal digits.
fn unescaped(text: &[u8]) -> PathBuf {
    let mut parts = text.split(|byte| *byte == b'\\');
    let mut out = parts.next().unwrap_or_default().to_vec();
    for part in parts {
        let byte = part.get(..3).and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        match byte {
            Some(byte) => {
                out.push(byte);
                out.extend(&part[3..]);
            }
            None => out.extend([b"\\", part].concat()),
        }
    }
    OsString::from_vec(out).into()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn what_ends_words_is_escaped() {
        assert_eq!(unescaped(b"/mnt/a\\040b\\134c"), Path::new("/mnt/a b\\c"));
        assert_eq!(unescaped(b"/"), Path::new("/"));
    }

    #[test]
    fn the_file_system_says_whether_it_may_be_written_to() {
        let line = "36 35 98:3 /root /mnt\\0402 ro,noatime master:1 shared:7 - ext4 /dev/sda3 rw,errors=remount-ro";
        let mount = ListedMount::parse(line.as_bytes()).expect("a line");
        let (place, source) = (PathBuf::from("/mnt 2"), PathBuf::from("/dev/sda3"));
        let expected = ListedMount { device: makedev(98, 3), place, kind: "ext4".into(), source, is_writable: true };
        assert_eq!(mount, expected);
        let line = "36 35 98:3 / /mnt ro - ext4 /dev/sda3 ro,errors=remount-ro";
        assert!(!ListedMount::parse(line.as_bytes()).expect("a line").is_writable);
        assert_eq!(ListedMount::parse(b""), None);
    }

    #[test]
    fn the_root_is_listed() {
        let mounts = listed_mounts().expect("/proc is mounted");
        assert!(mounts.iter().any(|mount| mount.place == Path::new("/proc") && mount.kind == "proc"), "{mounts:?}");
    }
}
