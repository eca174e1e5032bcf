//! What `sealift unpack` prints of a directory.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::time::Duration;

use sealift::seal::{KernelSignature, Seal};
use sealift::unpack::{NotKept, UnpackStats};
use sealift::{Aspect, InstallStats, LeftRun};

use super::Unpack;
use crate::audit_words::had_gone_back_from;
use crate::escape;
use crate::failure::shown;
use crate::human::{self, Bytes, count};
use crate::log;
use crate::show::{BOLD, WARN};
use crate::taken;
use crate::then::CommandEnd;
use crate::trust_args::Judge;
use crate::updated::{self, Asked};

impl Unpack {
    pub(super) fn print(
        &self,
        target: &Path,
        stats: &UnpackStats,
        judge: &Judge,
        elapsed: Duration,
        then: Option<&CommandEnd>,
    ) -> io::Result<()> {
        let mut out = self.show.out();
        if self.show.is_told(&mut out, &taken::line(stats, judge, self.dry_run, elapsed, then))? {
            return Ok(());
        }
        let (target, bundle) = (target.display().to_string(), shown(&self.bundle.bundle));
        let verb = match (self.dry_run, stats.is_update) {
            (false, false) => "unpacked",
            (_, true) if stats.was_complete => "already unpacked",
            (false, true) => "updated",
            (true, false) => "would be unpacked",
            (true, true) => "would be updated",
        };
        let mark = judge.mark();
        writeln!(out, "{BOLD}{}{BOLD:#}: {verb} from {}{mark}", escape::text(&target), escape::text(&bundle))?;
        judge.print_signers(&mut out)?;
        if stats.found == Some(LeftRun::HalfUpdated) {
            let verb = if self.dry_run {
                "an interrupted update would first be finished"
            } else {
                "finished an interrupted update first"
            };
            writeln!(out, "  {WARN}{verb}{WARN:#}")?;
        }
        writeln!(out, "  {}", updated::made(stats))?;
        if stats.copied_files > 0 {
            writeln!(out, "  {} copied from existing ones", count(stats.copied_files, "file"))?;
        }
        if stats.gathered_files > 0 {
            let files = count(stats.gathered_files, "file");
            writeln!(out, "  {files} of the hot set rewritten, to keep it together on the disk")?;
        }
        let asked = Asked { rehash: self.rehash, assume_mtime: self.assume_mtime, no_check: self.no_check };
        for line in updated::checked(stats, &asked, self.dry_run) {
            writeln!(out, "  {line}")?;
        }
        if let Some(version) = stats.install.gone_back_from {
            writeln!(out, "  {WARN}before{WARN:#}: {}", had_gone_back_from(version))?;
        }
        if stats.was_adopted {
            let verb = if self.dry_run { "would replace" } else { "took over: replaced" };
            writeln!(out, "  {verb} {}", updated::kinds(&stats.replaced))?;
        }
        updated::print_deletions(&mut out, stats, self.dry_run)?;
        for mount in &stats.mounts {
            let mount = escape::bytes(mount.as_os_str().as_bytes());
            writeln!(out, "  {WARN}left alone{WARN:#}: {mount} is a mount point or a subvolume")?;
        }
        if stats.under_mounts > 0 {
            writeln!(out, "  {} of the bundle under it, unchanged and unseen", count(stats.under_mounts, "entry"))?;
        }
        if stats.resumed_files > 0 {
            writeln!(out, "  reused {} from the interrupted run", count(stats.resumed_files, "file"))?;
        }
        if self.dry_run {
            let (disk, free) = (Bytes(stats.disk_bytes), Bytes(stats.free_bytes));
            writeln!(
                out,
                "  {} of content, {disk} and {} on the target; {free} are free",
                Bytes(stats.install.logical_bytes),
                count(stats.inodes, "inode")
            )?;
            for NotKept { what, files, why, .. } in &stats.not_kept {
                let (files, lost) = (count(*files, "file"), would_be_lost(*what));
                writeln!(out, "  {WARN}{files}: {lost} ({why}){WARN:#}")?;
            }
            return would_read(&mut out, &stats.install);
        }
        if stats.install.logical_bytes == 0 {
            writeln!(out, "  in {}", human::duration(elapsed))?;
        } else if stats.is_update {
            let (bytes, stored, time) =
                (Bytes(stats.install.logical_bytes), Bytes(stats.install.stored_bytes), human::duration(elapsed));
            writeln!(out, "  wrote {bytes} in {time} (read {stored} from the bundle)")?;
        } else {
            let (bytes, stored) = (Bytes(stats.install.logical_bytes), Bytes(stats.install.stored_bytes));
            let (time, rate) = (human::duration(elapsed), human::rate(stats.install.logical_bytes, elapsed));
            writeln!(out, "  {bytes} from {stored} in {time}, {rate}")?;
        }
        if stats.install.is_sealed {
            writeln!(out, "  {} sealed: the kernel protects them from changes", count(stats.sealed_files, "file"))?;
            if stats.install.kernel_signature == KernelSignature::Taken {
                writeln!(out, "  sealed the index with the bundle's kernel signature")?;
            }
        } else if self.seal == Some(Seal::Try) {
            writeln!(out, "  {WARN}not sealed{WARN:#}: the file system does not support fs-verity")?;
        }
        if stats.shared_bytes > 0 {
            writeln!(out, "  {} shared between identical files", Bytes(stats.shared_bytes))?;
        }
        for line in skipped(stats) {
            writeln!(out, "  {WARN}{line}{WARN:#}")?;
        }
        if log::is_on() {
            let (objects, inodes) = (count(stats.objects, "object"), count(stats.inodes, "inode"));
            writeln!(out, "  {objects}, {inodes}, {} on the target", Bytes(stats.disk_bytes))?;
        }
        Ok(())
    }
}

