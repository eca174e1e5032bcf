//! What a reader finds in a vector, as the JSON that stands beside it (spec/vectors/README.md).

use sealift::volume::VolumeStats;
use sealift::{Bundle, OpenVolume};
use sealift_format::{
    Device, Envelope, Head, Image, Index, Inode, InodeKind, ListedFile, Recovery, Ref, Request, RootBase, Row,
    SignedList,
};
use sealift_verify::trust::unknown_envelopes;

/// Returns the content of a bundle; for a delta bundle, that of what it makes with its bases.
pub fn of_bundle(bundle: &Bundle) -> String {
    let root = bundle.head.root();
    let identity = &root.identity;
    let annotations = root.annotations.iter().map(|(key, value)| (text(key), text(value)));
    let mut content = Content::default();
    content.field("name", &text(&identity.name));
    content.field("version", &identity.version.to_string());
    content.field("created", &identity.created.to_string());
    content.field("expires", &identity.expires.unwrap_or(0).to_string());
    content.field("compatible", &list(identity.compatible.iter().map(|tag| text(tag))));
    content.field("annotations", &object(annotations));
    content.field("unknown_envelopes", &list(unknown_envelopes(&bundle.head).iter().map(u32::to_string)));
    content.field("index_digest", &digits(&root.contents.index_digest));
    if let Some(bases) = &root.bases {
        content.rows("bases", bases.bases.iter().map(|base| object(base_fields(base))));
    }
    if !root.images.is_empty() {
        content.rows("images", root.images.iter().map(image_row));
    }
    content.index(&bundle.index)
}

/// Returns the content of a request whose index has been completed.
pub fn of_request(request: &Request, index: &Index) -> String {
    let mut content = Content::default();
    for (key, value) in base_fields(&request.base) {
        content.field(key.trim_matches('"'), &value);
    }
    content.index(index)
}

/// Returns the content of a list.
pub fn of_list(signed: &SignedList) -> String {
    let (mut content, list) = (Content::default(), signed.list());
    content.field("name", &text(&list.name));
    content.field("sequence", &list.sequence.to_string());
    content.field("created", &list.created.to_string());
    content.field("expires", &list.expires.to_string());
    let unknown = signed.envelopes().map(|(kind, _)| kind).filter(|kind| *kind != Envelope::SSH_SIGNATURE);
    let unknown: Vec<String> = unknown.map(|kind| kind.to_string()).collect();
    content.field("unknown_envelopes", &format!("[{}]", unknown.join(",")));
    content.rows("files", list.files.iter().map(file_row));
    content.end()
}

fn file_row(row: &ListedFile) -> String {
    let bases: Vec<String> = row.bases.iter().map(|base| digits(base)).collect();
    object(keyed([
        ("file", text(&row.file)),
        ("version", row.version.to_string()),
        ("created", row.created.to_string()),
        ("len", row.len.to_string()),
        ("root_digest", digits(&row.root_digest)),
        ("index_digest", digits(&row.index_digest)),
        ("bases", format!("[{}]", bases.join(","))),
    ]))
}

/// Returns the content of a volume that was checked alone.
pub fn of_volume(volume: &OpenVolume, stats: &VolumeStats) -> String {
    let (header, identity) = (volume.header(), &volume.head().root().identity);
    let mut content = Content::default();
    content.field("name", &text(&identity.name));
    content.field("version", &identity.version.to_string());
    content.field("number", &header.number.to_string());
    content.field("count", &header.count.to_string());
    content.field("first_chunk", &stats.first_chunk.to_string());
    content.field("chunks", &stats.chunks.to_string());
    format!("{{\n{}\n}}\n", content.0.join(",\n"))
}

/// Returns the content of a recovery file that was checked alone.
pub fn of_recovery(head: &Head, recovery: &Recovery) -> String {
    let identity = &head.root().identity;
    let mut content = Content::default();
    content.field("name", &text(&identity.name));
    content.field("version", &identity.version.to_string());
    content.field("number", &recovery.number.to_string());
    content.field("count", &recovery.count.to_string());
    content.field("columns", &recovery.geometry.starts.len().to_string());
    content.field("run", &recovery.geometry.run.to_string());
    content.field("parity", &recovery.geometry.parity.to_string());
    content.field("codewords", &recovery.geometry.codewords(recovery.file_len).to_string());
    format!("{{\n{}\n}}\n", content.0.join(",\n"))
}

/// There is one key per line; in a list of objects, one row per line.
#[derive(Default)]
struct Content(Vec<String>);

impl Content {
    fn field(&mut self, key: &str, value: &str) {
        self.0.push(format!("  \"{key}\": {value}"));
    }

    fn rows(&mut self, key: &str, rows: impl Iterator<Item = String>) {
        let rows: Vec<String> = rows.map(|row| format!("    {row}")).collect();
        self.field(key, &format!("[\n{}\n  ]", rows.join(",\n")));
    }

    fn index(mut self, index: &Index) -> String {
        self.rows("refs", index.refs().iter().map(|found| ref_row(index, found)));
        self.rows("entries", entries(index).into_iter());
        self.end()
    }

    fn end(self) -> String {
        format!("{{\n{}\n}}\n", self.0.join(",\n"))
    }
}

