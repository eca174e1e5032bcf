//! A vector's two files: an input with its header, and the content of one that is accepted (spec/vectors/README.md).

use std::path::{Path, PathBuf};

/// An input, and the expected result of a reader.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Vector {
    /// The file's name without `.vec`.
    pub name: String,
    /// `ok` or a kind of failure.
    pub expect: String,
    /// The classes of readers that it is for, separated by spaces.
    pub needs: String,
    /// How thoroughly a reader checks it.
    pub check: Check,
    /// The vectors that are the bases of a delta bundle, in the order of the root.
    pub bases: Vec<String>,
    /// What the vector tests.
    pub comment: String,
    /// What an accepted input contains, as JSON: the second file.
    pub content: Option<String>,
    /// The trust settings, if trust is judged.
    pub trust: Option<Trust>,
    /// The input.
    pub bytes: Vec<u8>,
}

/// How thoroughly a reader checks an input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[allow(clippy::exhaustive_enums, reason = "the vectors' form lists them")]
pub enum Check {
    /// Head, layout and index.
    Open,
    /// Also the digest of each chunk.
    Verify,
    /// Also each object; for a delta bundle, everything that can be checked without its bases.
    #[default]
    Deep,
    /// Also, with the bases, the resulting index and each carried object of a delta bundle.
    Apply,
    /// The input is a request, which is completed with the objects of the bases.
    Request,
    /// The input is the list of a channel.
    List,
    /// The input is a volume: alone, or in a set with the volumes that the bases are.
    Volume,
    /// The input is a recovery file: alone, or with other recovery files and volumes, from which the bundle is made again.
    Recovery,
}

/// The settings of the administrator and the device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trust {
    /// Lines of allowed signers.
    pub signers: Vec<String>,
    /// Revoked keys.
    pub revoked: Vec<String>,
    /// The number of keys that must have signed; default 1.
    pub threshold: Option<usize>,
    /// Seconds since 1970.
    pub now: Option<i64>,
    /// The device's tags.
    pub compatible: Vec<String>,
    /// The highest version that the device has installed.
    pub floor: Option<u64>,
    /// Whether signatures may be missing.
    pub allow_unsigned: bool,
}

impl Vector {
    /// Returns the bytes of the file with the input.
    pub fn encode(&self) -> Vec<u8> {
        let mut lines = vec![("expect", self.expect.clone()), ("needs", self.needs.clone())];
        match self.check {
            Check::Open => lines.push(("check", "open".into())),
            Check::Verify => lines.push(("check", "verify".into())),
            Check::Deep => {}
            Check::Apply => lines.push(("check", "apply".into())),
            Check::Request => lines.push(("check", "request".into())),
            Check::List => lines.push(("check", "list".into())),
            Check::Volume => lines.push(("check", "volume".into())),
            Check::Recovery => lines.push(("check", "recovery".into())),
        }
        lines.extend(self.bases.iter().map(|base| ("base", base.clone())));
        lines.push(("comment", self.comment.clone()));
        if let Some(trust) = &self.trust {
            lines.extend(trust.signers.iter().map(|line| ("trust", line.clone())));
            lines.extend(trust.revoked.iter().map(|line| ("revoked", line.clone())));
            lines.extend(trust.threshold.map(|number| ("threshold", number.to_string())));
            lines.extend(trust.now.map(|now| ("now", now.to_string())));
            lines.extend(trust.compatible.iter().map(|tag| ("compatible", tag.clone())));
            lines.extend(trust.floor.map(|floor| ("floor", floor.to_string())));
            lines.extend(trust.allow_unsigned.then(|| ("allow-unsigned", "yes".into())));
        }
        let header: String = lines.into_iter().map(|(key, value)| format!("{key}: {value}\n")).collect();
        [header.as_bytes(), b"\n", &self.bytes].concat()
    }

