//! The class exported to JavaScript.

use js_sys::{Array, TypeError, Uint8Array};
use sealift_container::{Anatomy, Blocks, ContainerFault, Content, Limits, ReadAt};
use sealift_format::num::{up_to, wide};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::cache::{Cache, Lack};
use crate::listing;
use crate::number::{natural, to_js};
use crate::object::object;
use crate::tree::Tree;

/// Containers in each other, of which a compressed file is one.
const DEPTH_MAX: usize = 16;
/// The longest content that one call returns, in bytes.
const LONGEST_READ: usize = 4 << 20;

/// A file of a bundle, and the containers that were opened in it.
#[wasm_bindgen]
pub struct Inside {
    cache: Cache,
    containers: Vec<Container>,
}

struct Container {
    /// The container that it is a file of, and that file; `None` for the bundle's file itself.
    of: Option<(usize, usize)>,
    depth: usize,
    anatomy: Anatomy,
    tree: Tree,
}

#[wasm_bindgen]
impl Inside {
    /// Returns a file of `length` bytes, none of which are here.
    ///
    /// # Errors
    /// Returns an error if that is not a valid number.
    #[wasm_bindgen(constructor)]
    pub fn new(length: f64) -> Result<Self, JsValue> {
        let len = natural(length).ok_or_else(|| misuse("length is not a whole number up to 2^53-1"))?;
        Ok(Self { cache: Cache::new(len), containers: Vec::new() })
    }

    /// Takes bytes that a call needs, after which the call must be repeated.
    ///
    /// # Errors
    /// Returns an error if they are not at its place.
    pub fn give(&mut self, offset: f64, bytes: &[u8]) -> Result<(), JsValue> {
        let is_taken = natural(offset).is_some_and(|offset| self.cache.give(offset, bytes));
        if is_taken { Ok(()) } else { Err(misuse("these are not the bytes that are needed")) }
    }

    /// Opens the file itself, or a file in a container that was opened. Returns the range that it needs, the number of the container and its kind, or why
    /// its bytes cannot be told apart; nothing if it is no container. What is in a compressed file is opened with it.
    ///
    /// # Errors
    /// Returns an error if there is no such file.
    #[wasm_bindgen(
        unchecked_return_type = "{ need?: [offset: number, length: number], container?: number, kind?: string, entries?: number, opaque?: string }"
    )]
    pub fn open(&mut self, container: Option<u32>, file: Option<u32>) -> Result<JsValue, JsValue> {
        let of = match (container, file) {
            (Some(container), Some(file)) => Some((size(container), size(file))),
            _ => None,
        };
        self.cache.begin();
        let opened = self.opened(of)?;
        if let Some(lack) = self.cache.lack() {
            return Ok(lacking(lack));
        }
        Ok(match opened {
            Ok(Some(number)) => {
                let container = self.container(number)?;
                let entries = container.tree.directories.first().map_or(0, |root| root.children.len());
                object(&[
                    ("container", to_js(wide(number)).into()),
                    ("kind", container.anatomy.kind.name().into()),
                    ("entries", to_js(wide(entries)).into()),
                ])
            }
            Ok(None) => object(&[]),
            Err(fault) => opaque(&fault),
        })
    }

    /// Returns `count` entries of a directory from `from` on. The root is directory 0.
    ///
    /// # Errors
    /// Returns an error if there is no such container or directory.
    #[wasm_bindgen(unchecked_return_type = "any[]")]
    pub fn children(&self, container: u32, directory: u32, from: u32, count: u32) -> Result<JsValue, JsValue> {
        let Container { anatomy, tree, .. } = self.container(size(container))?;
        let found = listing::children(anatomy, tree, size(directory), size(from), size(count));
        found.ok_or_else(|| misuse("there is no such directory"))
    }

    /// Returns bytes of a file in a container, at most 4 MiB and fewer if it ends before; or the range that it needs; or why it cannot be read.
    ///
    /// # Errors
    /// Returns an error if there is no such file.
    #[wasm_bindgen(
        unchecked_return_type = "{ need?: [offset: number, length: number], bytes?: Uint8Array, opaque?: string }"
    )]
    pub fn read(&self, container: u32, file: u32, offset: f64, length: u32) -> Result<JsValue, JsValue> {
        let offset = natural(offset).ok_or_else(|| misuse("offset is not a whole number up to 2^53-1"))?;
        let of = Some((size(container), size(file)));
        self.cache.begin();
        let mut found = Ok(Vec::new());
        self.with(of, &mut |bytes| {
            found = bytes.byte_len().and_then(|len| {
                let mut buffer = vec![0; up_to(len.saturating_sub(offset), size(length).min(LONGEST_READ))];
                bytes.read_exact_at(&mut buffer, offset.min(len))?;
                Ok(buffer)
            });
        })?;
        Ok(match (self.cache.lack(), found) {
            (Some(lack), _) => lacking(lack),
            (None, Ok(bytes)) => object(&[("bytes", Uint8Array::from(&bytes[..]).into())]),
            (None, Err(error)) => opaque(&error),
        })
    }
}