fn base_fields(base: &RootBase) -> Vec<(String, String)> {
    let (name, version) = base.identity.as_ref().map_or(("", 0), |(name, version)| (name, *version));
    let fields = [
        ("name", text(name)),
        ("version", version.to_string()),
        ("index_digest", digits(&base.index_digest)),
        ("index_len", base.index_len.to_string()),
    ];
    keyed(fields).collect()
}

fn image_row(image: &Image) -> String {
    object(keyed([
        ("ref", image.reference.to_string()),
        ("version", image.version.to_string()),
        ("algorithm", image.digest.algorithm().number().to_string()),
        ("digest", digits(image.digest.as_bytes())),
    ]))
}

fn ref_row(index: &Index, found: &Ref) -> String {
    let mut row = vec![("name", text(&found.name))];
    match (&found.ostree, index.ostree()) {
        (Some(own), Some(ostree)) => {
            let commit = &ostree.objects()[usize::try_from(own.commit).expect("32 bits")];
            row.extend([("kind", text("ostree")), ("commit", digits(&commit.checksum))]);
            row.extend((!own.collection.is_empty()).then(|| ("collection", text(&own.collection))));
        }
        _ => row.push(("kind", text("tree"))),
    }
    object(keyed(row))
}

/// Returns a row for each root and entry in tree order.
fn entries(index: &Index) -> Vec<String> {
    let mut rows = Vec::new();
    for reference in index.refs() {
        rows.push(entry_row(index, &reference.name, b".", index.directory(reference.directory).inode));
        for directory in reference.directories() {
            for number in index.directory(directory).entries() {
                rows.push(entry_row(index, &reference.name, &index.path(directory, number), index.entry(number).inode));
            }
        }
    }
    rows
}

fn entry_row(index: &Index, reference: &str, path: &[u8], number: Row<Inode>) -> String {
    let inode = index.inode(number);
    let attributes = index.attributes(inode);
    let (kind, own) = match inode.kind {
        InodeKind::Directory(_) => ("dir", vec![]),
        InodeKind::Regular(object) => {
            let object = index.object(object);
            ("file", vec![("size", object.size.to_string()), ("id", digits(&object.id))])
        }
        InodeKind::Symlink(target) => ("symlink", vec![("target", name(index.symlink_target(target)))]),
        InodeKind::CharDevice(device) => ("char", device_fields(index, device)),
        InodeKind::BlockDevice(device) => ("block", device_fields(index, device)),
        InodeKind::Fifo => ("fifo", vec![]),
        InodeKind::Socket => ("socket", vec![]),
    };
    let mut row = vec![
        ("ref", text(reference)),
        ("path", name(path)),
        ("type", text(kind)),
        ("mode", (attributes.mode & 0o7777).to_string()),
        ("uid", attributes.uid.to_string()),
        ("gid", attributes.gid.to_string()),
        ("mtime", inode.mtime.to_string()),
        ("mtime_ns", inode.mtime_ns.to_string()),
    ];
    row.extend(own);
    if !attributes.xattrs.is_empty() {
        row.push(("xattrs", object(attributes.xattrs.iter().map(|xattr| (name(xattr.name), digits(xattr.value))))));
    }
    row.push(("inode", number.to_string()));
    object(keyed(row))
}

fn device_fields(index: &Index, device: Row<Device>) -> Vec<(&'static str, String)> {
    let device = index.device(device);
    vec![("major", device.major.to_string()), ("minor", device.minor.to_string())]
}

fn keyed<'a>(fields: impl IntoIterator<Item = (&'a str, String)>) -> impl Iterator<Item = (String, String)> {
    fields.into_iter().map(|(key, value)| (text(key), value))
}

fn object(fields: impl IntoIterator<Item = (String, String)>) -> String {
    let fields: Vec<String> = fields.into_iter().map(|(key, value)| format!("{key}:{value}")).collect();
    format!("{{{}}}", fields.join(","))
}

fn list(values: impl Iterator<Item = String>) -> String {
    format!("[{}]", values.collect::<Vec<_>>().join(","))
}

fn text(value: &str) -> String {
    serde_json::Value::from(value).to_string()
}

fn digits(bytes: &[u8]) -> String {
    text(&hex(bytes))
}

/// Returns a name as a JSON string. Control characters, bidirectional controls, `%` and invalid UTF-8 become `%` and two digits per byte.
fn name(name: &[u8]) -> String {
    let mut out = String::from("\"");
    let escape = |out: &mut String, bytes: &[u8]| bytes.iter().for_each(|byte| out.push_str(&format!("%{byte:02X}")));
    for chunk in name.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '"' | '\\' => out.extend(['\\', character]),
                '%'
                | '\0'..='\x1f'
                | '\x7f'..='\u{9f}'
                | '\u{61c}'
                | '\u{200e}'
                | '\u{200f}'
                | '\u{202a}'..='\u{202e}'
                | '\u{2066}'..='\u{2069}' => {
                    escape(&mut out, character.encode_utf8(&mut [0; 4]).as_bytes());
                }
                character => out.push(character),
            }
        }
        escape(&mut out, chunk.invalid());
    }
    out.push('"');
    out
}

/// Returns lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
