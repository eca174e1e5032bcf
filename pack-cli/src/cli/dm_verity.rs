//! Prints the disk images of a bundle that have dm-verity hash trees.

use std::io::{self, Write};

use sealift::dm_verity::{Compared, VerityImage, VerityImages, VerityTree};
use sealift::{Bundle, escape};
use sealift_format::hex;
use sealift_format::num::wide;
use serde::Serialize;

use super::failure::Failure;
use super::human::count;
use super::show::{BAD, BOLD, Show, WARN, fact};

/// An image with its path, which has the name of its ref if there are several.
struct Shown<'a> {
    image: &'a VerityImage,
    path: String,
}

fn all<'a>(found: &'a VerityImages, bundle: &Bundle) -> impl Iterator<Item = Shown<'a>> {
    let has_several = bundle.index.refs().len() > 1;
    found.images.iter().map(move |image| {
        let path = escape::bytes(&image.path);
        let path = if has_several { format!("{}:{path}", escape::text(&image.reference)) } else { path };
        Shown { image, path }
    })
}

/// Prints what is needed to compare each image with what boots, or with `veritysetup`.
pub(crate) fn print_facts(out: &mut dyn Write, found: &VerityImages, bundle: &Bundle) -> io::Result<()> {
    writeln!(out, "\n{BOLD}Disk images with dm-verity{BOLD:#}")?;
    if found.images.is_empty() {
        fact(out, "", "none")?;
    }
    for Shown { image, path } in all(found, bundle) {
        fact(out, "Image", path)?;
        if let Some(partitions) = &image.partitions {
            fact(out, "Partition", partitions.data)?;
        }
        let place = match (&image.tree_path, &image.partitions) {
            (Some(path), _) => format!("in {}", escape::bytes(path)),
            (None, Some(partitions)) => format!("in partition {} of the same file", partitions.tree),
            (None, None) => format!("in the same file, from byte {} on", image.tree_offset),
        };
        fact(out, "Hash tree", place)?;
        let VerityTree { tree, root_hash, .. } = match &image.tree {
            Ok(found) => found,
            Err(error) => {
                fact(out, "Root hash", format!("unknown: {error}"))?;
                continue;
            }
        };
        let of = tree.superblock();
        let lens = format!("data blocks of {} bytes, hash blocks of {} bytes", of.data_block_len, of.hash_block_len);
        fact(out, "Algorithm", format!("{}, {lens}", of.algorithm))?;
        fact(out, "Salt", if of.salt.is_empty() { "none".to_owned() } else { hex(&of.salt) })?;
        fact(out, "Root hash", hex(root_hash))?;
        fact(out, "", "by the top block of the tree; `sealift verify --deep` compares every block")?;
        if let Some(fault) = image.tree.as_ref().ok().and_then(VerityTree::fault) {
            fact(out, "", format!("{BAD}{fault}{BAD:#}"))?;
        }
    }
    Ok(())
}

/// Prints that the images of a delta bundle are not known.
pub(crate) fn print_unknown(out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "\n{BOLD}Disk images with dm-verity{BOLD:#}")?;
    fact(out, "", "known only with the base; `sealift verify --deep --base BASE` shows them")
}

/// Prints what was compared of each image.
pub(crate) fn print_compared(out: &mut dyn Write, found: &VerityImages, bundle: &Bundle) -> io::Result<()> {
    for Shown { image, path } in all(found, bundle) {
        let path = match &image.partitions {
            Some(partitions) => format!("{path}, partition {}", partitions.data),
            None => path,
        };
        let found = match &image.tree {
            Ok(found) => found,
            Err(error) => {
                writeln!(out, "  {path}: {WARN}dm-verity not checked{WARN:#}: {error}")?;
                continue;
            }
        };
        match found.fault() {
            Some(fault) => writeln!(out, "  {path}: {BAD}dm-verity fails{BAD:#}: {fault}")?,
            None => writeln!(out, "  {path}: every block matches its dm-verity hash tree")?,
        }
        writeln!(out, "    root hash {}", hex(&found.root_hash))?;
    }
    Ok(())
}

/// Warns if not all files were looked at.
pub(crate) fn warn_left_out(show: Show, found: &VerityImages) {
    if found.left_out > 0 {
        let files = count(wide(found.left_out), "more file");
        show.warn(&format!("dm-verity: this does not look at {files} with the name of a disk image"));
    }
}

/// Returns a failure if an image does not match its hash tree, although the bundle has it as it was signed.
pub(crate) fn judged(found: &VerityImages, bundle: &Bundle, name: &str) -> Result<(), Failure> {
    let faults = all(found, bundle).filter_map(|Shown { image, path }| {
        let fault = image.tree.as_ref().ok()?.fault()?;
        Some(format!("{path}: {fault}"))
    });
    let faults: Vec<_> = faults.collect();
    let Some(first) = faults.first() else { return Ok(()) };
    let more = match faults.len() - 1 {
        0 => String::new(),
        more => format!(" (and {})", count(wide(more), "other image")),
    };
    let message = format!(
        "{name}: the bundle is as it was signed, but a kernel will not read an image in it: {first}{more}; get a bundle with a sound image"
    );
    Err(Failure::differs(message))
}

/// An image in JSON.
#[derive(Serialize)]
pub(crate) struct JsonVerityImage<'a> {
    #[serde(rename = "ref")]
    reference: &'a str,
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    tree_path: Option<String>,
    tree_offset: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    partition: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tree_partition: Option<u32>,
    #[serde(flatten)]
    tree: Option<JsonTree>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<String>,
}

#[derive(Serialize)]
struct JsonTree {
    algorithm: &'static str,
    data_block_bytes: u32,
    hash_block_bytes: u32,
    data_bytes: u64,
    salt: String,
    root_hash: String,
    compared: &'static str,
}

impl<'a> JsonVerityImage<'a> {
    /// Returns the images of a bundle.
    pub(crate) fn all(found: &'a VerityImages) -> Vec<Self> {
        found.images.iter().map(Self::of).collect()
    }

    fn of(image: &'a VerityImage) -> Self {
        let fault = match &image.tree {
            Ok(found) => found.fault().map(|fault| fault.to_string()),
            Err(error) => Some(error.to_string()),
        };
        Self {
            reference: &image.reference,
            path: escape::percent(&image.path),
            tree_path: image.tree_path.as_ref().map(|path| escape::percent(path)),
            tree_offset: image.tree_offset,
            partition: image.partitions.as_ref().map(|partitions| partitions.data),
            tree_partition: image.partitions.as_ref().map(|partitions| partitions.tree),
            tree: image.tree.as_ref().ok().map(JsonTree::of),
            fault,
        }
    }
}

impl JsonTree {
    fn of(found: &VerityTree) -> Self {
        let superblock = found.tree.superblock();
        Self {
            algorithm: superblock.algorithm.name(),
            data_block_bytes: superblock.data_block_len,
            hash_block_bytes: superblock.hash_block_len,
            data_bytes: found.tree.data_len(),
            salt: hex(&superblock.salt),
            root_hash: hex(&found.root_hash),
            compared: if found.compared == Compared::TopBlock { "top-block" } else { "every-block" },
        }
    }
}
