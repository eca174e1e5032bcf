//! The entries of a directory in a container.

use js_sys::Array;
use sealift_container::Anatomy;
use sealift_format::num::wide;
use sealift_verify::escape;
use wasm_bindgen::JsValue;

use crate::number::to_js;
use crate::object::object;
use crate::tree::{Child, Directory, Tree, What};

/// Returns `count` entries of a directory from `from` on; `None` if there is no such directory.
pub(crate) fn children(anatomy: &Anatomy, tree: &Tree, directory: usize, from: usize, count: usize) -> Option<JsValue> {
    let directory = tree.directories.get(directory)?;
    let shown = directory.children.iter().skip(from).take(count);
    Some(shown.map(|child| entry(anatomy, tree, directory, child)).collect::<Array>().into())
}

fn entry(anatomy: &Anatomy, tree: &Tree, within: &Directory, child: &Child) -> JsValue {
    let path = if within.path.is_empty() { child.name.clone() } else { [&within.path, &child.name[..]].join(&b'/') };
    let number = |number: usize| JsValue::from(to_js(wide(number)));
    let (kind, more): (&str, Vec<(&str, JsValue)>) = match child.what {
        What::Directory(directory) => {
            let count = tree.directories.get(directory).map_or(0, |directory| directory.children.len());
            ("dir", vec![("directory", number(directory)), ("children", number(count))])
        }
        What::File(member) => {
            let len = anatomy.members.get(member).map_or(0, |member| member.len);
            ("file", vec![("file", number(member)), ("size", to_js(len).into())])
        }
        What::Symlink(link) => {
            let target = anatomy.symlinks.get(link).map_or(&b""[..], |link| &link.target);
            ("symlink", vec![("target", escape::bytes(target).into())])
        }
    };
    let own = [
        ("name", escape::bytes(&child.name).into()),
        ("shown", escape::bytes(&path).into()),
        ("path", escape::percent(&path).into()),
        ("type", kind.into()),
    ];
    object(&[&own[..], &more].concat())
}
