//! `sealift info`: identity, signatures and contents of a bundle, from its head and index.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use sealift::dm_verity::{VerityImages, root_hashes};
use sealift::in_place::ReadOptions;
use sealift::inspect::Cost;
use sealift::recovery::LoneRecovery;
use sealift::{Error, Head, Image, Input, OpenVolume, Opened, Progress, Root, RootBase};
use sealift_format::RecipeSums;
use sealift_format::hex;
use sealift_format::num::wide;
use serde::Serialize;

use super::base_args::BaseArgs;
use super::bundle::BundleArg;
use super::digests::Digests;
use super::dm_verity::{self, JsonVerityImage};
use super::escape;
use super::failure::{About as _, Failure, shown};
use super::human::{Bytes, Grouped, count, percentage};
use super::info_channel;
use super::jobs_arg::JobsArg;
use super::limits::limits;
use super::lone_recovery::{self, JsonRecoveryFile};
use super::reading::{Reading, channel_at};
use super::refs::{self, JsonRef};
use super::show::{BOLD, Form, fact, json_line};
use super::signature::JsonSignature;
use super::time::Moment;
use super::trust_args::{Judge, Seen, TrustArgs};
use super::volume::{self, JsonVolume};

/// Show a bundle's identity, signatures and contents, and what unpacking it takes
///
/// Reads only what precedes the content. Shows any bundle, and marks one that this device would refuse. For a damaged bundle, shows what
/// the head states. Of a channel, shows its versions and files, and until when its list is accepted. Does not check the content; `sealift verify` does. The exit status is 1 if a part that it reads is damaged, or a signature is
/// invalid.
///
/// Of a volume whose others are not beside it, or of a recovery file, shows which one it is, and what the head states.
///
/// With --dm-verity, also reads a few chunks of each disk image (a file named like one, such as rootfs.squashfs, with a hash tree appended or in
/// a file beside it, such as rootfs.verity), and shows the root hash that `veritysetup format` printed and the kernel gets as roothash=.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  sealift info os.sealift --trust /etc/sealift/allowed_signers
  curl -s https://example.org/os.sealift | sealift info -
  sealift info --dm-verity os.sealift
  sealift info https://example.org/os/
  sealift info --json os.sealift | jq .identity.version")]
pub(crate) struct Info {
    /// The bundle, or a channel's directory or address; - reads a bundle from standard input
    ///
    /// A full bundle and the deltas that lead from it to a version, in any order, are shown as that version. If the bundle was split, give the directory of
    /// its volumes, or one of them.
    #[arg(value_name = "BUNDLE", required = true, value_hint = ValueHint::FilePath)]
    bundles: Vec<PathBuf>,
    #[arg(skip)]
    bundle: BundleArg,
    #[arg(skip)]
    base: BaseArgs,
    /// Also show the dm-verity root hashes of disk images in the bundle, which must be in a file
    #[arg(long)]
    dm_verity: bool,
    #[command(flatten)]
    trust: TrustArgs,
    #[command(flatten)]
    jobs: JobsArg,
    #[command(flatten)]
    form: Form,
}

impl Info {
    pub(crate) fn uses(&self) -> crate::limits::Uses {
        crate::limits::Uses::of(self.jobs)
    }

