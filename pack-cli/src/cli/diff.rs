//! `sealift diff`: the differences between two bundles, or a bundle and a directory.

use std::ffi::{OsStr, OsString};
use std::io::{BufWriter, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use clap::Args;
use sealift::channel::{Chain, Channel, head_of};
use sealift::diff::{Counts, Diff as TreeDiff, DiffOptions, Side, Take, take_xattrs_of};
use sealift::inside::{Comparison, compare, is_inside};
use sealift::source::{Source, is_container_image};
use sealift::trust::TargetKind;
use sealift::{Bundle, Error, GivenBases, Opened as OpenedBundle, Progress, RootBase, SharedBases, Unopened};
use serde::Serialize;

use super::base_args::BaseArgs;
use super::bundle::BundleArg;
use super::compare_args::{CompareArgs, is_source};
use super::diff_inside;
use super::differences::{self, JsonDifferences, Words};
use super::escape;
use super::failure::{About as _, Failure, shown, verdict_printed};
use super::human::{self, Bytes, count};
use super::limits::limits;
use super::progress_args::ProgressArgs;
use super::reading::channel_at;
use super::show::{BOLD, Show, json_line};
use super::trust_args::ListTrustArgs;

/// Show the differences between two bundles, or a bundle and a directory
///
/// Prints one line for each path: A added, D removed, M changed (with the old and the new size), R moved, m metadata only. Reads only the
/// index of a bundle, so large bundles are compared quickly, and files of a directory only if their size is unchanged. Does not require a
/// signature, except of the list of a channel; `sealift info` shows who signed. With --path IMAGE//PATH, compares the content of the regular
/// files in an image, archive or compressed file that both bundles have. The exit status is 0 unless --exit-code is given.
#[derive(Args, Debug)]
#[command(after_long_help = "\
With --json, prints one object: old, new, differs, counts, take (the content of
the new bundle that the old side lacks; null if the new side is not a bundle),
seconds and entries. An entry has kind (added, removed, changed, moved,
metadata), ref (if several are compared), path, from (moved), fields (type,
content, target, device, mode, owner, mtime, xattrs, links), and old and new,
the file as in `sealift ls --json`, with link if it is a hard link to another
path. For files of a directory, id and xattrs are present only if diff had to
read them. For files in an image, counts and take are missing, and old and new
have type and size.

Examples:
  sealift diff os-7.sealift os-8.sealift
  sealift diff os-7.sealift os-7-to-8.sealift
  sealift diff os-7.sealift os-7-to-8.sealift os-8-to-9.sealift
  sealift diff os-7.sealift /srv/os --ignore mtime,owner --path usr
  sealift diff /srv/os os-8.sealift --exit-code --quiet || echo an update
  sealift diff /srv/os https://example.org/os/ --path usr
  sealift diff os-7.sealift os-8.sealift --path os.squashfs//
  sealift diff --json a.sealift b.sealift | jq -r '.entries[].path'")]
pub(crate) struct Diff {
    /// The old side: a bundle, - for standard input, a channel's directory or address for its newest version, another directory, tar:FILE, cpio:FILE, image:FILE, oci:DIR, docker-archive:FILE, or ostree:REPO:REF
    #[arg(value_name = "A")]
    old: OsString,
    /// The new side, in any of the same forms; or a delta, with those that lead from the old side to its base
    #[arg(value_name = "B", required = true)]
    rest: Vec<OsString>,
    #[arg(skip)]
    new: OsString,
    /// The bundles over which each side is read besides those of --base.
    #[arg(skip)]
    old_links: Vec<PathBuf>,
    #[arg(skip)]
    links: Vec<PathBuf>,
    #[command(flatten)]
    base: BaseArgs,
    #[command(flatten)]
    compare: CompareArgs,
    /// Exit with status 1 if there are differences, and with 2 if nothing can be compared
    #[arg(long)]
    exit_code: bool,
    #[command(flatten)]
    trust: ListTrustArgs,
    #[command(flatten)]
    show: Show,
    #[command(flatten)]
    progress: ProgressArgs,
}

const WORDS: Words = Words::USUAL;

/// An open side of the comparison.
enum Opened {
    Bundle(Box<Bundle>),
    Source(Box<Source>),
}

impl Opened {
    fn side(&self) -> Side<'_> {
        match self {
            Self::Bundle(bundle) => Side::Bundle(bundle),
            Self::Source(source) => Side::Source(source),
        }
    }
}

impl Diff {
    pub(crate) fn uses(&self) -> crate::limits::Uses {
        crate::limits::Uses::of(self.compare.jobs)
    }

