//! What `sealift pack` prints.

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use sealift::Identity;
use sealift::pack::{DeltaStats, OrderStats, PackStats};
use sealift::trust::sign::Signer;
use sealift_format::num::wide;
use sealift_format::{RootBase, hex};
use serde::Serialize;

use super::super::digests::Digests;
use super::Pack;
use super::images::PackedImage;
use crate::escape;
use crate::human::{self, Bytes, Grouped, count};
use crate::info::{JsonBase, bases_of};
use crate::log;
use crate::show::{BOLD, WARN};

impl Pack {
    /// Warns about files of the packed tree that are not in the bundle.
    pub(super) fn warn_of_omitted(&self, paths: &[PathBuf]) {
        let (Some(first), more) = (paths.first(), paths.len().saturating_sub(1)) else { return };
        let more = if more == 0 { String::new() } else { format!(" and {}", plural(more, "more bundle")) };
        self.show.warn(&format!("excluded {}{more} in the output directory", first.display()));
    }

    pub(super) fn print(
        &self,
        stats: &PackStats,
        signers: &[Signer],
        images: Vec<PackedImage>,
        stdout_taken: bool,
        elapsed: Duration,
    ) -> std::io::Result<()> {
        self.warn_of_order(&stats.order);
        if stats.do_summaries_differ {
            self.show.warn("the repositories have different summaries: the bundle carries none");
        }
        let mut out = self.show.summary(stdout_taken);
        if self.show.is_told(&mut out, &JsonPack::new(stats, signers, images, elapsed))? {
            return Ok(());
        }
        let (root, bundle) = (&stats.root, escape::text(&self.output.display().to_string()));
        let (name, version) = (&root.identity.name, root.identity.version);
        let mark = if signers.is_empty() { format!(", {WARN}UNSIGNED{WARN:#}") } else { String::new() };
        writeln!(out, "{BOLD}{bundle}{BOLD:#}: {name} version {version}{mark}")?;
        if signers.is_empty() {
            match self.name.is_some() && self.bundle_version.is_some() {
                true => writeln!(
                    out,
                    "  sign it with  sealift sign {bundle} --name {name} --bundle-version {version} --key KEY"
                )?,
                false => writeln!(
                    out,
                    "  this is an unsigned test bundle: a release needs --name, --bundle-version and --key"
                )?,
            }
        }
        for signer in signers {
            writeln!(out, "  signed by {}", signer.public_key().id())?;
        }
        let maxima = &root.maxima;
        if let Some(delta) = &stats.delta {
            return self.print_delta(&mut out, stats, delta, elapsed);
        }
        writeln!(
            out,
            "  {}, {}, {}",
            count(maxima.entries, "entry"),
            count(maxima.objects, "object"),
            count(maxima.refs.into(), "ref"),
        )?;
        writeln!(
            out,
            "  {} into {} in {}, {}",
            Bytes(maxima.logical),
            human::stored(stats.file_bytes, maxima.logical),
            human::duration(elapsed),
            human::rate(maxima.logical, elapsed),
        )?;
        if log::is_on() {
            let (chunks, largest) = (count(maxima.chunks, "chunk"), Bytes(maxima.chunk_len.into()));
            writeln!(out, "  root digest {}", hex(&stats.root_digest))?;
            writeln!(out, "  content {}", hex(&root.contents.index_digest))?;
            writeln!(out, "  {chunks} of at most {largest}")?;
            if stats.copied {
                writeln!(
                    out,
                    "  moved the chunks behind the head by copying, which briefly took twice the disk space"
                )?;
            }
        }
        self.print_order(&mut out, stats)
    }

    /// Warns about a profile that names no file: a wrong root in it, or the profile of another tree.
    fn warn_of_order(&self, found: &OrderStats) {
        if let Some(order) = self.order.as_ref().or(self.order_from.as_ref())
            && found.matched == 0
        {
            let (order, paths) = (order.display(), plural(found.paths, "path"));
            self.show
                .warn(&format!("none of the {paths} in the order {order} is a file here: nothing is stored first"));
        }
    }

    /// Says that the base already has what was to be packed.
    pub(super) fn print_unchanged(
        &self,
        identity: &Identity,
        base: &RootBase,
        stdout_taken: bool,
        elapsed: Duration,
    ) -> std::io::Result<()> {
        let mut out = self.show.summary(stdout_taken);
        if self.show.is_told(&mut out, &JsonUnchanged::new(self.dry_run, identity, base, elapsed))? {
            return Ok(());
        }
        let bundle = escape::text(&self.output.display().to_string());
        writeln!(out, "{BOLD}{bundle}{BOLD:#}: not written, since nothing has changed since {base}")
    }