    pub(crate) fn run(mut self) -> Result<(), Failure> {
        let bundles = std::mem::take(&mut self.bundles);
        if let [place] = &bundles[..]
            && let Some(channel) = channel_at(place)?
        {
            return info_channel::show(&channel, &Judge::by(&self.trust.options())?, self.form.show());
        }
        let judge = Judge::by(&self.trust.options())?;
        let reading = Reading::of(bundles, BaseArgs::default(), self.form.show(), || Ok(judge.guard().clone()))?;
        (self.bundle, self.base) = (reading.bundle, reading.base);
        let input = match self.bundle.open() {
            Ok(input) => input,
            Err(failure) => {
                if let Some(file) = lone_recovery::given(&self.bundle)? {
                    return self.show_recovery(&file);
                }
                return match volume::alone(&self.bundle, &failure)? {
                    Some(alone) => self.show_volume(&alone),
                    None => Err(failure),
                };
            }
        };
        // Without a head there is nothing to show.
        let unopened = input.begin(limits()).about(&self.bundle.bundle)?;
        let head = unopened.head().clone();
        let mut opened = unopened.open_any().about(&self.bundle.bundle);
        let seen = judge.inspect(&head)?;
        let images = opened.as_mut().map_or(Ok(None), |(input, opened)| self.images(input, opened));
        let found = images.as_ref().ok().and_then(Option::as_ref);
        let over = match &opened {
            Ok((_, opened)) if self.base.is_given() => Some(self.over(opened)),
            _ => None,
        };
        let whole = over.as_ref().and_then(|over| over.as_ref().ok());
        let shown = whole.or(opened.as_ref().ok().map(|(_, opened)| opened));
        self.show(&head, &seen, shown, found)?;
        opened?;
        over.transpose()?;
        images?;
        seen.wrong_signature().map_or(Ok(()), Err).about(&self.bundle.bundle)
    }

    /// Completes a delta with the others.
    fn over(&self, opened: &Opened) -> Result<Opened, Failure> {
        let given = self.base.given(self.jobs, None);
        let completed = given.complete(opened.clone(), &self.bundle.bundle, &Progress::default());
        completed.map(|(opened, _)| opened).about(&self.bundle.bundle)
    }

    /// Shows a volume whose others are not here: what it is, and what the head says of the bundle.
    fn show_volume(&self, volume: &OpenVolume) -> Result<(), Failure> {
        limits().check(volume.head().root()).map_err(Error::from).about(volume.path())?;
        let of_it = |info| JsonInfo { volume: Some(JsonVolume::of(volume)), ..info };
        self.show_part(volume.path(), volume.head(), of_it, |out| volume::print_fact(out, volume))
    }

    /// The same for a recovery file.
    fn show_recovery(&self, file: &LoneRecovery) -> Result<(), Failure> {
        let of_it = |info| JsonInfo { recovery: Some(JsonRecoveryFile::of(file)), ..info };
        self.show_part(file.path(), file.head(), of_it, |out| lone_recovery::print_fact(out, file))
    }

    fn show_part<'a>(
        &self,
        path: &Path,
        head: &'a Head,
        of_it: impl FnOnce(JsonInfo<'a>) -> JsonInfo<'a>,
        print_fact: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), Failure> {
        let show = self.form.show();
        let seen = Judge::by(&self.trust.options())?.inspect(head)?;
        let mut out = show.out();
        if show.json {
            json_line(&mut out, &of_it(JsonInfo::of(head, &seen, self.jobs)))?;
        } else {
            writeln!(out, "{BOLD}{}{BOLD:#}: {}", escape::text(&shown(path)), seen.headline())?;
            print_fact(&mut out)?;
            print_identity(&mut out, head)?;
            writeln!(out, "\n{BOLD}Signatures{BOLD:#}")?;
            seen.print(&mut out)?;
            print_contents(&mut out, head, None)?;
            print_cost(&mut out, head, self.jobs)?;
        }
        seen.wrong_signature().map_or(Ok(()), Err).about(path)
    }

    /// Returns the disk images in the bundle, if they are asked for. Those of a delta bundle are known only with its bases.
    fn images(&self, input: &mut Input, opened: &Opened) -> Result<Option<VerityImages>, Failure> {
        match opened {
            Opened::Whole(bundle) if self.dm_verity => root_hashes(input, bundle).map(Some).about(&self.bundle.bundle),
            _ => Ok(None),
        }
    }