    pub(crate) fn run(mut self) -> Result<(), Failure> {
        let start = Instant::now();
        self.take_rest()?;
        self.take_channels()?;
        if self.old == "-" && self.new == "-" {
            return Err(Failure::usage("only one side can be standard input: give a file for the other"));
        }
        let uncompared = |failure: Failure| if self.exit_code { failure.uncompared() } else { failure };
        if let Some(found) = self.compare_inside().map_err(uncompared)? {
            let [old, new] = [&self.old, &self.new].map(|side| shown(Path::new(side)));
            let mut out = BufWriter::with_capacity(1 << 16, self.show.out());
            let printed = diff_inside::print(&mut out, [&old, &new], &found, self.show, start.elapsed());
            verdict_printed(printed.and_then(|()| out.flush()))?;
            return if self.exit_code && !found.changes.is_empty() { Err(Failure::printed()) } else { Ok(()) };
        }
        let options = self.compare.options()?;
        let compared = self.progress.watch(self.show, "Opening", |progress| self.compare(&options, progress));
        let diff = compared.map_err(uncompared)?;
        verdict_printed(self.print(&diff, start))?;
        if self.exit_code && !diff.is_empty() { Err(Failure::printed()) } else { Ok(()) }
    }

    /// Takes the new side, and the bundles that lead from the old one to it.
    fn take_rest(&mut self) -> Result<(), Failure> {
        let mut rest = std::mem::take(&mut self.rest);
        if rest.len() == 1 {
            self.new = rest.swap_remove(0);
            return Ok(());
        }
        let mut bundles: Vec<PathBuf> = rest.into_iter().map(PathBuf::from).collect();
        let old = PathBuf::from(&self.old);
        if head_of(&old, &limits()).is_some() {
            bundles.insert(0, old.clone());
        }
        let chain = Chain::of(&bundles, self.base.is_given(), &limits())?;
        if chain.newest == old {
            return Err(Failure::usage(format!("{}: the others lead to the old side: give it last", shown(&old))));
        }
        (self.new, self.links) = (chain.newest.into_os_string(), chain.bases);
        Ok(())
    }

    /// Takes the newest version of each side that is a channel.
    fn take_channels(&mut self) -> Result<(), Failure> {
        for (side, links) in [(&mut self.old, &mut self.old_links), (&mut self.new, &mut self.links)] {
            let place = PathBuf::from(&*side);
            if !links.is_empty() || TargetKind::of(&place).0 != TargetKind::Directory {
                continue;
            }
            let Some(channel) = channel_at(&place)? else { continue };
            channel.judge(&self.trust.guard()?).about(&Channel::list_in(&place))?;
            let chain = channel.newest(&limits())?;
            (*side, *links) = (chain.newest.into_os_string(), chain.bases);
        }
        Ok(())
    }

    /// Compares what is in an image of both sides, if `--path` leads into one.
    fn compare_inside(&self) -> Result<Option<Comparison>, Failure> {
        let may_be = |path: &&OsString| path.as_bytes().windows(2).any(|two| two == b"//");
        let Some(path) = self.compare.path.as_ref().filter(may_be) else { return Ok(None) };
        let (Some(old), Some(new)) = self.read_bundles()? else { return Ok(None) };
        let path = path.as_bytes();
        if !is_inside(&old, path) && !is_inside(&new, path) {
            return Ok(None);
        }
        let open = |argument: &OsStr| {
            let input = BundleArg::of(PathBuf::from(argument)).open()?;
            input.begin(limits()).about(Path::new(argument))
        };
        let (old, new) = (open(&self.old)?, open(&self.new)?);
        let bases = |of: &Unopened, links: &[PathBuf]| {
            let given = self.base.and(links).given(self.compare.jobs, None);
            match of.head().root().bases {
                None => GivenBases::default(),
                Some(_) if given.places.is_empty() => GivenBases { places: vec![self.old.clone()], ..given },
                Some(_) => given,
            }
        };
        let (old_bases, new_bases) = (bases(&old, &self.old_links), bases(&new, &self.links));
        Ok(Some(compare([(old, &old_bases), (new, &new_bases)], path, &Progress::default())?))
    }

    fn compare(&self, options: &DiffOptions, progress: &Arc<Progress>) -> Result<TreeDiff, Failure> {
        let (old, new) = self.read_bundles()?;
        // A directory is read with all extended attributes that the bundle has.
        let mut xattrs = self.compare.xattrs();
        for bundle in [&old, &new].into_iter().flatten() {
            take_xattrs_of(&bundle.index, &mut xattrs);
        }
        let source_options = self.compare.source(options, xattrs, progress);
        let open = |bundle: Option<Bundle>, argument: &OsStr| match bundle {
            Some(bundle) => Ok(Opened::Bundle(Box::new(bundle))),
            None => {
                let mut source_options = source_options.clone();
                if TargetKind::of(argument).0 == TargetKind::Ostree || is_container_image(argument) {
                    // A commit or an image is read unchanged; exclusions apply to the comparison.
                    source_options.directory.exclude = None;
                }
                let source = Source::open_spec(argument, &source_options, options.jobs);
                source.map(|source| Opened::Source(Box::new(source)))
            }
        };
        let (old, new) = (open(old, &self.old)?, open(new, &self.new)?);
        Ok(sealift::diff::diff(old.side(), new.side(), options, progress)?)
    }

