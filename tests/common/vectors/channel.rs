//! Lists of channels (channel.md).

use super::signed::{NOW, ONE};
use super::*;
use crate::bytes::{byte, hash, narrow};
use crate::keys::{Key, SshSig};

/// The parts of a list.
struct List {
    magic: [u8; 8],
    version: u32,
    list_len: Option<u32>,
    reserved: u8,
    sequence: u64,
    created: i64,
    expires: i64,
    name: Vec<u8>,
    count: Option<u32>,
    rows: Vec<ListRow>,
    /// Bytes after the last row.
    tail: Vec<u8>,
    area_len: u32,
    /// An envelope that is no signature.
    other: Option<u16>,
    key: Option<Key>,
    namespace: &'static str,
}

/// A row of a list.
#[derive(Clone)]
struct ListRow {
    file: Vec<u8>,
    version: u64,
    len: u64,
    digest: u8,
    base_count: Option<u8>,
    bases: Vec<u8>,
}

fn row(file: &str, version: u64, digest: u8, bases: &[u8]) -> ListRow {
    let file = file.as_bytes().to_vec();
    ListRow { file, version, len: 1000, digest, base_count: None, bases: bases.to_vec() }
}

fn good() -> List {
    List {
        magic: *b"\x89SLCH\r\n\x1a",
        version: 0,
        list_len: None,
        reserved: 0,
        sequence: 7,
        created: NOW - 10,
        expires: NOW + 10,
        name: b"os".to_vec(),
        count: None,
        rows: vec![
            row("os-1.sealift", 1, 1, &[]),
            row("os-2-from-1.sealift", 2, 2, &[1]),
            row("os-2.sealift", 2, 2, &[]),
        ],
        tail: Vec::new(),
        area_len: 512,
        other: None,
        key: Some(ONE),
        namespace: "sealift-channel",
    }
}

impl List {
    fn encode(&self) -> Vec<u8> {
        let mut list = self.sequence.to_le_bytes().to_vec();
        list.extend(self.created.to_le_bytes());
        list.extend(self.expires.to_le_bytes());
        list.push(byte(self.name.len()));
        list.extend(&self.name);
        list.extend(self.count.unwrap_or(narrow(self.rows.len())).to_le_bytes());
        for row in &self.rows {
            list.push(byte(row.file.len()));
            list.extend(&row.file);
            list.extend(row.version.to_le_bytes());
            list.extend((NOW - 100).to_le_bytes());
            list.extend(row.len.to_le_bytes());
            list.extend([row.digest ^ 0xff; 32]);
            list.extend([row.digest; 32]);
            list.push(row.base_count.unwrap_or(byte(row.bases.len())));
            list.extend(row.bases.iter().flat_map(|base| [*base; 32]));
        }
        list.extend(&self.tail);
        let mut out = self.magic.to_vec();
        out.extend(self.version.to_le_bytes());
        out.extend(self.list_len.unwrap_or(narrow(list.len())).to_le_bytes());
        out.extend([0; 15]);
        out.push(self.reserved);
        out.extend(list);
        let fields = SshSig { namespace: self.namespace.into(), ..SshSig::default() };
        let signature = self.key.map(|key| key.sign_as(&out, &fields));
        let end = out.len() + usize::try_from(self.area_len).expect("32 bits") - 32;
        out.extend(self.area_len.to_le_bytes());
        for (kind, body) in signature.into_iter().map(|body| (1, body)).chain(self.other.map(|kind| (kind, vec![1]))) {
            out.extend(u16::to_le_bytes(kind));
            out.extend(narrow(body.len()).to_le_bytes());
            out.extend(body);
        }
        out.resize(end.max(out.len()), 0);
        out.extend(hash(&out));
        out
    }
}

fn trust(line: String) -> Trust {
    Trust { signers: vec![line], now: Some(NOW), ..Trust::default() }
}

fn listed(name: &str, kind: &str, comment: &str, edit: impl FnOnce(&mut List)) -> Vector {
    let mut list = good();
    edit(&mut list);
    vector(name, kind, comment, list.encode()).check(Check::List).trust(trust(ONE.allowed("os")))
}

fn bad(name: &str, comment: &str, edit: impl FnOnce(&mut List)) -> Vector {
    listed(name, "header", comment, edit)
}

pub(super) fn vectors() -> Vec<Vector> {
    [form(), judgement()].into_iter().flatten().collect()
}

