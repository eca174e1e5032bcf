//! Seeds of the fuzz targets, derived from the vectors.

use std::path::{Path, PathBuf};

use base64ct::{Base64, Encoding as _};
use sealift_format::ostree::{Commit, Dictionary, DirTree, dirmeta, file, ostreemeta};
use sealift_format::{Attributes, Delta, Geometry, Opened, Recovery, Xattr};

use crate::bytes::short;
use crate::delta::ByteDifference;
use crate::keys::{Key, strings};
use crate::pkcs7::{CERTIFICATE, kernel_signature};
use crate::reader::{open, open_whole};
use crate::targets::{delta_layout_input, difference_input, layout_input, suffix_input};
use crate::vector::{Vector, load_lists, load_requests, load_volumes};

/// Returns the folder of the corpora.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus")
}

/// A target, a name and an input.
pub type Seed = (&'static str, String, Vec<u8>);

/// Returns header and geometry of a recovery file without their BLAKE3.
fn recovery() -> Vec<u8> {
    let geometry = Geometry { shard_len: 64, run: 3, parity: 2, pad: 10, starts: vec![300, 1000, 1500] };
    let recovery = Recovery { number: 1, count: 2, head_len: 100, file_len: 2000, set: [7; 32], geometry };
    let (header, geometry) = recovery.encode().expect("it is sound");
    [&header[..80], &geometry[..geometry.len() - 32]].concat()
}

/// Returns all seeds.
pub fn seeds(vectors: &[Vector]) -> Vec<Seed> {
    let mut seeds = Vec::new();
    for vector in vectors.iter().filter(|vector| vector.name.starts_with("good-")) {
        let Ok(opened) = open(&vector.bytes, &[usize::MAX]) else { continue };
        let bundle = match opened {
            Opened::Whole(bundle) => bundle,
            Opened::Delta(delta) => {
                seeds.extend(of_delta(vector, vectors, &delta));
                continue;
            }
        };
        let mut add = |target, bytes: Vec<u8>| seeds.push((target, vector.name.clone(), bytes));
        let (piece_log2, layout) =
            (bundle.head.root().maxima.piece_log2 - 12, bundle.layout.encode().expect("it fits"));
        let chunks_at = usize::try_from(bundle.head.chunks_at()).expect("vectors are small");
        let chunks = &vector.bytes[chunks_at..];
        add("preamble_head", bundle.head.encode());
        add("index", bundle.index.bytes().to_vec());
        add("layout", layout_input(piece_log2, bundle.index.bytes(), &layout, &[]));
        let mut add = |target, bytes: Vec<u8>| seeds.push((target, vector.name.clone(), bytes));
        add("bundle_deep", layout_input(piece_log2, bundle.index.bytes(), &layout, chunks));
        add("opener", [&[0, 7, 100, 255][..], &vector.bytes].concat());
        if let Some(chunk) = bundle.layout.chunks.first() {
            let len = usize::try_from(chunk.stored_len).expect("32 bits");
            add("frame", [&[0][..], &chunk.len.to_le_bytes()[..3], &chunks[..len]].concat());
        }
    }
    let requests = load_requests().into_iter().filter(|vector| vector.expect == "ok");
    seeds.extend(requests.map(|vector| ("request", vector.name, vector.bytes[..vector.bytes.len() - 32].to_vec())));
    let lists = load_lists().into_iter().filter(|vector| vector.expect == "ok");
    seeds.extend(lists.map(|vector| ("channel", vector.name, vector.bytes[..vector.bytes.len() - 32].to_vec())));
    for vector in load_volumes().into_iter().filter(|vector| vector.expect == "ok") {
        seeds.push(("volume", vector.name, [&vector.bytes[..80], &vector.bytes[112..]].concat()));
    }
    seeds.push(("recovery", "of-three-columns".into(), recovery()));
    seeds.extend(signatures());
    let signed = vectors.iter().find(|vector| vector.name == "kernel-signature").expect("it is a vector");
    let head = open_whole(&signed.bytes).expect("it is sound").head;
    seeds.push(("kernel_signature", "p256".into(), kernel_signature(head.signed())));
    seeds.push(("kernel_signature", "certificate".into(), CERTIFICATE.to_vec()));
    seeds.extend(ostree_objects());
    seeds.extend(suffixes());
    seeds.extend(verity_images());
    seeds
}

/// Returns the seeds of a delta: the difference with its base, the head, and the whole file.
fn of_delta(vector: &Vector, all: &[Vector], delta: &Delta) -> Vec<Seed> {
    let base = all.iter().find(|base| vector.bases.first() == Some(&base.name)).expect("its base is a vector");
    let base = open_whole(&base.bytes).expect("a base is taken");
    let seed = |target, bytes| (target, vector.name.clone(), bytes);
    vec![
        seed("preamble_head", delta.head.encode()),
        seed(
            "delta_layout",
            delta_layout_input(
                delta.head.root().maxima.piece_log2 - 12,
                &delta.difference.encode().expect("it fits"),
                &delta.layout.encode().expect("it fits"),
            ),
        ),
        seed("difference", difference_input(base.index.bytes(), &delta.difference.encode().expect("it fits"))),
        seed("opener", [&[0, 7, 100, 255][..], &vector.bytes].concat()),
    ]
}

/// Returns a dm-verity superblock with a small tree, and a squashfs and an EROFS image with one appended.
fn verity_images() -> Vec<Seed> {
    let tree = |algorithm: &[u8], at: usize| {
        let mut bytes = b"verity\0\0\x01\0\0\0\x01\0\0\0".to_vec();
        bytes.resize(32, 7);
        bytes.extend(algorithm);
        bytes.resize(64, 0);
        bytes.extend([512_u32, 512].map(u32::to_le_bytes).concat());
        bytes.extend(2_u64.to_le_bytes());
        bytes.extend(b"\x04\0\0\0\0\0\0\0salt");
        // The superblock, the only block of the tree, and data if there is none before.
        bytes.resize(if at == 0 { 2048 } else { 1024 }, 0);
        bytes
    };
    let image = |fields: &[(usize, &[u8])], tree: &[u8]| {
        let mut image = vec![0; 4096];
        fields.iter().for_each(|(at, bytes)| image[*at..at + bytes.len()].copy_from_slice(bytes));
        [image, tree.to_vec()].concat()
    };
    let squashfs: [(usize, &[u8]); 2] = [(0, b"hsqs"), (40, &4000_u64.to_le_bytes())];
    let erofs: [(usize, &[u8]); 3] = [(1024, b"\xe2\xe1\xf5\xe0"), (1036, b"\x0c"), (1060, b"\x01")];
    [
        ("superblock", tree(b"sha256", 0)),
        ("squashfs", image(&squashfs, &tree(b"sha256", 4096))),
        ("erofs", image(&erofs, &tree(b"sha512", 4096))),
    ]
    .map(|(name, bytes)| ("dm_verity", name.to_owned(), bytes))
    .into()
}

/// Returns byte differences from a prefix: adding, copying, and both in turn.
fn suffixes() -> Vec<Seed> {
    let of = |runs: &[(u32, u32, i64)], added: &[u8], copied: &[u8]| ByteDifference {
        runs: runs.to_vec(),
        added: added.to_vec(),
        copied: copied.to_vec(),
        tail: Vec::new(),
    };
    let seeds = [
        ("adds", of(&[(4, 0, 0)], &[0, 1, 255, 0], b"")),
        ("copies", of(&[(0, 4, 8)], b"", b"copy")),
        ("turns", of(&[(2, 1, 3), (3, 0, -4), (0, 31, 1)], &[0, 0, 1, 0, 0], b"as many bytes as three runs need")),
    ];
    let seed = |(name, suffix): (&str, ByteDifference)| {
        let len = short(suffix.added.len() + suffix.copied.len());
        ("suffix", name.to_owned(), suffix_input(len, b"a prefix", &suffix.encode()))
    };
    seeds.into_iter().map(seed).collect()
}

/// Returns an OSTree object of each type.
fn ostree_objects() -> Vec<Seed> {
    let xattrs = vec![Xattr { name: b"user.note".to_vec(), value: b"1".to_vec() }];
    let of = |mode| Attributes { mode, uid: 1000, gid: 0, xattrs: xattrs.clone().try_into().expect("they fit") };
    let (regular, symlink, directory) = (of(0o100_644), of(0o120_777), of(0o040_755));
    let tree =
        DirTree { files: vec![(b"a", &[1; 32]), (b"b", &[2; 32])], directories: vec![(b"c", &[3; 32], &[4; 32])] };
    // ostree.ref-binding is ['main'], and ostree.collection-binding is 'a.b'.
    let metadata = b"ostree.ref-binding\0\0\0\0\0\0main\0\x05\0as\x13\0\0\0\0\0\0ostree.collection-binding\0\0\0\0\0\0\0a.b\0\0s\x1a\x22\x4f";
    let commit = Commit {
        metadata: Dictionary::parse(metadata).expect("it is in normal form"),
        collection_binding: None,
        parent: Some(&[5; 32]),
        related: &[],
        subject: "subject",
        body: "body",
        timestamp: 1_700_000_000,
        root_tree: &[6; 32],
        root_meta: &[7; 32],
    };
    let objects = [
        ("dirtree", tree.encode()),
        ("dirmeta", dirmeta::encode(&directory)),
        ("ostreemeta", ostreemeta::encode(&regular)),
        ("header", file::encode_header(&symlink, "target")),
        ("archive-header", file::encode_archive_header(4, &regular, "")),
        ("commit", commit.encode()),
        ("dictionary", metadata.to_vec()),
    ];
    objects.into_iter().map(|(name, bytes)| ("ostree_object", name.to_owned(), bytes)).collect()
}

fn signatures() -> Vec<Seed> {
    let mut seeds: Vec<Seed> = Vec::new();
    let keys = [
        ("ed25519", Key::Ed25519(1)),
        ("ecdsa", Key::EcdsaP256),
        ("sk-ed25519", Key::SkEd25519),
        ("sk-ecdsa", Key::SkEcdsaP256),
        ("rsa", Key::Rsa3072),
    ];
    let mut lines = String::from("# who may sign\n");
    for (name, key) in keys {
        seeds.push(("sshsig", name.into(), key.sign(b"message")));
        lines.push_str(&format!("{} {name}\n", key.allowed("test,t*,!no")));
    }
    let armoured = Base64::encode_string(&Key::Ed25519(1).sign(b"message"));
    let lines_of_70: Vec<&str> =
        armoured.as_bytes().chunks(70).filter_map(|line| std::str::from_utf8(line).ok()).collect();
    let armour = format!("-----BEGIN SSH SIGNATURE-----\n{}\n-----END SSH SIGNATURE-----\n", lines_of_70.join("\n"));
    seeds.push(("sshsig", "armour".into(), armour.into()));
    let window = "\"a b\" namespaces=\"git,sealift\",valid-after=\"20200101Z\",valid-before=\"20300101120000Z\"";
    seeds.push(("allowed_signers", "window".into(), format!("{window} {}\n", Key::Ed25519(1).line()).into()));
    seeds.push(("allowed_signers", "types".into(), lines.into()));
    seeds.push(("revocation", "lines".into(), format!("# gone\n{}\n", Key::Ed25519(1).line()).into()));
    seeds.push(("revocation", "krl".into(), krl()));
    let profile = b"# sealift order 1\nusr/bin/init\n./#a\\n\\xff\\\\b\t0-65535,1048576-1114111\n";
    seeds.push(("order_profile", "ranges".into(), profile.to_vec()));
    seeds.push(("order_profile", "profile".into(), b"# boot\n/usr/bin/init\n./etc/fstab\r\n\n.hidden\n".to_vec()));
    seeds
}

/// Returns a binary OpenSSH revocation list, with a section of each kind that names keys.
fn krl() -> Vec<u8> {
    let mut out = b"SSHKRL\n\0\0\0\0\x01".to_vec();
    out.extend([0; 24]);
    out.extend(strings(&[b"", b"comment"]));
    for (kind, section) in
        [(2, strings(&[&Key::Ed25519(1).blob()])), (3, strings(&[&[1; 20]])), (5, strings(&[&[2; 32]]))]
    {
        out.push(kind);
        out.extend(strings(&[&section]));
    }
    out
}