    /// Reads the sides that are bundles. If the new side is a delta whose only base is the old side, --base is not needed.
    fn read_bundles(&self) -> Result<(Option<Bundle>, Option<Bundle>), Failure> {
        let given = self.base.and(&self.old_links).and(&self.links).given(self.compare.jobs, None);
        let mut bases = SharedBases::new(&given);
        let mut complete = |opened: OpenedBundle, argument: &OsStr| {
            bases.complete(opened, Path::new(argument), &Progress::default()).map(|(opened, _)| opened)
        };
        let old = match read_bundle(&self.old)? {
            Some(opened) => match complete(opened, &self.old)? {
                OpenedBundle::Whole(old) => Some(old),
                OpenedBundle::Delta(delta) => return Err(Error::is_delta(Path::new(&self.old), &delta).into()),
            },
            None => None,
        };
        let path = Path::new(&self.new);
        let new = match (read_bundle(&self.new)?, &old) {
            (None, _) => None,
            (Some(OpenedBundle::Delta(delta)), Some(old)) if is_the_base(old, delta.bases()) => {
                match complete(OpenedBundle::Delta(delta.clone()), &self.new) {
                    Ok(OpenedBundle::Whole(new)) => Some(new),
                    // Without --base, the old side serves as the base.
                    Ok(OpenedBundle::Delta(_)) | Err(Error::MissingBase { .. }) => {
                        Some(delta.complete(&[&old.index]).map_err(Error::from).about(path)?)
                    }
                    Err(error) => return Err(error.into()),
                }
            }
            (Some(opened), old) => match (complete(opened, &self.new)?, old) {
                (OpenedBundle::Whole(new), _) => Some(new),
                (OpenedBundle::Delta(delta), Some(old)) => {
                    return Err(Error::wrong_base(
                        &self.old,
                        delta.bases(),
                        format_args!("it is {}", old.head.root().as_base()),
                    )
                    .into());
                }
                (OpenedBundle::Delta(delta), None) => return Err(Error::is_delta(path, &delta).into()),
            },
        };
        bases.check_used()?;
        Ok((old, new))
    }

    fn print(&self, diff: &TreeDiff, start: Instant) -> std::io::Result<()> {
        let mut out = BufWriter::with_capacity(1 << 16, self.show.out());
        let [old, new] = [&self.old, &self.new].map(|side| shown(Path::new(side)));
        if self.show.json {
            let seconds = human::seconds(start.elapsed());
            json_line(&mut out, &JsonDiff::new(&old, &new, diff, seconds))?;
        } else if !self.show.quiet {
            differences::print_table(&mut out, diff)?;
            let counts = match differences::counts(diff, WORDS) {
                none if none.is_empty() => format!("no difference in {}", differences::compared(diff)),
                some => some,
            };
            let (old, new) = (escape::text(&old), escape::text(&new));
            writeln!(out, "{BOLD}{old} -> {new}{BOLD:#}: {counts}")?;
            print_take(&mut out, diff)?;
            differences::print_privileged(&mut out, diff)?;
        }
        out.flush()
    }
}

/// Reads everything before the content of a side that is a bundle, whoever signed it.
fn read_bundle(argument: &OsStr) -> Result<Option<OpenedBundle>, Failure> {
    if is_source(argument)? {
        return Ok(None);
    }
    if TargetKind::of(argument).0 == TargetKind::Composefs {
        let store = argument.display();
        return Err(Failure::usage(format!("{store}: to compare a store with a bundle, use `sealift audit`")));
    }
    BundleArg::of(PathBuf::from(argument)).read_untrusted().map(Some)
}

/// Returns whether a bundle is the only one of a delta bundle's bases.
fn is_the_base(bundle: &Bundle, bases: &[RootBase]) -> bool {
    matches!(bases, [base] if base.index_digest == bundle.head.root().contents.index_digest)
}

fn print_take(out: &mut dyn Write, diff: &TreeDiff) -> std::io::Result<()> {
    match diff.take {
        Some(take) if take.objects > 0 => {
            let (objects, logical) = (count(take.objects, "new object"), Bytes(take.logical_bytes));
            writeln!(out, "  {objects} to transfer: {logical} ({} compressed)", Bytes(take.stored_bytes))
        }
        Some(_) if !diff.is_empty() => writeln!(out, "  no new content to transfer"),
        _ => Ok(()),
    }
}

#[derive(Serialize)]
struct JsonDiff<'a> {
    old: &'a str,
    new: &'a str,
    differs: bool,
    counts: &'a Counts,
    take: Option<Take>,
    seconds: f64,
    entries: JsonDifferences<'a>,
}

impl<'a> JsonDiff<'a> {
    fn new(old: &'a str, new: &'a str, diff: &'a TreeDiff, seconds: f64) -> Self {
        Self {
            old,
            new,
            differs: !diff.is_empty(),
            counts: &diff.counts,
            take: diff.take,
            seconds,
            entries: JsonDifferences { diff, words: WORDS },
        }
    }
}