fn form() -> Vec<Vector> {
    let of_bytes = |name, kind, comment, bytes| {
        vector(name, kind, comment, bytes).check(Check::List).trust(trust(ONE.allowed("os")))
    };
    let whole = good().encode();
    let (mut flipped, mut trailing) = (whole.clone(), whole.clone());
    flipped[40] ^= 1;
    trailing.push(0);
    let (head, short) = (whole[..31].to_vec(), whole[..whole.len() - 1].to_vec());
    let many = |list: &mut List| list.rows[1] = row("os-2-from-1.sealift", 2, 20, &(1..=17).collect::<Vec<_>>());
    vec![
        listed("good-list", "ok", "two full bundles and a delta", |_| {}),
        listed("good-list-cycle", "ok", "two deltas, each with the result of the other as its base", |list| {
            list.rows[0] = row("os-1-from-2.sealift", 1, 1, &[2]);
        }),
        listed("list-unknown-kind", "ok", "an envelope of another kind", |list| list.other = Some(0xff00)),
        bad("list-magic", "the magic of a bundle", |list| list.magic = *b"\x89SLFT\r\n\x1a"),
        listed("list-version", "unsupported", "version 1", |list| list.version = 1),
        bad("list-len-zero", "list_len is 0", |list| list.list_len = Some(0)),
        bad("list-len-over", "list_len is 16,777,217", |list| list.list_len = Some((1 << 24) + 1)),
        bad("list-reserved", "a reserved byte is not zero", |list| list.reserved = 1),
        of_bytes("list-cut-in-preamble", "truncated", "31 bytes of a list", head),
        of_bytes("list-cut", "truncated", "the last byte is missing", short),
        of_bytes("list-trailing", "trailing", "a byte behind the area", trailing),
        of_bytes("list-blake3", "header", "a flipped bit in the list", flipped),
        bad("list-expires", "it expires when it was made", |list| list.expires = list.created),
        bad("list-name", "a slash in the name", |list| list.name = b"o/s".to_vec()),
        bad("list-rows-none", "no rows", |list| list.rows.clear()),
        bad("list-rows-short", "four rows, of which three are there", |list| list.count = Some(4)),
        bad("list-rows-over", "65,537 rows are stated", |list| list.count = Some((1 << 16) + 1)),
        bad("list-file-parent", "a file named ..", |list| list.rows[0].file = b"..".to_vec()),
        bad("list-file-slash", "a file in another directory", |list| list.rows[0].file = b"a/b.sealift".to_vec()),
        bad("list-file-address", "a file at another host", |list| list.rows[0].file = b"https://a/b".to_vec()),
        bad("list-file-empty", "a file without a name", |list| list.rows[0].file.clear()),
        bad("list-files-order", "files do not ascend", |list| list.rows.swap(0, 1)),
        bad("list-files-twice", "a file is there twice", |list| list.rows[1] = list.rows[0].clone()),
        bad("list-bases-over", "17 bases", many),
        bad("list-bases-order", "bases do not ascend", |list| list.rows[1].bases = vec![3, 1]),
        bad("list-bases-itself", "a base is what the bundle installs", |list| list.rows[1].bases = vec![2]),
        bad("list-bases-short", "two bases, of which one is there", |list| {
            list.rows.truncate(2);
            list.rows[1].base_count = Some(2);
        }),
        bad("list-left", "a byte behind the last row", |list| list.tail.push(0)),
    ]
}

fn judgement() -> Vec<Vector> {
    let judged = |name, kind, comment, trust: Trust| {
        vector(name, kind, comment, good().encode()).check(Check::List).trust(trust)
    };
    let line = |namespaces: &str| format!("os namespaces=\"{namespaces}\" {}", ONE.line());
    vec![
        judged("list-granted-lists", "ok", "the key may sign lists alone", trust(line("sealift-channel"))),
        judged("list-granted-other", "untrusted", "the key may sign neither", trust(line("git"))),
        judged("list-other-name", "untrusted", "the key may sign another name", trust(ONE.allowed("app"))),
        judged(
            "list-threshold",
            "untrusted",
            "one key of two",
            Trust { threshold: Some(2), ..trust(ONE.allowed("os")) },
        ),
        judged(
            "list-revoked",
            "revoked",
            "the key is revoked",
            Trust { revoked: vec![ONE.line()], ..trust(ONE.allowed("os")) },
        ),
        listed("list-namespace", "signature", "a signature for the namespace of bundles", |list| {
            list.namespace = "sealift";
        }),
        listed("list-unsigned", "untrusted", "no signature", |list| list.key = None),
        judged("list-expired", "expired", "now is expires", Trust { now: Some(NOW + 10), ..trust(ONE.allowed("os")) }),
        judged("list-old", "downgrade", "list 8 was taken", Trust { floor: Some(8), ..trust(ONE.allowed("os")) }),
        judged("list-same", "ok", "the same list was taken", Trust { floor: Some(7), ..trust(ONE.allowed("os")) }),
    ]
}
