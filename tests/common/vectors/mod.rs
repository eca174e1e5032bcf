//! The vectors: each is a valid bundle, or a valid bundle with one edit.

mod channel;
mod content;
mod delta;
mod difference;
mod difference_ostree;
mod good;
mod head;
mod images;
mod index;
mod kernel_signature;
mod layout;
mod ostree;
mod recipes;
mod recipes_coders;
mod recipes_delta;
mod recovery;
mod request;
mod signed;
mod volume;

use crate::bundle::{Bundle, Edit, Packing};
use crate::bytes::Section;
use crate::reader::content;
use crate::tree::{dir, file, link, symlink};
use crate::vector::{Check, Trust, Vector};

/// Returns all vectors.
pub fn all() -> Vec<Vector> {
    let mut vectors: Vec<Vector> = [
        ("core", head::vectors()),
        ("core", index::vectors()),
        ("core ostree", ostree::vectors()),
        ("core", layout::vectors()),
        ("core", content::vectors()),
        ("core delta", delta::vectors()),
        ("core delta", difference::vectors()),
        ("core delta ostree", difference_ostree::vectors()),
        ("core images", images::vectors()),
        ("core recipes", recipes::vectors()),
        ("core delta recipes", recipes_delta::vectors()),
        ("core recipes", recipes_coders::vectors()),
        ("core delta requests", request::vectors()),
        ("core lists trust", channel::vectors()),
        ("core volumes", volume::vectors()),
        ("core recovery volumes", recovery::vectors()),
        ("core trust", signed::vectors()),
        ("core kernel-signatures trust", kernel_signature::vectors()),
        ("core", good::vectors()),
    ]
    .into_iter()
    .flat_map(|(needs, vectors)| vectors.into_iter().map(move |vector| with_needs(needs, vector)))
    .collect();
    vectors.iter_mut().for_each(with_making);
    vectors.sort_by(|a, b| a.name.cmp(&b.name));
    let contents: Vec<Option<String>> = vectors
        .iter()
        .map(|vector| {
            let content = (vector.expect == "ok").then(|| content(vector, &vectors))?;
            Some(content.unwrap_or_else(|kind| panic!("{}: the reader refuses it: {}", vector.name, kind.word())))
        })
        .collect();
    for (vector, content) in vectors.iter_mut().zip(contents) {
        vector.content = content;
    }
    vectors
}

/// The vectors of recipes that each reader rejects which knows them; the others, only one that makes objects does (recipes 1).
const STORED: [&str; 21] = [
    "limit-recipes-leaves",
    "recipes-count",
    "recipes-grouped",
    "recipes-holes",
    "recipes-leaf-empty",
    "recipes-leaf-id",
    "recipes-leaf-id-carried",
    "recipes-leaf-of-index",
    "recipes-leaf-twice",
    "recipes-none",
    "recipes-object-twice",
    "recipes-object-unknown",
    "recipes-piece-chunk",
    "recipes-prefix-unknown-view",
    "recipes-section-flag",
    "recipes-section-missing",
    "recipes-sums-flag",
    "recipes-sums-leaves",
    "recipes-sums-made",
    "recipes-sums-missing",
    "recipes-view-in-full",
];

/// States that a vector is for readers that make objects, if no other rejects it.
fn with_making(vector: &mut Vector) {
    let mut needs: Vec<&str> = vector.needs.split(' ').collect();
    if vector.expect != "ok" && needs.contains(&"recipes") && !STORED.contains(&vector.name.as_str()) {
        needs.push("making");
        needs.sort_unstable();
        vector.needs = needs.join(" ");
    }
}

/// States the classes of readers that a vector is for, unless it does so itself.
fn with_needs(needs: &str, mut vector: Vector) -> Vector {
    if vector.needs.is_empty() {
        vector.needs = needs.into();
    }
    vector
}

/// Returns the bundle that most vectors edit. Entries 0 to 4 are `a`, `b`, `d`, `e` and `l`, 5 and 6 are `d/f` and `d/g`; inodes 0 to 6 are the
/// root, `a` (and `b`), `d`, `e`, `l`, `d/f` and `d/g`. Object 0 is `one`, of `a` and `d/g`; object 1 is `two`, of `d/f`.
fn small() -> Bundle {
    let d = dir([("f", file("two\n")), ("g", file("one\n"))]);
    let tree = dir([("a", file("one\n")), ("b", link(1)), ("d", d), ("e", dir([])), ("l", symlink("a"))]);
    Bundle::new(&[("main", tree)], Packing::default())
}

fn vector(name: &str, expect: &str, comment: &str, bytes: Vec<u8>) -> Vector {
    Vector { name: name.into(), expect: expect.into(), comment: comment.into(), bytes, ..Vector::default() }
}

/// Returns the small bundle with one fault.
fn reject(name: &str, kind: &str, comment: &str, edit: impl FnOnce(&mut Bundle)) -> Vector {
    reject_from(small(), name, kind, comment, edit)
}

/// Returns a bundle with one fault.
fn reject_from(mut from: Bundle, name: &str, kind: &str, comment: &str, edit: impl FnOnce(&mut Bundle)) -> Vector {
    edit(&mut from);
    vector(name, kind, comment, from.encode())
}

/// Returns a bundle that is accepted.
fn accept(name: &str, comment: &str, from: Bundle) -> Vector {
    vector(name, "ok", comment, from.encode())
}

impl Vector {
    /// States the classes of readers that it is for.
    fn needs(mut self, needs: &str) -> Self {
        self.needs = needs.into();
        self
    }

    fn check(mut self, check: Check) -> Self {
        self.check = check;
        self
    }

    fn trust(mut self, trust: Trust) -> Self {
        self.trust = Some(trust);
        self
    }
}

/// Returns an edit that puts a zero byte after the last field of a section.
fn longer(id: u16) -> Edit<Vec<Section>> {
    edit(move |sections: &mut Vec<Section>| {
        let section = sections.iter_mut().find(|section| section.id == id);
        section.expect("the section is there").payload.push(0);
    })
}

/// Returns an edit for a bundle's `edits`.
fn edit<T>(edit: impl FnOnce(&mut T) + 'static) -> Edit<T> {
    Some(Box::new(edit))
}