    /// Parses the file with the input.
    ///
    /// # Errors
    /// Returns the reason why it is malformed.
    pub fn parse(name: &str, file: &[u8]) -> Result<Self, String> {
        let end = file.windows(2).position(|pair| pair == b"\n\n").ok_or("no empty line")?;
        let header = std::str::from_utf8(&file[..end]).map_err(|_| "the header is not UTF-8")?;
        let mut vector = Self { name: name.into(), bytes: file[end + 2..].to_vec(), ..Self::default() };
        for line in header.lines() {
            let (key, value) = line.split_once(':').ok_or_else(|| format!("no colon in {line:?}"))?;
            vector.set(key, value.trim())?;
        }
        Ok(vector)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        let bad = || format!("{key}: {value:?} is not understood");
        let number = || value.parse().map_err(|_| bad());
        match (key, value) {
            ("expect", _) => self.expect = value.into(),
            ("needs", _) => self.needs = value.into(),
            ("check", "open") => self.check = Check::Open,
            ("check", "verify") => self.check = Check::Verify,
            ("check", "deep") => self.check = Check::Deep,
            ("check", "apply") => self.check = Check::Apply,
            ("check", "request") => self.check = Check::Request,
            ("check", "list") => self.check = Check::List,
            ("check", "volume") => self.check = Check::Volume,
            ("check", "recovery") => self.check = Check::Recovery,
            ("base", _) => self.bases.push(value.into()),
            ("comment", _) => self.comment = value.into(),
            _ => {
                let trust = self.trust.get_or_insert_default();
                match (key, value) {
                    ("trust", _) => trust.signers.push(value.into()),
                    ("revoked", _) => trust.revoked.push(value.into()),
                    ("threshold", _) => trust.threshold = Some(number()?),
                    ("now", _) => trust.now = Some(value.parse().map_err(|_| bad())?),
                    ("compatible", _) => trust.compatible.push(value.into()),
                    ("floor", _) => trust.floor = Some(value.parse().map_err(|_| bad())?),
                    ("allow-unsigned", "yes") => trust.allow_unsigned = true,
                    _ => return Err(bad()),
                }
            }
        }
        Ok(())
    }
}

/// Returns the folder of the vectors.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../spec/vectors")
}

/// Returns all bundle vectors in the folder, by name.
pub fn load() -> Vec<Vector> {
    let mut vectors = load_all();
    vectors.retain(|vector| vector.check < Check::Request);
    vectors
}

/// Returns all volume vectors.
pub fn load_volumes() -> Vec<Vector> {
    let mut vectors = load_all();
    vectors.retain(|vector| vector.check == Check::Volume);
    vectors
}

/// Returns all vectors of recovery files.
pub fn load_recovery() -> Vec<Vector> {
    let mut vectors = load_all();
    vectors.retain(|vector| vector.check == Check::Recovery);
    vectors
}

/// Returns all request vectors.
pub fn load_requests() -> Vec<Vector> {
    let mut vectors = load_all();
    vectors.retain(|vector| vector.check == Check::Request);
    vectors
}

/// Returns all vectors of lists.
pub fn load_lists() -> Vec<Vector> {
    let mut vectors = load_all();
    vectors.retain(|vector| vector.check == Check::List);
    vectors
}

fn load_all() -> Vec<Vector> {
    let mut vectors: Vec<Vector> = names()
        .into_iter()
        .map(|name| {
            let file = std::fs::read(folder().join(format!("{name}.vec"))).expect("it was listed");
            let mut vector = Vector::parse(&name, &file).unwrap_or_else(|fault| panic!("{name}: {fault}"));
            vector.content = std::fs::read_to_string(folder().join(format!("{name}.json"))).ok();
            vector
        })
        .collect();
    vectors.sort_by(|a, b| a.name.cmp(&b.name));
    vectors
}

/// Returns the names of the vectors in the folder.
pub fn names() -> Vec<String> {
    stems("vec")
}

/// Returns the names of the vectors with expected content.
pub fn names_with_content() -> Vec<String> {
    stems("json")
}

fn stems(extension: &str) -> Vec<String> {
    let files = std::fs::read_dir(folder()).expect("the folder is there");
    let files = files.map(|file| file.expect("it can be listed").path());
    let files = files.filter(|path| path.extension().is_some_and(|end| end == extension));
    let mut names: Vec<String> =
        files.map(|path| path.file_stem().and_then(|stem| stem.to_str()).expect("ASCII names").to_owned()).collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let vector = Vector {
            name: "x".into(),
            expect: "untrusted".into(),
            needs: "core delta trust".into(),
            check: Check::Apply,
            bases: vec!["y".into(), "z".into()],
            comment: "a: b".into(),
            content: None,
            trust: Some(Trust {
                signers: vec!["a namespaces=\"sealift\" ssh-ed25519 AA".into()],
                revoked: vec!["ssh-ed25519 AA".into()],
                threshold: Some(2),
                now: Some(-1),
                compatible: vec!["a".into(), "b".into()],
                floor: Some(u64::MAX),
                allow_unsigned: true,
            }),
            bytes: b"\n\n\0".to_vec(),
        };
        assert_eq!(Vector::parse("x", &vector.encode()), Ok(vector));
        assert!(Vector::parse("x", b"expect: ok\n").is_err());
        assert!(Vector::parse("x", b"expects: ok\n\n").is_err());
    }
}