impl Inside {
    /// Returns the number of a container, which is opened if it was not.
    fn opened(&mut self, of: Option<(usize, usize)>) -> Result<Result<Option<usize>, ContainerFault>, JsValue> {
        let number = match self.containers.iter().position(|known| known.of == of) {
            Some(number) => number,
            None => match self.taken_apart(of)? {
                Ok(Some(container)) => {
                    self.containers.push(container);
                    self.containers.len() - 1
                }
                Ok(None) => return Ok(Ok(None)),
                Err(fault) => return Ok(Err(fault)),
            },
        };
        // What is in a compressed file is what is meant, if it is a container.
        let [member] = &self.container(number)?.anatomy.members[..] else { return Ok(Ok(Some(number))) };
        if member.path.is_empty()
            && let Ok(Some(inner)) = self.opened(Some((number, 0)))?
        {
            return Ok(Ok(Some(inner)));
        }
        Ok(Ok(Some(number)))
    }

    fn taken_apart(&self, of: Option<(usize, usize)>) -> Result<Result<Option<Container>, ContainerFault>, JsValue> {
        let depth = of.map_or(Ok(0), |(outer, _)| self.container(outer).map(|outer| outer.depth + 1))?;
        if depth >= DEPTH_MAX {
            return Ok(Ok(None));
        }
        let mut limits = Limits::default();
        (limits.work, limits.memory, limits.decoded) = (512 << 20, 128 << 20, 512 << 20);
        let mut found = Ok(None);
        self.with(of, &mut |bytes| found = Anatomy::of(bytes, &limits))?;
        Ok(match found {
            // It may have been made of what is not here.
            Ok(Some(anatomy)) if self.cache.lack().is_none() => match Tree::of(&anatomy) {
                Some(tree) => Ok(Some(Container { of, depth, anatomy, tree })),
                None => Err(ContainerFault::Limit { kind: anatomy.kind, what: "it has too many directories" }),
            },
            Ok(_) => Ok(None),
            Err(fault) => Err(fault),
        })
    }

    /// Calls `then` with the bytes of a file.
    fn with(&self, of: Option<(usize, usize)>, then: &mut dyn FnMut(&dyn ReadAt)) -> Result<(), JsValue> {
        let Some((outer, file)) = of else {
            then(&self.cache);
            return Ok(());
        };
        let container = self.container(outer)?;
        let member = container.anatomy.members.get(file).ok_or_else(|| misuse("there is no such file"))?;
        self.with(container.of, &mut |bytes| {
            let blocks = Blocks::new(bytes, &container.anatomy);
            then(&Content::new(&blocks, member));
        })
    }

    fn container(&self, number: usize) -> Result<&Container, JsValue> {
        self.containers.get(number).ok_or_else(|| misuse("there is no such container"))
    }
}

fn lacking(lack: Lack) -> JsValue {
    match lack {
        Lack::Bytes(offset, len) => object(&[("need", Array::of2(&to_js(offset).into(), &to_js(len).into()).into())]),
        Lack::Room => opaque(&"more bytes of it are needed at once than this reader keeps in memory"),
    }
}

fn opaque(why: &impl ToString) -> JsValue {
    object(&[("opaque", why.to_string().into())])
}

/// Returns an error for misuse by the caller.
fn misuse(what: &str) -> JsValue {
    TypeError::new(what).into()
}

fn size(number: u32) -> usize {
    sealift_format::num::at(number)
}
