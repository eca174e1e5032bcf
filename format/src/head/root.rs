//! The root, which is signed (core 4).

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::bytes::{Reader, SectionRule, put_section, read_sections};
use crate::error::compare;
use crate::hex;
use crate::image::{encode_images, parse_images};
use crate::name::is_bundle_name;
use crate::num::{fit, wide};
use crate::recipes::RecipeSums;
use crate::{Error, Image, Part};

/// The bundle's identity, the digests of its layout and index, and the maximum sizes of everything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    /// Core 4.1.
    pub identity: Identity,
    /// Core 4.2.
    pub contents: Contents,
    /// Core 4.3.
    pub maxima: Maxima,
    /// Core 4.5: keys and values, in ascending order of the keys.
    pub annotations: Vec<(String, String)>,
    /// Delta 3: the bases, in a delta bundle.
    pub bases: Option<RootBases>,
    /// Images 2: composefs images of the trees, in ascending order of ref, version and algorithm.
    pub images: Vec<Image>,
    /// Recipes 2: what making objects takes, in a bundle with recipes.
    pub recipes: Option<RecipeSums>,
}

/// Name, version and times (core 4.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The name of what the bundle updates.
    pub name: String,
    /// A number that rises from each bundle of a name to the next.
    pub version: u64,
    /// When the bundle was made, in seconds since 1970-01-01 UTC.
    pub created: i64,
    /// The first second in which the bundle must no longer be used.
    pub expires: Option<i64>,
    /// The tags of the devices that it is for, in ascending order; empty means all devices.
    pub compatible: Vec<String>,
}

/// Digests and lengths of layout and index (core 4.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contents {
    /// fs-verity digest of the decoded index: the content's identity.
    pub index_digest: [u8; 32],
    /// Decoded bytes of the index.
    pub index_len: u64,
    /// Stored bytes of the index.
    pub index_stored: u64,
    /// BLAKE3 of the index's stored bytes.
    pub index_blake3: [u8; 32],
    /// Decoded bytes of the layout.
    pub layout_len: u64,
    /// Stored bytes of the layout.
    pub layout_stored: u64,
    /// BLAKE3 of the layout's stored bytes.
    pub layout_blake3: [u8; 32],
}

/// The bases of a delta bundle (delta 3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RootBases {
    /// Decoded bytes of the difference, which is in the place of the index.
    pub difference_len: u64,
    /// The largest prefix of a chunk, in bytes.
    pub prefix_len: u32,
    /// The bases, at least one; the difference is relative to the first.
    pub bases: Vec<RootBase>,
}

/// A base: an index whose objects a target must have (delta 3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RootBase {
    /// Name and version of the bundle that was the base, if known. They are for people: only the digest identifies a base.
    pub identity: Option<(String, u64)>,
    /// fs-verity digest of the index.
    pub index_digest: [u8; 32],
    /// Decoded bytes of the index.
    pub index_len: u64,
}

/// The numbers that limit the cost of reading the bundle (core 4.3).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Maxima {
    /// log2 of the piece size, 12 to 26.
    pub piece_log2: u8,
    /// log2 of the largest window, 10 to 31.
    pub window_log: u8,
    /// Number of refs.
    pub refs: u16,
    /// Largest number of components in a path.
    pub depth: u32,
    /// Tree entries of all refs.
    pub entries: u64,
    /// Bytes of the paths of all entries.
    pub paths: u64,
    /// Inode records.
    pub inodes: u64,
    /// Rows of the object table.
    pub objects: u64,
    /// Bytes of all regular inodes.
    pub logical: u64,
    /// Bytes that all inodes take on ext4 with blocks of 4096 bytes; in a delta bundle, only those that are regular files with carried content.
    pub disk: u64,
    /// Number of chunks.
    pub chunks: u64,
    /// Stored bytes of all chunks.
    pub chunks_stored: u64,
    /// Bytes of the largest decoded chunk.
    pub chunk_len: u32,
    /// Bytes of the largest stored chunk.
    pub chunk_stored: u32,
}

const RULES: [SectionRule; 9] = [
    SectionRule::Required,
    SectionRule::Required,
    SectionRule::Required,
    SectionRule::Ignorable,
    SectionRule::Optional,
    SectionRule::Ignorable,
    SectionRule::Unassigned,
    SectionRule::Unassigned,
    SectionRule::Optional,
];

