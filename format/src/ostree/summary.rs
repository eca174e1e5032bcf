//! Summaries, which tell a client all refs of a repository: `(a(s(taya{sv}))a{sv})`, in the form of libostree 2022.7.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::framing::{Elements, Shape, Writer, members, text as parse_text};
use super::{Checksum, Commit, Dictionary, Malformed};
use crate::num::wide;

/// The refs of one collection, or without a collection, by name.
pub type SummaryRefs<'a> = BTreeMap<&'a str, SummaryRef<'a>>;

/// A summary of a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "writers fill it in")]
pub struct Summary<'a> {
    /// The repository's mode, such as `archive-z2` or `bare`.
    pub mode: &'a str,
    /// The collection of the repository itself.
    pub collection_id: Option<&'a str>,
    /// Whether removed commits leave a tombstone.
    pub has_tombstones: bool,
    /// When the summary was written, in seconds since 1970-01-01 UTC.
    pub last_modified: u64,
    /// Refs of the repository itself.
    pub refs: SummaryRefs<'a>,
    /// Refs of other collections, by the ids of these.
    pub collections: BTreeMap<&'a str, SummaryRefs<'a>>,
}

/// What a summary states about a ref.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SummaryRef<'a> {
    commit: Checksum,
    /// The length in bytes of the commit object.
    len: u64,
    timestamp: u64,
    version: Option<&'a str>,
}

impl<'a> SummaryRef<'a> {
    /// Returns a ref to the commit with these bytes and this checksum.
    ///
    /// # Errors
    /// Returns an error if the bytes are not a commit.
    pub fn new(checksum: Checksum, bytes: &'a [u8]) -> Result<Self, Malformed> {
        let commit = Commit::parse(bytes)?;
        Ok(Self {
            commit: checksum,
            len: wide(bytes.len()),
            timestamp: commit.timestamp,
            version: commit.metadata.value("version").and_then(|value| value.text()),
        })
    }

    /// Returns the checksum of the commit that the ref names.
    #[must_use]
    pub fn commit(&self) -> Checksum {
        self.commit
    }

    fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let [len, commit, metadata] = members(bytes, [Shape::U64, Shape::BYTES, Shape::VARIANT])?;
        let metadata = Dictionary::parse(metadata)?;
        let wrong = Malformed::new("a ref in a summary names no commit");
        Ok(Self {
            commit: commit.try_into().map_err(|_| wrong)?,
            len: u64::from_le_bytes(len.try_into().map_err(|_| wrong)?),
            timestamp: metadata.value("ostree.commit.timestamp").and_then(|value| value.number()).unwrap_or(0),
            version: metadata.value("ostree.commit.version").and_then(|value| value.text()),
        })
    }

    fn encode(&self, name: &str) -> Vec<u8> {
        let mut metadata = Writer::default();
        if let Some(version) = self.version {
            metadata.put(Shape::VARIANT, &entry("ostree.commit.version", &text(version), "s"));
        }
        metadata.put(Shape::VARIANT, &entry("ostree.commit.timestamp", &self.timestamp.to_be_bytes(), "t"));
        let mut commit = Writer::default();
        // This is the only number in OSTree that is not big-endian.
        commit.put(Shape::U64, &self.len.to_le_bytes());
        commit.put(Shape::BYTES, &self.commit);
        commit.put(Shape::VARIANT, &metadata.array());
        named(name, &commit.tuple())
    }
}

impl<'a> Summary<'a> {
    /// Parses a summary of libostree. Metadata without a field in this structure is ignored.
    ///
    /// # Errors
    /// Returns an error if it is not in normal form, or names a ref or a collection twice.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let [refs, metadata] = members(bytes, [Shape::VARIANT; 2])?;
        let metadata = Dictionary::parse(metadata)?;
        let mut collections = BTreeMap::new();
        let map = metadata.value("ostree.summary.collection-map");
        for entry in Elements::of(map.map_or(&[], |map| map.bytes()), 8)? {
            let [id, refs] = members(entry?, [Shape::BYTES, Shape::VARIANT])?;
            if collections.insert(parse_text(id)?, parse_refs(refs)?).is_some() {
                return Err(Malformed::new("a collection is in a summary twice"));
            }
        }
        if map.is_some_and(|map| map.type_string() != COLLECTION_MAP.as_bytes()) {
            return Err(Malformed::new("a summary's collections are of another type"));
        }
        let text = |key| metadata.value(key).and_then(|value| value.text());
        Ok(Self {
            mode: text("ostree.summary.mode").unwrap_or_default(),
            collection_id: text("ostree.summary.collection-id"),
            has_tombstones: metadata
                .value("ostree.summary.tombstone-commits")
                .is_some_and(|value| value.bytes() == [1]),
            last_modified: metadata.value("ostree.summary.last-modified").and_then(|value| value.number()).unwrap_or(0),
            refs: parse_refs(refs)?,
            collections,
        })
    }

    /// Encodes the summary. Keys have the order in which libostree writes them, which is not that of their names.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut metadata = Writer::default();
        let mut put = |key: &str, value: &[u8], type_string: &str| {
            metadata.put(Shape::VARIANT, &entry(key, value, type_string));
        };
        put("ostree.summary.mode", &text(self.mode), "s");
        put("ostree.summary.last-modified", &self.last_modified.to_be_bytes(), "t");
        put("ostree.summary.tombstone-commits", &[u8::from(self.has_tombstones)], "b");
        if !self.collections.is_empty() {
            put("ostree.summary.collection-map", &self.collection_map(), COLLECTION_MAP);
        }
        // Clients find deltas through their indexes, not through a list of all deltas in the summary.
        put("ostree.summary.indexed-deltas", &[1], "b");
        if let Some(id) = self.collection_id {
            put("ostree.summary.collection-id", &text(id), "s");
        }
        let mut summary = Writer::default();
        summary.put(Shape::VARIANT, &encode_refs(&self.refs));
        summary.put(Shape::VARIANT, &metadata.array());
        summary.tuple()
    }

    fn collection_map(&self) -> Vec<u8> {
        let mut map = Writer::default();
        for (id, refs) in &self.collections {
            map.put(Shape::VARIANT, &named(id, &encode_refs(refs)));
        }
        map.array()
    }
}

