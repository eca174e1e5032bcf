//! What `sealift unpack BUNDLE ostree:REPO` says when it has ended.

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use sealift::ostree::ImportStats;
use sealift::seal::KernelSignature;
use serde::Serialize;

use super::escape;
use super::human::{self, Bytes, count};
use super::show::{Show, json_line};
use super::trust_args::Judge;
use super::unpack::signature_word;

pub(crate) fn print(
    show: Show,
    stats: &ImportStats,
    judge: &Judge,
    (target, bundle): (&Path, &Path),
    dry_run: bool,
    elapsed: Duration,
) -> std::io::Result<()> {
    let mut out = show.out();
    if show.json {
        let (name, version) = judge.identity();
        let refs = stats.refs.iter().map(|(name, commit)| RefLine { name, commit }).collect();
        return json_line(
            &mut out,
            &Summary {
                dry_run,
                name,
                version,
                signers: judge.signers(),
                refs,
                commits: stats.commits,
                metadata: stats.metadata,
                files: stats.files,
                logical_bytes: stats.logical_bytes,
                stored_bytes: stats.stored_bytes,
                has_summary: stats.has_summary,
                sealed: stats.is_sealed,
                sealed_objects: stats.sealed_objects,
                kernel_signature: signature_word(&stats.kernel_signature),
                seconds: human::seconds(elapsed),
            },
        );
    }
    if show.quiet {
        return Ok(());
    }
    judge.print_taken(&mut out, (target, bundle), dry_run)?;
    for (name, commit) in &stats.refs {
        writeln!(out, "  {} is {commit}", escape::text(name))?;
    }
    if stats.has_summary {
        writeln!(out, "  the summary is the source's")?;
    }
    if stats.commits + stats.metadata + stats.files == 0 {
        return writeln!(out, "  nothing was missing");
    }
    let new = [(stats.commits, "commit"), (stats.metadata, "directory object"), (stats.files, "file object")];
    let new: Vec<_> = new.iter().filter(|(n, _)| *n > 0).map(|(n, noun)| count(*n, noun)).collect();
    writeln!(out, "  {} were missing", new.join(", "))?;
    if dry_run {
        return writeln!(out, "  {} would be read; nothing was written", Bytes(stats.stored_bytes));
    }
    let (bytes, stored) = (Bytes(stats.logical_bytes), Bytes(stats.stored_bytes));
    let (time, rate) = (human::duration(elapsed), human::rate(stats.logical_bytes, elapsed));
    writeln!(out, "  {bytes} from {stored} in {time}, {rate}")?;
    if stats.is_sealed {
        writeln!(out, "  {} sealed: the kernel keeps them as they are", count(stats.sealed_objects, "object"))?;
    }
    if stats.kernel_signature == KernelSignature::Taken {
        writeln!(out, "  the index is sealed with the bundle's signature for the kernel")?;
    }
    Ok(())
}

#[derive(Serialize)]
struct RefLine<'a> {
    name: &'a str,
    commit: &'a str,
}

#[derive(Serialize)]
struct Summary<'a> {
    dry_run: bool,
    name: &'a str,
    version: u64,
    signers: Vec<String>,
    refs: Vec<RefLine<'a>>,
    commits: u64,
    metadata: u64,
    files: u64,
    logical_bytes: u64,
    stored_bytes: u64,
    has_summary: bool,
    sealed: bool,
    sealed_objects: u64,
    kernel_signature: Option<&'static str>,
    seconds: f64,
}