impl Root {
    /// Parses the root's bytes.
    ///
    /// # Errors
    /// Returns an error if they do not conform to core 4.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let [identity, contents, maxima, annotations, bases, images, _, _, recipes] =
            read_sections(Part::Root, bytes, &RULES)?;
        let missing = || Reader::new(Part::Root, &[]).malformed("a required section is missing");
        let contents = Contents::parse(contents.ok_or_else(missing)?)?;
        let identity = Identity::parse(identity.ok_or_else(missing)?)?;
        let maxima = Maxima::parse(maxima.ok_or_else(missing)?)?;
        let annotations = annotations.map_or(Ok(Vec::new()), parse_annotations)?;
        let bases = bases.map(|bases| RootBases::parse(bases, &contents)).transpose()?;
        let images = images.map_or(Ok(Vec::new()), |images| parse_images(images, maxima.refs))?;
        let recipes = recipes.map(RecipeSums::parse).transpose()?;
        Ok(Self { identity, contents, maxima, annotations, bases, images, recipes })
    }

    /// Returns the root's bytes. Names, tags and annotations must have their forms.
    ///
    /// # Errors
    /// Returns an error if something is longer or more numerous than the format can store.
    pub fn encode(&self) -> Result<Vec<u8>, Error> {
        let mut out = Vec::new();
        put_section(&mut out, 1, true, &self.identity.encode()?);
        put_section(&mut out, 2, true, &self.contents.encode());
        put_section(&mut out, 3, true, &self.maxima.encode());
        if !self.annotations.is_empty() {
            put_section(&mut out, 4, false, &encode_annotations(&self.annotations)?);
        }
        if let Some(bases) = &self.bases {
            put_section(&mut out, 5, true, &bases.encode()?);
        }
        if !self.images.is_empty() {
            put_section(&mut out, 6, false, &encode_images(&self.images)?);
        }
        if let Some(recipes) = &self.recipes {
            put_section(&mut out, 9, true, &recipes.encode()?);
        }
        Ok(out)
    }

    /// Returns this bundle as a base, in the form in which a delta bundle names it.
    #[must_use]
    pub fn as_base(&self) -> RootBase {
        let Self { identity, contents, .. } = self;
        RootBase {
            identity: Some((identity.name.clone(), identity.version)),
            index_digest: contents.index_digest,
            index_len: contents.index_len,
        }
    }

    /// Returns the whole file's length, with a head of `head_len` bytes.
    ///
    /// # Errors
    /// Returns an error if it passes 2^64-1.
    pub fn file_len(&self, head_len: u64) -> Result<u64, Error> {
        let lens = [self.contents.layout_stored, self.contents.index_stored, self.maxima.chunks_stored];
        lens.iter().try_fold(head_len, |sum, len| sum.checked_add(*len)).ok_or(Error::Limit {
            what: "the file's length",
            declared: u64::MAX,
            limit: u64::MAX,
        })
    }
}

impl Identity {
    fn parse(mut reader: Reader<'_>) -> Result<Self, Error> {
        let (version, created, expires) = (reader.u64()?, reader.i64()?, reader.i64()?);
        let name = read_name(&mut reader)?;
        let count = reader.u16()?;
        let mut compatible: Vec<String> = Vec::new();
        for _ in 0..count {
            let tag = read_name(&mut reader)?;
            if compatible.last().is_some_and(|last| *last >= tag) {
                return Err(reader.malformed("compatible tags do not ascend"));
            }
            compatible.push(tag);
        }
        reader.finish()?;
        Ok(Self { name, version, created, expires: (expires != 0).then_some(expires), compatible })
    }

    fn encode(&self) -> Result<Vec<u8>, Error> {
        let mut out = Vec::new();
        out.extend(self.version.to_le_bytes());
        out.extend(self.created.to_le_bytes());
        out.extend(self.expires.unwrap_or(0).to_le_bytes());
        put_name(&mut out, &self.name)?;
        out.extend(fit::<u16>(self.compatible.len(), "the number of tags")?.to_le_bytes());
        for tag in &self.compatible {
            put_name(&mut out, tag)?;
        }
        Ok(out)
    }
}