    fn show(&self, head: &Head, seen: &Seen, opened: Option<&Opened>, images: Option<&VerityImages>) -> io::Result<()> {
        let show = self.form.show();
        images.into_iter().for_each(|found| dm_verity::warn_left_out(show, found));
        let mut out = show.out();
        if show.json {
            let (refs, dm_verity) = (opened.map(JsonRef::all), images.map(JsonVerityImage::all));
            return json_line(&mut out, &JsonInfo { refs, dm_verity, ..JsonInfo::of(head, seen, self.jobs) });
        }
        print(&mut out, &shown(&self.bundle.bundle), head, seen, opened)?;
        match (opened, images) {
            (Some(Opened::Whole(bundle)), Some(found)) => dm_verity::print_facts(&mut out, found, bundle)?,
            (Some(Opened::Delta(_)), _) if self.dm_verity => dm_verity::print_unknown(&mut out)?,
            _ => {}
        }
        print_cost(&mut out, head, self.jobs)
    }
}

/// Prints everything in the head, and the refs if they could be read.
fn print(out: &mut dyn Write, bundle: &str, head: &Head, seen: &Seen, opened: Option<&Opened>) -> io::Result<()> {
    writeln!(out, "{BOLD}{}{BOLD:#}: {}", escape::text(bundle), seen.headline())?;
    print_identity(out, head)?;
    writeln!(out, "\n{BOLD}Signatures{BOLD:#}")?;
    seen.print(out)?;
    print_contents(out, head, opened)
}

fn print_identity(out: &mut dyn Write, head: &Head) -> io::Result<()> {
    let root = head.root();
    let identity = &root.identity;
    fact(out, "Name", &identity.name)?;
    fact(out, "Version", identity.version)?;
    fact(out, "Created", Moment(identity.created).with_distance())?;
    let expires = identity.expires.map_or("never".into(), |at| Moment(at).with_distance());
    fact(out, "Expires", expires)?;
    let compatible = if identity.compatible.is_empty() { "any device".into() } else { identity.compatible.join(", ") };
    fact(out, "Compatible", compatible)?;
    fact(out, "Root digest", hex(&head.root_digest()))?;
    fact(out, "Content", hex(&root.contents.index_digest))?;
    for base in root.bases.iter().flat_map(|bases| &bases.bases) {
        fact(out, "Base", base)?;
    }
    for image in &root.images {
        let Image { reference, version, digest } = image;
        fact(out, "Image", format!("of ref {}, composefs version {version}", u32::from(*reference) + 1))?;
        fact(out, "", digest)?;
    }
    if !root.annotations.is_empty() {
        // Under their own heading, so that no annotation passes for output of this program.
        writeln!(out, "\n{BOLD}Annotations{BOLD:#}")?;
    }
    for (key, value) in &root.annotations {
        fact(out, key, escape::text(value))?;
    }
    Ok(())
}

fn print_contents(out: &mut dyn Write, head: &Head, opened: Option<&Opened>) -> io::Result<()> {
    let maxima = &head.root().maxima;
    writeln!(out, "\n{BOLD}Contents{BOLD:#}")?;
    fact(out, "Refs", Grouped(maxima.refs.into()))?;
    match opened {
        Some(opened) => refs::print(out, opened)?,
        None => fact(out, "", "their names cannot be read")?,
    }
    fact(out, "Entries", Grouped(maxima.entries))?;
    fact(out, "Inodes", Grouped(maxima.inodes))?;
    fact(out, "Objects", Grouped(maxima.objects))?;
    fact(out, "Size", exact(maxima.logical))?;
    let file = head.file_len();
    let share = format!(", {} of the size", percentage(file, maxima.logical));
    fact(out, "Bundle", format!("{}{}", exact(file), if file <= maxima.logical { &share } else { "" }))?;
    let (chunks, largest) = (Grouped(maxima.chunks), Bytes(maxima.chunk_len.into()));
    fact(out, "Chunks", format!("{chunks}, at most {largest} each"))
}