/// The type of the map from collections to refs.
const COLLECTION_MAP: &str = "a{sa(s(taya{sv}))}";

fn parse_refs(bytes: &[u8]) -> Result<SummaryRefs<'_>, Malformed> {
    let mut refs = SummaryRefs::new();
    for entry in Elements::of(bytes, 8)? {
        let [name, commit] = members(entry?, [Shape::BYTES, Shape::VARIANT])?;
        if refs.insert(parse_text(name)?, SummaryRef::parse(commit)?).is_some() {
            return Err(Malformed::new("a ref is in a summary twice"));
        }
    }
    Ok(refs)
}

fn encode_refs(refs: &SummaryRefs<'_>) -> Vec<u8> {
    let mut array = Writer::default();
    for (name, commit) in refs {
        array.put(Shape::VARIANT, &commit.encode(name));
    }
    array.array()
}

/// Returns a pair of a text and a container, which is aligned to eight bytes.
fn named(name: &str, container: &[u8]) -> Vec<u8> {
    let mut pair = Writer::default();
    pair.put_text(name);
    pair.put(Shape::VARIANT, container);
    pair.tuple()
}

/// `{sv}`
fn entry(key: &str, value: &[u8], type_string: &str) -> Vec<u8> {
    named(key, &[value, &[0], type_string.as_bytes()].concat())
}

