//! Requests (requests.md).

use sealift_format::verity;

use super::delta::base;
use super::*;
use crate::bytes::{Section, byte, hash, join, planes64, wide};
use crate::frame::{RawFrame, frame, frame_with_checksum};
use crate::ostree::commit;

/// The parts of a request.
struct Request {
    magic: [u8; 8],
    version: u16,
    bundle_version: u64,
    name: Vec<u8>,
    digest: [u8; 32],
    index_len: u64,
    outline_len: u64,
    stored: Vec<u8>,
    /// Bytes after the outline.
    tail: Vec<u8>,
}

impl Request {
    /// Returns the request of a bundle's target.
    fn of(bundle: &Bundle) -> Self {
        Self::of_sections(bundle, outline(bundle))
    }

    /// Returns the same request with another outline.
    fn of_sections(bundle: &Bundle, outline: Vec<Section>) -> Self {
        let (index, outline) = (join(&bundle.index.sections()), join(&outline));
        Self {
            magic: *b"\x89SLRQ\r\n\x1a",
            version: 0,
            bundle_version: 7,
            name: b"os".to_vec(),
            digest: verity::digest(&index),
            index_len: wide(index.len()),
            outline_len: wide(outline.len()),
            stored: frame(&outline),
            tail: Vec::new(),
        }
    }

    fn encode(&self) -> Vec<u8> {
        let mut out = self.magic.to_vec();
        out.extend(self.version.to_le_bytes());
        out.extend(self.bundle_version.to_le_bytes());
        out.push(byte(self.name.len()));
        out.extend(&self.name);
        out.extend(self.digest);
        out.extend(self.index_len.to_le_bytes());
        out.extend(self.outline_len.to_le_bytes());
        out.extend(wide(self.stored.len()).to_le_bytes());
        out.extend(&self.stored);
        out.extend(&self.tail);
        out.extend(hash(&out));
        out
    }
}

/// Returns the index's sections, with the starts of the objects' ids.
fn outline(bundle: &Bundle) -> Vec<Section> {
    let mut sections = bundle.index.sections();
    sections[8].payload = objects(&bundle.index.objects);
    sections
}

fn objects(rows: &[(u64, [u8; 32])]) -> Vec<u8> {
    let mut payload = wide(rows.len()).to_le_bytes().to_vec();
    payload.extend(planes64(rows.iter().map(|row| row.0)));
    payload.extend(rows.iter().flat_map(|row| &row.1[..8]));
    payload
}

/// Returns a request with one fault in its own fields.
fn bad(name: &str, kind: &str, comment: &str, edit: impl FnOnce(&mut Request)) -> Vector {
    let mut request = Request::of(&base());
    edit(&mut request);
    vector(name, kind, comment, request.encode()).check(Check::Request)
}

/// Returns a request with one fault in its outline. Its lengths match the outline, except for 24 bytes per object.
fn bad_outline(name: &str, comment: &str, edit: impl FnOnce(&mut Vec<Section>)) -> Vector {
    let mut sections = outline(&base());
    edit(&mut sections);
    let mut request = Request::of_sections(&base(), sections);
    request.index_len = request.outline_len + 24 * wide(base().index.objects.len());
    vector(name, "index", comment, request.encode()).check(Check::Request)
}

pub(super) fn vectors() -> Vec<Vector> {
    let good = |name: &str, comment: &str, from: &Bundle, base: &[&str]| {
        let mut vector = vector(name, "ok", comment, Request::of(from).encode()).check(Check::Request);
        vector.bases = base.iter().map(|name| (*name).to_owned()).collect();
        vector
    };
    let commits = Bundle::with_commits(&[], &[("os", vec![commit(dir([("a", file("one\n"))]))])], Packing::default());
    let mut unknown =
        good("good-request-unknown", "nobody has its objects, and nobody says what was taken", &base(), &[]);
    unknown.bytes = Request { bundle_version: 0, name: Vec::new(), ..Request::of(&base()) }.encode();
    let mut trailing = Request::of(&base()).encode();
    trailing.push(0);
    let mut cut = Request::of(&base()).encode();
    cut.truncate(20);
    let mut flipped = Request::of(&base()).encode();
    flipped[20] ^= 1;
    vec![
        good("good-request", "of a target that holds a bundle that is at hand", &base(), &["good-base"]),
        unknown,
        {
            let mut request = Request::of(&base());
            request.digest[31] ^= 1;
            let other = vector("request-digest", "index", "index_digest is another", request.encode());
            Vector { bases: vec!["good-base".into()], ..other }.check(Check::Request)
        },
        good("good-request-ostree", "of a repository", &commits, &[]).needs("core delta ostree requests"),
        bad("request-magic", "header", "a bundle's magic", |it| it.magic = *b"\x89SLFT\r\n\x1a"),
        bad("request-version", "unsupported", "version 1", |it| it.version = 1),
        bad("request-version-alone", "header", "a version without a name", |it| it.name.clear()),
        bad("request-name", "header", "a name that no bundle has", |it| it.name = b"a b".to_vec()),
        bad("request-outline-long", "header", "an outline of more bytes than the index", |it| {
            it.index_len = it.outline_len - 1;
        }),
        bad("request-frame", "header", "the outline's frame has a checksum", |it| {
            it.stored = frame_with_checksum(&join(&outline(&base())));
        }),
        bad("request-frame-window", "header", "the outline's frame has a window of 2^28", |it| {
            let outline = join(&outline(&base()));
            let mut raw = RawFrame::of(&outline);
            raw.descriptor = 0b1000_0000; // content size in 4 bytes, and a window
            raw.fields.insert(0, 18 << 3);
            it.stored = raw.encode();
        }),
        vector("request-blake3", "header", "a flipped bit", flipped).check(Check::Request),
        vector("request-trailing", "header", "a byte behind the BLAKE3", trailing).check(Check::Request),
        bad("request-stored-short", "header", "a byte behind the outline", |it| it.tail.push(0)),
        vector("request-cut", "header", "20 bytes of a request", cut).check(Check::Request),
        bad("limit-request-index-len", "limit", "an index of 2^30 + 1 bytes", |it| it.index_len = (1 << 30) + 1),
        bad("request-index-len", "header", "the index has a byte more than is said", |it| it.index_len -= 1),
        bad_outline("request-objects-cut", "the last id lacks a byte", |sections| {
            sections[8].payload.pop();
        }),
        bad_outline("request-objects-left", "a byte behind the ids", |sections| sections[8].payload.push(0)),
        bad_outline("request-objects-alike", "two ids begin alike", |sections| {
            let mut rows = base().index.objects;
            rows[1].1 = rows[0].1;
            sections[8].payload = objects(&rows);
        }),
        bad_outline("request-index", "an entry is not used", |sections| {
            let children = &mut sections[3].payload;
            let first = children.first_mut().expect("there are directories");
            *first -= 1;
        }),
        bad_outline("request-objects-missing", "no section 9", |sections| {
            sections.remove(8);
        }),
        bad_outline("request-index-section", "no section 10", |sections| {
            sections.remove(9);
        }),
    ]
}