/// Returns what of a file the target would not keep.
fn would_be_lost(aspect: Aspect) -> &'static str {
    match aspect {
        Aspect::Owners => "would be owned by you, without set-id bits",
        Aspect::Devices => "devices would not be created",
        Aspect::Modes => "permission bits would not be set",
        Aspect::Acls => "access control lists would not be set",
        Aspect::Capabilities => "capabilities would not be set",
        Aspect::Times => "times would not be stored exactly",
        _ => "extended attributes would not be set",
    }
}

/// Returns what was left out, and why.
fn skipped(stats: &UnpackStats) -> Vec<String> {
    let xattrs = [Aspect::Acls, Aspect::UserXattrs, Aspect::Capabilities, Aspect::OtherXattrs];
    let lines = [
        (stats.owners_skipped, "entry", "owned by you instead of the recorded owner", &[Aspect::Owners][..]),
        (stats.set_ids_skipped, "set-id file", "unpacked without set-id bits", &[Aspect::Owners]),
        (stats.xattrs_skipped, "extended attribute", "not set", &xattrs),
        (stats.devices_skipped, "device", "not created", &[Aspect::Devices]),
    ];
    let why = |aspects: &[Aspect]| {
        let of = stats.not_kept.iter().filter(|left_out| aspects.contains(&left_out.what));
        let reasons: BTreeSet<&str> = of.map(|left_out| &*left_out.why).collect();
        reasons.into_iter().collect::<Vec<_>>().join("; ")
    };
    let some = lines.into_iter().filter(|(number, ..)| *number > 0);
    let counted = some.map(|(number, noun, what, of)| format!("{}: {what} ({})", count(number, noun), why(of)));
    let of_files = stats.not_kept.iter().filter_map(|left_out| {
        let what = match left_out.what {
            Aspect::Modes => "permission bits not set",
            Aspect::Times => "times not stored exactly",
            _ => return None,
        };
        Some(format!("{}: {what} ({})", count(left_out.files, "file"), left_out.why))
    });
    counted.chain(of_files).collect()
}

/// Prints what a dry run would read.
pub(super) fn would_read(out: &mut dyn Write, stats: &InstallStats) -> io::Result<()> {
    let requests = stats.requests.map(|requests| format!(", by {}", count(requests, "request")));
    let requests = requests.unwrap_or_default();
    writeln!(out, "  {} would be read{requests}; nothing was written", Bytes(stats.stored_bytes))
}