impl Contents {
    fn parse(mut reader: Reader<'_>) -> Result<Self, Error> {
        let contents = Self {
            index_digest: reader.array()?,
            index_len: reader.u64()?,
            index_stored: reader.u64()?,
            index_blake3: reader.array()?,
            layout_len: reader.u64()?,
            layout_stored: reader.u64()?,
            layout_blake3: reader.array()?,
        };
        reader.finish()?;
        Ok(contents)
    }

    fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend(self.index_digest);
        out.extend(self.index_len.to_le_bytes());
        out.extend(self.index_stored.to_le_bytes());
        out.extend(self.index_blake3);
        out.extend(self.layout_len.to_le_bytes());
        out.extend(self.layout_stored.to_le_bytes());
        out.extend(self.layout_blake3);
        out
    }
}

impl RootBases {
    fn parse(mut reader: Reader<'_>, contents: &Contents) -> Result<Self, Error> {
        let (difference_len, prefix_len, count) = (reader.u64()?, reader.u32()?, reader.u16()?);
        if count == 0 {
            return Err(reader.malformed("a delta bundle has no base"));
        }
        let mut bases: Vec<RootBase> = Vec::new();
        for _ in 0..count {
            bases.push(RootBase::parse(&mut reader)?);
        }
        let mut known: Vec<&[u8; 32]> = bases.iter().map(|base| &base.index_digest).collect();
        known.push(&contents.index_digest);
        known.sort_unstable();
        if known.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(reader.malformed("a base is named twice, or is what the bundle itself installs"));
        }
        reader.finish()?;
        Ok(Self { difference_len, prefix_len, bases })
    }

    fn encode(&self) -> Result<Vec<u8>, Error> {
        let mut out = Vec::new();
        out.extend(self.difference_len.to_le_bytes());
        out.extend(self.prefix_len.to_le_bytes());
        out.extend(fit::<u16>(self.bases.len(), "the number of bases")?.to_le_bytes());
        for base in &self.bases {
            base.encode(&mut out)?;
        }
        Ok(out)
    }
}

impl RootBase {
    /// Parses a base, in the form that roots and requests share.
    pub(crate) fn parse(reader: &mut Reader<'_>) -> Result<Self, Error> {
        let (version, len) = (reader.u64()?, reader.u8()?);
        let identity = match core::str::from_utf8(reader.take(len.into())?) {
            Ok("") if version == 0 => None,
            Ok(name) if is_bundle_name(name) => Some((name.into(), version)),
            _ => return Err(reader.malformed("the name of a base is not a bundle's")),
        };
        Ok(Self { identity, index_digest: reader.array()?, index_len: reader.u64()? })
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) -> Result<(), Error> {
        let (name, version) = self.identity.as_ref().map_or(("", 0), |(name, version)| (name, *version));
        out.extend(version.to_le_bytes());
        out.push(fit(name.len(), "the length of a base's name")?);
        out.extend(name.as_bytes());
        out.extend(self.index_digest);
        out.extend(self.index_len.to_le_bytes());
        Ok(())
    }
}

/// A form that people can compare: `os version 8 (4ce32ae9d3ac)`, or only the start of the digest.
impl fmt::Display for RootBase {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digest = hex(&self.index_digest[..6]);
        match &self.identity {
            Some((name, version)) => write!(out, "{name} version {version} ({digest})"),
            None => write!(out, "content {digest}"),
        }
    }
}

impl Maxima {
    fn parse(mut reader: Reader<'_>) -> Result<Self, Error> {
        let maxima = Self {
            piece_log2: reader.u8()?,
            window_log: reader.u8()?,
            refs: reader.u16()?,
            depth: reader.u32()?,
            entries: reader.u64()?,
            paths: reader.u64()?,
            inodes: reader.u64()?,
            objects: reader.u64()?,
            logical: reader.u64()?,
            disk: reader.u64()?,
            chunks: reader.u64()?,
            chunks_stored: reader.u64()?,
            chunk_len: reader.u32()?,
            chunk_stored: reader.u32()?,
        };
        if !(12..=26).contains(&maxima.piece_log2) {
            return Err(reader.malformed("the piece size is not between 2^12 and 2^26 bytes"));
        }
        if !(10..=31).contains(&maxima.window_log) {
            return Err(reader.malformed("the window is not between 2^10 and 2^31 bytes"));
        }
        reader.finish()?;
        Ok(maxima)
    }