fn print_cost(out: &mut dyn Write, head: &Head, jobs: JobsArg) -> io::Result<()> {
    let threads = wide(jobs.count());
    let cost = Cost::of(head.root(), threads);
    let more = if head.root().bases.is_some() { " more than its base" } else { "" };
    writeln!(out, "\n{BOLD}Unpacking takes{BOLD:#}")?;
    fact(out, "Disk", format!("about {}{more}", exact(cost.disk)))?;
    fact(out, "Inodes", format!("at most {}", Grouped(cost.inodes)))?;
    fact(out, "Memory", format!("at most {} on {}", exact(cost.memory), count(threads, "thread")))?;
    if let Some(sums) = &head.root().recipes {
        let encoders = sums.encoders.iter().map(|(encoder, bytes)| format!("{encoder} for {}", Bytes(*bytes)));
        let encoders = encoders.collect::<Vec<_>>().join(", ");
        let with = if encoders.is_empty() { String::new() } else { format!(", with the encoder {encoders}") };
        fact(out, "Recipes", format!("makes {} of {}{with}", count(sums.made, "object"), Bytes(sums.made_bytes)))?;
    }
    let mounted = cost.memory.saturating_add(ReadOptions::CACHE_BYTES);
    fact(
        out,
        "Mounted",
        format!("at most {} of memory, {} of it as cache", exact(mounted), Bytes(ReadOptions::CACHE_BYTES)),
    )
}

/// Returns a size, rounded and exact.
fn exact(bytes: u64) -> String {
    if bytes < 1000 { Bytes(bytes).to_string() } else { format!("{} ({})", Bytes(bytes), Grouped(bytes)) }
}

/// The output of `--json`.
#[derive(Serialize)]
struct JsonInfo<'a> {
    trust: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    refusal: Option<String>,
    signatures: Vec<JsonSignature>,
    kernel_signature: bool,
    identity: JsonIdentity<'a>,
    annotations: BTreeMap<&'a str, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delta: Option<JsonDelta<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    images: Vec<JsonImage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    recipes: Option<JsonRecipes>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refs: Option<Vec<JsonRef<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dm_verity: Option<Vec<JsonVerityImage<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    volume: Option<JsonVolume>,
    #[serde(skip_serializing_if = "Option::is_none")]
    recovery: Option<JsonRecoveryFile>,
    contents: JsonContents,
    cost: JsonCost,
}

#[derive(Serialize)]
struct JsonIdentity<'a> {
    name: &'a str,
    version: u64,
    created: i64,
    expires: Option<i64>,
    compatible: &'a [String],
    #[serde(flatten)]
    digests: Digests,
}

/// For a delta bundle.
#[derive(Serialize)]
struct JsonDelta<'a> {
    bases: Vec<JsonBase<'a>>,
    largest_prefix_bytes: u32,
}

/// A base of the delta.
#[derive(Serialize)]
pub(crate) struct JsonBase<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<u64>,
    index_digest: String,
}

impl<'a> JsonBase<'a> {
    pub(crate) fn of(base: &'a RootBase) -> Self {
        Self {
            name: base.identity.as_ref().map(|(name, _)| &name[..]),
            version: base.identity.as_ref().map(|(_, version)| *version),
            index_digest: hex(&base.index_digest),
        }
    }

    pub(crate) fn all(root: &'a Root) -> Vec<Self> {
        root.bases.iter().flat_map(|bases| &bases.bases).map(Self::of).collect()
    }
}

/// Returns the bases of a delta bundle in words.
pub(crate) fn bases_of(root: &Root) -> String {
    let bases = root.bases.iter().flat_map(|bases| &bases.bases);
    bases.map(RootBase::to_string).collect::<Vec<_>>().join(" and ")
}

/// The composefs image of a tree.
#[derive(Serialize)]
struct JsonImage {
    /// The ref's number in the bundle, from 0.
    ref_number: u16,
    version: u8,
    algorithm: &'static str,
    digest: String,
}