fn text(text: &str) -> Vec<u8> {
    [text.as_bytes(), &[0]].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ostree::normal::check;
    use crate::ostree::tests::{hex, unhex};

    const TYPE: &[u8] = b"(a(s(taya{sv}))a{sv})";

    fn naming(commit: &str, len: u64, timestamp: u64, version: Option<&'static str>) -> SummaryRef<'static> {
        SummaryRef { commit: unhex(commit), len, timestamp, version }
    }

    fn stable() -> SummaryRef<'static> {
        let commit = "c6bf2333b62f3b79b88034c6a5e0422ce3bf8673df706b0b3a7a14823aa7c32b";
        naming(commit, 198, 1_700_000_000, Some("1.0"))
    }

    fn other() -> SummaryRef<'static> {
        naming("8f9504f04b20dd40cbf718cb4b714c1b620f0c0f6256db19f342ddafe656f1bf", 174, 1_700_000_000, None)
    }

    fn summary(last_modified: u64) -> Summary<'static> {
        Summary {
            mode: "archive-z2",
            collection_id: None,
            has_tombstones: false,
            last_modified,
            refs: BTreeMap::new(),
            collections: BTreeMap::new(),
        }
    }

    /// The summary that `ostree create-usb` writes for two refs of a collection.
    #[test]
    fn of_a_medium() {
        let mut summary = summary(0x6b01_f502);
        summary.collections.insert("org.example.Os", [("os/stable", stable()), ("aa", other())].into());
        assert_eq!(hex(&summary.encode()), MEDIUM);
    }

    /// The summary that `ostree summary --update` writes for an empty repository.
    #[test]
    fn of_nothing() {
        assert_eq!(hex(&summary(0x6b01_f576).encode()), EMPTY);
    }

    /// The summary that `ostree summary --update` writes for a repository with a collection id that has refs of another collection.
    #[test]
    fn of_a_collection() {
        let mut summary = summary(0x6b01_f576);
        summary.collection_id = Some("org.example.Other");
        summary.refs.insert("os/stable", stable());
        let head = "e731eb07ece9653f07c3103faaa53bc4aea7561742f6d999b5bc558dc50f341e";
        summary.refs.insert("h", naming(head, 174, 1_700_000_000, None));
        let own = "f75f97be3bead99fcd318d29884f91dcbb38796dae1f661f095b97035e08a878";
        summary.refs.insert("ostree-metadata", naming(own, 190, 0x6b01_f576, None));
        summary.collections.insert("org.example.Os", [("aa", other())].into());
        assert_eq!(hex(&summary.encode()), COLLECTION);
    }

    #[test]
    fn is_in_normal_form() {
        for count in [0, 1, 2, 3, 200, 700] {
            let names: Vec<_> = (0..count).map(|number| std::format!("ref/{number}")).collect();
            let refs: SummaryRefs<'_> = names.iter().map(|name| (name.as_str(), stable())).collect();
            let mut summary = summary(1);
            summary.refs.clone_from(&refs);
            summary.collections.insert("org.example.Os", refs.clone());
            summary.collections.insert("org.example.Other", refs);
            let bytes = summary.encode();
            assert_eq!(check(TYPE, &bytes), Ok(()), "{count}");
            assert_eq!(Summary::parse(&bytes), Ok(summary), "{count}");
        }
    }

    #[test]
    fn what_libostree_wrote_comes_back() {
        for text in [MEDIUM, EMPTY, COLLECTION] {
            let bytes: Vec<u8> =
                (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).expect("hex")).collect();
            let summary = Summary::parse(&bytes).expect("it is a summary");
            assert_eq!(summary.encode(), bytes);
            for len in 0..bytes.len() {
                assert_ne!(Summary::parse(&bytes[..len]), Ok(summary.clone()), "{len}");
            }
        }
    }

    const MEDIUM: &str = "\
        6f73747265652e73756d6d6172792e6d6f64650000000000617263686976652d7a320000731400006f73747265652e73756d6d6172792e6c\
        6173742d6d6f64696669656400000000000000006b01f50200741d00000000006f73747265652e73756d6d6172792e746f6d6273746f6e65\
        2d636f6d6d697473000000000000000000006221000000006f73747265652e73756d6d6172792e636f6c6c656374696f6e2d6d6170000000\
        6f72672e6578616d706c652e4f7300006161000000000000ae000000000000008f9504f04b20dd40cbf718cb4b714c1b620f0c0f6256db19\
        f342ddafe656f1bf6f73747265652e636f6d6d69742e74696d657374616d7000000000006553f10000741823280300006f732f737461626c\
        6500000000000000c600000000000000c6bf2333b62f3b79b88034c6a5e0422ce3bf8673df706b0b3a7a14823aa7c32b6f73747265652e63\
        6f6d6d69742e76657273696f6e000000312e3000007316006f73747265652e636f6d6d69742e74696d657374616d7000000000006553f100\
        0074181f43280a56d70fea00617b7361287328746179617b73767d29297d1e006f73747265652e73756d6d6172792e696e64657865642d64\
        656c7461730000000100621e260053008400a801cc010000";
    const EMPTY: &str = "\
        6f73747265652e73756d6d6172792e6d6f64650000000000617263686976652d7a320000731400006f73747265652e73756d6d6172792e6c\
        6173742d6d6f64696669656400000000000000006b01f57600741d00000000006f73747265652e73756d6d6172792e746f6d6273746f6e65\
        2d636f6d6d697473000000000000000000006221000000006f73747265652e73756d6d6172792e696e64657865642d64656c746173000000\
        0100621e265384ac00";
    const COLLECTION: &str = "\
        6800000000000000ae00000000000000e731eb07ece9653f07c3103faaa53bc4aea7561742f6d999b5bc558dc50f341e6f73747265652e63\
        6f6d6d69742e74696d657374616d7000000000006553f10000741823280200006f732f737461626c6500000000000000c600000000000000\
        c6bf2333b62f3b79b88034c6a5e0422ce3bf8673df706b0b3a7a14823aa7c32b6f73747265652e636f6d6d69742e76657273696f6e000000\
        312e3000007316006f73747265652e636f6d6d69742e74696d657374616d7000000000006553f1000074181f43280a006f73747265652d6d\
        6574616461746100be00000000000000f75f97be3bead99fcd318d29884f91dcbb38796dae1f661f095b97035e08a8786f73747265652e63\
        6f6d6d69742e74696d657374616d7000000000006b01f5760074182328105600d7003601000000006f73747265652e73756d6d6172792e6d\
        6f64650000000000617263686976652d7a320000731400006f73747265652e73756d6d6172792e6c6173742d6d6f64696669656400000000\
        000000006b01f57600741d00000000006f73747265652e73756d6d6172792e746f6d6273746f6e652d636f6d6d6974730000000000000000\
        00006221000000006f73747265652e73756d6d6172792e636f6c6c656374696f6e2d6d61700000006f72672e6578616d706c652e4f730000\
        6161000000000000ae000000000000008f9504f04b20dd40cbf718cb4b714c1b620f0c0f6256db19f342ddafe656f1bf6f73747265652e63\
        6f6d6d69742e74696d657374616d7000000000006553f100007418232803560f6800617b7361287328746179617b73767d29297d1e000000\
        6f73747265652e73756d6d6172792e696e64657865642d64656c7461730000000100621e000000006f73747265652e73756d6d6172792e63\
        6f6c6c656374696f6e2d6964000000006f72672e6578616d706c652e4f746865720000731d26005300840025014c0185013c01";
}
