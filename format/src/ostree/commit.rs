//! A commit: `(a{sv}aya(say)sstayay)` (libostree: `OSTREE_COMMIT_GVARIANT_FORMAT`).

use alloc::vec::Vec;

use super::dirtree::checksum;
use super::framing::{Shape, Writer, members, text};
use super::normal::check;
use super::{Checksum, Dictionary, Malformed};

/// A tree with its history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit<'a> {
    /// Other metadata.
    pub metadata: Dictionary<'a>,
    /// The collection for which it was made (`ostree.collection-binding`).
    pub collection_binding: Option<&'a str>,
    /// The commit before it.
    pub parent: Option<&'a Checksum>,
    /// `a(say)`: related objects. libostree writes none.
    pub related: &'a [u8],
    /// A one-line description.
    pub subject: &'a str,
    /// A longer description.
    pub body: &'a str,
    /// When it was made, in seconds since 1970-01-01 UTC.
    pub timestamp: u64,
    /// The dirtree of its root directory.
    pub root_tree: &'a Checksum,
    /// The dirmeta of its root directory.
    pub root_meta: &'a Checksum,
}

const REF_BINDING: &str = "ostree.ref-binding";

const SHAPES: [Shape; 8] =
    [Shape::VARIANT, Shape::BYTES, Shape::BYTES, Shape::BYTES, Shape::BYTES, Shape::U64, Shape::BYTES, Shape::BYTES];

impl<'a> Commit<'a> {
    /// Parses a commit object.
    ///
    /// # Errors
    /// Returns an error if it is not in normal form, a checksum is not 32 bytes long, a binding has the wrong type, or a key of the metadata
    /// is repeated.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let [metadata, parent, related, subject, body, timestamp, root_tree, root_meta] = members(bytes, SHAPES)?;
        let metadata = Dictionary::parse(metadata)?;
        check(b"a(say)", related)?;
        let binding = Malformed::new("a binding to refs or to a collection is not of its type");
        if metadata.value(REF_BINDING).is_some_and(|refs| refs.texts().is_none()) {
            return Err(binding);
        }
        let collection = metadata.value("ostree.collection-binding");
        Ok(Self {
            collection_binding: collection.map(|value| value.text().ok_or(binding)).transpose()?,
            metadata,
            parent: if parent.is_empty() { None } else { Some(checksum(parent)?) },
            related,
            subject: text(subject)?,
            body: text(body)?,
            timestamp: timestamp
                .try_into()
                .map(u64::from_be_bytes)
                .map_err(|_| Malformed::new("a time is not eight bytes long"))?,
            root_tree: checksum(root_tree)?,
            root_meta: checksum(root_meta)?,
        })
    }

    /// Returns the refs for which it was made; `None` if it does not say.
    #[must_use]
    pub fn ref_bindings(&self) -> Option<impl Iterator<Item = &'a str> + use<'a>> {
        self.metadata.value(REF_BINDING)?.texts()
    }

    /// Encodes the commit object, with the metadata as it was parsed.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.put(Shape::VARIANT, self.metadata.bytes());
        writer.put(Shape::BYTES, self.parent.map_or(&[], |parent| &parent[..]));
        writer.put(Shape::BYTES, self.related);
        writer.put_text(self.subject);
        writer.put_text(self.body);
        writer.put_u64(self.timestamp);
        writer.put(Shape::BYTES, self.root_tree);
        writer.put(Shape::BYTES, self.root_meta);
        writer.tuple()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ostree::tests::{hex, sum, unhex};

    /// The commit that `ostree commit --branch=test/main --subject=subj --timestamp=@1700000000` writes for a tree of one file and a directory.
    fn sample() -> Vec<u8> {
        let mut entry = Writer::default();
        entry.put_text("ostree.ref-binding");
        entry.put(Shape::VARIANT, b"test/main\0\x0a\0as");
        let mut metadata = Writer::default();
        metadata.put(Shape::VARIANT, &entry.tuple());
        let metadata = metadata.array();
        let commit = Commit {
            metadata: Dictionary::parse(&metadata).expect("it is in normal form"),
            collection_binding: None,
            parent: None,
            related: &[],
            subject: "subj",
            body: "",
            timestamp: 1_700_000_000,
            root_tree: &unhex("7f59b259fb9f1b146addb3204ed99e5f9fd5d122c016d217e7bc2f416b1bcd4b"),
            root_meta: &unhex("446a0ef11b7cc167f3b603e585c7eeeeb675faa412d5ec73f62988eb0b6c5488"),
        };
        commit.encode()
    }

    #[test]
    fn a_commit_of_ostree() {
        let bytes = sample();
        assert_eq!(bytes.len(), 126);
        assert_eq!(hex(&bytes[120..]), "582e2d282828");
        assert_eq!(sum(&bytes), "3c9200b0587f0cfa1852b3129ec4eb9161684ec38d2055e42ac14752fb006dbe");
        let commit = Commit::parse(&bytes).expect("ostree wrote it");
        assert_eq!(commit.ref_bindings().map(Vec::from_iter), Some(["test/main"].to_vec()));
        assert_eq!((commit.subject, commit.body, commit.timestamp), ("subj", "", 1_700_000_000));
        assert_eq!((commit.parent, commit.collection_binding), (None, None));
        assert_eq!(commit.encode(), bytes);
    }

    #[test]
    fn bindings_have_their_types() {
        let bytes = sample();
        let commit = Commit::parse(&bytes).expect("ostree wrote it");
        for (key, variant) in [("ostree.ref-binding", &b"a\0\0s"[..]), ("ostree.collection-binding", b"\x01\0y")] {
            let mut entry = Writer::default();
            entry.put_text(key);
            entry.put(Shape::VARIANT, variant);
            let mut metadata = Writer::default();
            metadata.put(Shape::VARIANT, &entry.tuple());
            let metadata = metadata.array();
            let metadata = Dictionary::parse(&metadata).expect("it is in normal form");
            let other = Commit { metadata, ..commit.clone() }.encode();
            assert!(Commit::parse(&other).is_err(), "{key}");
        }
    }

    #[test]
    fn every_prefix_is_refused() {
        let bytes = sample();
        assert!((0..bytes.len()).all(|len| Commit::parse(&bytes[..len]).is_err()));
        assert!(Commit::parse(&[&*bytes, &[0]].concat()).is_err());
    }

    proptest! {
        #[test]
        fn any_commit_comes_back(
            subject in "[^\0]{0,200}", body in "[^\0]{0,200}", timestamp: u64, parent: Option<[u8; 32]>, tree: [u8; 32], meta: [u8; 32],
        ) {
            let commit = Commit {
                metadata: Dictionary::parse(&[]).expect("it is empty"),
                    collection_binding: None,
                parent: parent.as_ref(),
                related: &[],
                subject: &subject,
                body: &body,
                timestamp,
                root_tree: &tree,
                root_meta: &meta,
            };
            let bytes = commit.encode();
            prop_assert_eq!(Commit::parse(&bytes), Ok(commit));
        }

        #[test]
        fn no_other_bytes_are_taken(at in any::<prop::sample::Index>(), byte: u8) {
            let mut bytes = sample();
            let at = at.index(bytes.len());
            bytes[at] = byte;
            if let Ok(parsed) = Commit::parse(&bytes) {
                prop_assert_eq!(parsed.encode(), bytes);
            }
        }
    }
}