impl JsonImage {
    fn of(image: &Image) -> Self {
        Self {
            ref_number: image.reference,
            version: image.version,
            algorithm: image.digest.algorithm().name(),
            digest: hex(image.digest.as_bytes()),
        }
    }
}

/// What making objects takes.
#[derive(Serialize)]
struct JsonRecipes {
    objects: u64,
    bytes: u64,
    leaves: u64,
    leaf_bytes: u64,
    decoded_bytes: u64,
    memory_bytes: u64,
    encoders: Vec<JsonEncoder>,
}

#[derive(Serialize)]
struct JsonEncoder {
    name: String,
    bytes: u64,
}

impl JsonRecipes {
    fn of(sums: &RecipeSums) -> Self {
        let encoders =
            sums.encoders.iter().map(|(encoder, bytes)| JsonEncoder { name: encoder.to_string(), bytes: *bytes });
        Self {
            objects: sums.made,
            bytes: sums.made_bytes,
            leaves: sums.leaves,
            leaf_bytes: sums.leaf_bytes,
            decoded_bytes: sums.decoded_bytes,
            memory_bytes: sums.memory,
            encoders: encoders.collect(),
        }
    }
}

#[derive(Serialize)]
struct JsonContents {
    file_bytes: u64,
    head_bytes: u64,
    layout_bytes: u64,
    index_bytes: u64,
    chunks_bytes: u64,
    refs: u16,
    depth: u32,
    entries: u64,
    path_bytes: u64,
    inodes: u64,
    objects: u64,
    chunks: u64,
    logical_bytes: u64,
    largest_chunk_bytes: u32,
    piece_bytes: u64,
}

#[derive(Serialize)]
struct JsonCost {
    memory_bytes: u64,
    mount_memory_bytes: u64,
    disk_bytes: u64,
    inodes: u64,
    threads: u64,
}

impl<'a> JsonInfo<'a> {
    fn of(head: &'a Head, seen: &Seen, jobs: JobsArg) -> Self {
        let Root { identity, contents, maxima, annotations, bases, images, recipes } = head.root();
        let threads = wide(jobs.count());
        let cost = Cost::of(head.root(), threads);
        Self {
            trust: seen.word(),
            refusal: seen.refusal(),
            signatures: seen.json(),
            kernel_signature: seen.has_kernel_signature(),
            identity: JsonIdentity {
                name: &identity.name,
                version: identity.version,
                created: identity.created,
                expires: identity.expires,
                compatible: &identity.compatible,
                digests: Digests::of(head),
            },
            annotations: annotations.iter().map(|(key, value)| (&key[..], escape::percent(value.as_bytes()))).collect(),
            delta: bases
                .as_ref()
                .map(|bases| JsonDelta { bases: JsonBase::all(head.root()), largest_prefix_bytes: bases.prefix_len }),
            images: images.iter().map(JsonImage::of).collect(),
            recipes: recipes.as_ref().map(JsonRecipes::of),
            refs: None,
            dm_verity: None,
            volume: None,
            recovery: None,
            contents: JsonContents {
                file_bytes: head.file_len(),
                head_bytes: head.head_len(),
                layout_bytes: contents.layout_stored,
                index_bytes: contents.index_stored,
                chunks_bytes: maxima.chunks_stored,
                refs: maxima.refs,
                depth: maxima.depth,
                entries: maxima.entries,
                path_bytes: maxima.paths,
                inodes: maxima.inodes,
                objects: maxima.objects,
                chunks: maxima.chunks,
                logical_bytes: maxima.logical,
                largest_chunk_bytes: maxima.chunk_len,
                piece_bytes: maxima.piece_len(),
            },
            cost: JsonCost {
                memory_bytes: cost.memory,
                mount_memory_bytes: cost.memory.saturating_add(ReadOptions::CACHE_BYTES),
                disk_bytes: cost.disk,
                inodes: cost.inodes,
                threads,
            },
        }
    }
}
