//! The entries of a bundle, a few rows at a time.

use js_sys::Array;
use sealift_format::difference::{Becomes, EditedKind};
use sealift_format::{Directory, Entry, Index, InodeKind, Opened, Ref, Row, num};
use sealift_verify::escape;
use wasm_bindgen::JsValue;

use crate::error::misuse;
use crate::number::{rounded, seconds_to_js};
use crate::object::object;

pub(crate) fn refs(opened: &Opened) -> JsValue {
    let Opened::Whole(bundle) = opened else { return Array::new().into() };
    let list = bundle.index.refs().iter().map(|reference| {
        let children = bundle.index.directory(reference.directory).children;
        object(&[
            ("name", reference.name.as_str().into()),
            ("directory", reference.directory.number().into()),
            ("children", children.into()),
        ])
    });
    list.collect::<Array>().into()
}

/// Returns how many entries the trees have, and the bytes of their files. What only parents of a commit bring is not in them.
pub(crate) fn listed(opened: &Opened) -> Result<JsValue, JsValue> {
    let index = index(opened)?;
    let size = |entry: &Entry| match index.inode(entry.inode).kind {
        InodeKind::Regular(object) if entry.is_first_name() => index.object(object).size,
        _ => 0,
    };
    let bytes = index.entries().iter().map(size).fold(0, u64::saturating_add);
    Ok(object(&[("entries", rounded(num::wide(index.entries().len())).into()), ("bytes", rounded(bytes).into())]))
}

pub(crate) fn children(opened: &Opened, directory: u32, from: u32, count: u32) -> Result<JsValue, JsValue> {
    let index = index(opened)?;
    let row = Row::new(directory).and_then(|row| row.get(index.directories()));
    let range = row.ok_or_else(|| misuse("there is no such directory"))?.entries().numbers();
    let start = range.start.saturating_add(from).min(range.end);
    let end = start.saturating_add(count).min(range.end);
    Ok((start..end).map(|number| entry(index, number)).collect::<Result<Array, JsValue>>()?.into())
}

pub(crate) fn entries(opened: &Opened, numbers: &[u32]) -> Result<JsValue, JsValue> {
    let index = index(opened)?;
    Ok(numbers.iter().map(|&number| entry(index, number)).collect::<Result<Array, JsValue>>()?.into())
}

pub(crate) fn search(opened: &Opened, text: &str) -> Vec<u32> {
    let Opened::Whole(bundle) = opened else { return Vec::new() };
    let (index, wanted) = (&bundle.index, text.to_ascii_lowercase().into_bytes());
    let by_path = wanted.contains(&b'/');
    let (mut found, mut name) = (Vec::new(), Vec::new());
    for (number, directory) in Row::all(index.directories()) {
        let mut path = if by_path { index.directory_path(number) } else { Vec::new() };
        if by_path && !path.is_empty() {
            path.push(b'/');
        }
        for number in directory.entries() {
            name.clone_from(&path);
            name.extend(index.name(index.entry(number)));
            name.make_ascii_lowercase();
            if contains(&name, &wanted) {
                found.push(number.number());
            }
        }
    }
    found
}

fn contains(name: &[u8], wanted: &[u8]) -> bool {
    wanted.is_empty() || name.windows(wanted.len()).any(|part| part == wanted)
}

pub(crate) fn find(opened: &Opened, path: &[u8]) -> Result<u32, JsValue> {
    let index = index(opened)?;
    let colon = path.iter().position(|byte| *byte == b':');
    let named = colon.and_then(|at| Some((index.find_ref(std::str::from_utf8(&path[..at]).ok()?)?, &path[at + 1..])));
    let (reference, path) = match (named, index.refs()) {
        (Some(named), _) => named,
        (None, [only]) => (only, path),
        (None, _) => return Err(misuse("there are several refs: a path begins with REF:")),
    };
    let mut directory = Some(reference.directory);
    let mut found = None;
    for name in path.split(|byte| *byte == b'/').filter(|name| !matches!(*name, b"" | b".")) {
        let missing = || misuse(&format!("the bundle has no file {}", escape::bytes(path)));
        let within = directory.ok_or_else(missing)?;
        let (number, entry) = index.find_entry(index.directory(within), name).ok_or_else(missing)?;
        found = Some(number.number());
        directory = match index.inode(entry.inode).kind {
            InodeKind::Directory(directory) => Some(directory),
            _ => None,
        };
    }
    found.ok_or_else(|| misuse("the path names the root of a tree"))
}