    fn encode(&self) -> Vec<u8> {
        let mut out = alloc::vec![self.piece_log2, self.window_log];
        out.extend(self.refs.to_le_bytes());
        out.extend(self.depth.to_le_bytes());
        let Self { entries, paths, inodes, objects, logical, disk, chunks, chunks_stored, .. } = *self;
        let wide = [entries, paths, inodes, objects, logical, disk, chunks, chunks_stored];
        out.extend(wide.iter().flat_map(|n| n.to_le_bytes()));
        out.extend(self.chunk_len.to_le_bytes());
        out.extend(self.chunk_stored.to_le_bytes());
        out
    }

    /// Returns the piece size in bytes (core 7.3).
    #[must_use]
    pub fn piece_len(&self) -> u64 {
        1 << self.piece_log2.min(63)
    }

    /// Compares the declared number of refs.
    pub(crate) fn check_refs(&self, found: usize) -> Result<(), Error> {
        compare(&[("refs", self.refs.into(), wide(found))])
    }

    /// Compares the declared numbers with those that follow from the index alone.
    ///
    /// # Errors
    /// Returns the first field that differs.
    pub(crate) fn check_index(&self, found: &Self) -> Result<(), Error> {
        compare(&[
            ("refs", self.refs.into(), found.refs.into()),
            ("depth", self.depth.into(), found.depth.into()),
            ("entries", self.entries, found.entries),
            ("paths", self.paths, found.paths),
            ("inodes", self.inodes, found.inodes),
            ("objects", self.objects, found.objects),
            ("logical", self.logical, found.logical),
        ])
    }

    /// Compares the declared numbers with those that follow from the layout alone.
    ///
    /// # Errors
    /// Returns the first field that differs.
    pub(crate) fn check_layout(&self, found: &Self) -> Result<(), Error> {
        compare(&[
            ("chunks", self.chunks, found.chunks),
            ("chunks_stored", self.chunks_stored, found.chunks_stored),
            ("chunk_len", self.chunk_len.into(), found.chunk_len.into()),
            ("chunk_stored", self.chunk_stored.into(), found.chunk_stored.into()),
        ])
    }

    /// Compares the declared numbers with those that follow from layout and index.
    ///
    /// # Errors
    /// Returns the first field that differs.
    pub fn check(&self, found: &Self) -> Result<(), Error> {
        self.check_index(found)?;
        compare(&[("disk", self.disk, found.disk)])?;
        self.check_layout(found)
    }
}

fn parse_annotations(mut reader: Reader<'_>) -> Result<Vec<(String, String)>, Error> {
    let count = reader.u16()?;
    if count == 0 {
        return Err(reader.malformed("the annotations are empty"));
    }
    let mut annotations: Vec<(String, String)> = Vec::new();
    for _ in 0..count {
        let key = read_name(&mut reader)?;
        if annotations.last().is_some_and(|(last, _)| *last >= key) {
            return Err(reader.malformed("annotation keys do not ascend"));
        }
        let len = reader.u16()?;
        let value = reader.take(len.into())?;
        match core::str::from_utf8(value) {
            Ok(value) => annotations.push((key, value.into())),
            Err(_) => return Err(reader.malformed("an annotation is not UTF-8")),
        }
    }
    reader.finish()?;
    Ok(annotations)
}

fn encode_annotations(annotations: &[(String, String)]) -> Result<Vec<u8>, Error> {
    let mut out = Vec::new();
    out.extend(fit::<u16>(annotations.len(), "the number of annotations")?.to_le_bytes());
    for (key, value) in annotations {
        put_name(&mut out, key)?;
        out.extend(fit::<u16>(value.len(), "the length of an annotation")?.to_le_bytes());
        out.extend(value.as_bytes());
    }
    Ok(out)
}

fn read_name(reader: &mut Reader<'_>) -> Result<String, Error> {
    let len = reader.u8()?;
    let bytes = reader.take(len.into())?;
    match core::str::from_utf8(bytes) {
        Ok(name) if is_bundle_name(name) => Ok(name.into()),
        _ => Err(reader.malformed("invalid name, tag or annotation key")),
    }
}

fn put_name(out: &mut Vec<u8>, name: &str) -> Result<(), Error> {
    debug_assert!(is_bundle_name(name) && wide(name.len()) <= 128, "the writer checked it");
    out.push(fit(name.len(), "the length of a name")?);
    out.extend(name.as_bytes());
    Ok(())
}