    /// Says how much of a profile, or of the order of another bundle, was found.
    fn print_order(&self, out: &mut dyn Write, stats: &PackStats) -> std::io::Result<()> {
        let (matched, paths) = (stats.order.matched, stats.order.paths);
        let of = match (&self.order, &self.order_from) {
            (Some(_), _) => "profile".to_owned(),
            (None, Some(bundle)) => format!("of {}", escape::text(&bundle.display().to_string())),
            (None, None) if paths > 0 => "of the base".to_owned(),
            (None, None) => return Ok(()),
        };
        writeln!(out, "  found {} of {} in the order {of}", grouped(matched), plural(paths, "path"))
    }

    fn print_delta(
        &self,
        out: &mut dyn Write,
        stats: &PackStats,
        delta: &DeltaStats,
        elapsed: Duration,
    ) -> std::io::Result<()> {
        let maxima = &stats.root.maxima;
        writeln!(out, "  for targets that hold {}", bases_of(&stats.root))?;
        writeln!(
            out,
            "  {} of {}: {} into {} in {}",
            count(delta.objects, "new object"),
            Grouped(maxima.objects),
            Bytes(delta.bytes),
            Bytes(stats.file_bytes),
            human::duration(elapsed),
        )?;
        if log::is_on() {
            let memory = Bytes(delta.memory);
            writeln!(out, "  {} chunks, each decoded in at most {memory}", Grouped(maxima.chunks))?;
        }
        self.print_order(out, stats)
    }
}

fn grouped(number: usize) -> Grouped {
    Grouped(wide(number))
}

fn plural(number: usize, noun: &str) -> String {
    count(wide(number), noun)
}

/// What is printed if the base already has what was to be packed.
#[derive(Serialize)]
struct JsonUnchanged<'a> {
    dry_run: bool,
    unchanged: bool,
    name: &'a str,
    version: u64,
    created: i64,
    index_digest: String,
    seconds: f64,
}

impl<'a> JsonUnchanged<'a> {
    fn new(dry_run: bool, identity: &'a Identity, base: &RootBase, elapsed: Duration) -> Self {
        Self {
            dry_run,
            unchanged: true,
            name: &identity.name,
            version: identity.version,
            created: identity.created,
            index_digest: hex(&base.index_digest),
            seconds: human::seconds(elapsed),
        }
    }
}

#[derive(Serialize)]
struct JsonPack<'a> {
    dry_run: bool,
    unchanged: bool,
    name: &'a str,
    version: u64,
    created: i64,
    signers: Vec<String>,
    #[serde(flatten)]
    digests: Digests,
    file_bytes: u64,
    logical_bytes: u64,
    entries: u64,
    objects: u64,
    chunks: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    delta: Option<JsonDelta<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    images: Vec<PackedImage>,
    order_paths: usize,
    order_matched: usize,
    seconds: f64,
}

/// For a delta bundle.
#[derive(Serialize)]
struct JsonDelta<'a> {
    bases: Vec<JsonBase<'a>>,
    objects: u64,
    bytes: u64,
    memory_bytes: u64,
}

impl<'a> JsonPack<'a> {
    fn new(stats: &'a PackStats, signers: &[Signer], images: Vec<PackedImage>, elapsed: Duration) -> Self {
        let root = &stats.root;
        Self {
            dry_run: false,
            unchanged: false,
            name: &root.identity.name,
            version: root.identity.version,
            created: root.identity.created,
            signers: signers.iter().map(|signer| signer.public_key().id().to_string()).collect(),
            digests: Digests::new(&stats.root_digest, root),
            file_bytes: stats.file_bytes,
            logical_bytes: root.maxima.logical,
            entries: root.maxima.entries,
            objects: root.maxima.objects,
            chunks: root.maxima.chunks,
            delta: stats.delta.as_ref().map(|delta| JsonDelta {
                bases: JsonBase::all(root),
                objects: delta.objects,
                bytes: delta.bytes,
                memory_bytes: delta.memory,
            }),
            images,
            order_paths: stats.order.paths,
            order_matched: stats.order.matched,
            seconds: human::seconds(elapsed),
        }
    }
}