pub(crate) fn edits(opened: &Opened) -> JsValue {
    let Opened::Delta(delta) = opened else { return Array::new().into() };
    let list = delta.difference.edited_names().map(|edit| {
        let kind = match edit.becomes {
            Becomes::Added => "added",
            Becomes::Changed => "changed",
            Becomes::Metadata => "metadata",
            Becomes::Removed => "removed",
        };
        let path: &[u8] = if edit.path.is_empty() { b"." } else { &edit.path };
        object(&[
            ("ref", edit.reference.into()),
            ("name", escape::bytes(path).into()),
            ("path", escape::percent(path).into()),
            ("kind", kind.into()),
            ("belowNew", edit.is_below_new.into()),
            ("type", edit.file_type.map_or(JsValue::UNDEFINED, |file_type| file_type.word().into())),
            ("size", edit.size.map_or(JsValue::UNDEFINED, |size| rounded(size).into())),
        ])
    });
    list.collect::<Array>().into()
}

/// Returns what a delta bundle changes without listing names: the refs that are OSTree commits (ostree 8), and whether a rule changes the times of
/// files.
pub(crate) fn unlisted(opened: &Opened) -> JsValue {
    let Opened::Delta(delta) = opened else { return JsValue::UNDEFINED };
    let commits = delta.difference.refs().iter().filter(|edited| matches!(edited.kind, EditedKind::Commit(_)));
    let commits = commits.map(|edited| JsValue::from_str(&edited.name)).collect::<Array>();
    object(&[("commits", commits.into()), ("times", (!delta.difference.times().is_empty()).into())])
}

/// Returns the index, or an error for a bundle without one.
pub(crate) fn index(opened: &Opened) -> Result<&Index, JsValue> {
    match opened {
        Opened::Whole(bundle) => Ok(&bundle.index),
        Opened::Delta(_) => Err(misuse("this is a delta bundle: its files are known only with its bases")),
    }
}

fn entry(index: &Index, number: u32) -> Result<JsValue, JsValue> {
    let found = Row::new(number).and_then(|own| Some((own, own.get(index.entries())?)));
    let (own, row) = found.ok_or_else(|| misuse("there is no such entry"))?;
    let parent = holder(index, own);
    let (path, inode) = (index.path(parent, own), index.inode(row.inode));
    let attributes = index.attributes(inode);
    let none = || JsValue::UNDEFINED;
    let (size, target, device, directory) = match inode.kind {
        InodeKind::Regular(object) => (rounded(index.object(object).size).into(), none(), None, none()),
        InodeKind::Symlink(target) => (none(), escape::bytes(index.symlink_target(target)).into(), None, none()),
        InodeKind::CharDevice(device) | InodeKind::BlockDevice(device) => {
            (none(), none(), Some(index.device(device)), none())
        }
        InodeKind::Directory(directory) => (none(), none(), None, directory.number().into()),
        InodeKind::Fifo | InodeKind::Socket => (none(), none(), None, none()),
    };
    let children = match inode.kind {
        InodeKind::Directory(directory) => index.directory(directory).children.into(),
        _ => none(),
    };
    Ok(object(&[
        ("entry", number.into()),
        ("ref", ref_of(index, parent).map_or(none(), |reference| reference.name.as_str().into())),
        ("name", escape::bytes(index.name(row)).into()),
        ("path", escape::percent(&path).into()),
        ("shown", escape::bytes(&path).into()),
        ("type", attributes.file_type().word().into()),
        ("mode", (attributes.mode & 0o7777).into()),
        ("uid", attributes.uid.into()),
        ("gid", attributes.gid.into()),
        ("mtime", seconds_to_js(inode.mtime).into()),
        ("size", size),
        ("target", target),
        ("major", device.map_or(none(), |device| device.major.into())),
        ("minor", device.map_or(none(), |device| device.minor.into())),
        ("inode", row.inode.number().into()),
        ("directory", directory),
        ("children", children),
    ]))
}

/// Returns the directory whose block contains an entry: the last one that begins at or before it and is not empty.
fn holder(index: &Index, entry: Row<Entry>) -> Row<Directory> {
    let begins = |directory: &Directory| directory.entries().numbers().start <= entry.number();
    let above = index.directories().partition_point(begins);
    let before = index.directories()[..above].iter().rposition(|directory| directory.entries().contains(entry));
    before.and_then(|before| Row::after(before).ok()).unwrap_or(Row::FIRST)
}

fn ref_of(index: &Index, directory: Row<Directory>) -> Option<&Ref> {
    index.refs().iter().find(|reference| reference.directories().contains(directory))
}
