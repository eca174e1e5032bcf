//! `sealift unpack BUNDLE cpio:FILE` and the like: writes a tree as an archive.

use std::io::{self, Write as _};
use std::path::Path;
use std::time::Duration;

use sealift::archive::{self, ArchiveEncoder, ArchiveStats};

use super::Unpack;
use crate::escape;
use crate::failure::{Failure, shown};
use crate::human::{self, Bytes, count};
use crate::output;
use crate::show::{BOLD, WARN};
use crate::taken;
use crate::then::CommandEnd;
use crate::trust_args::Judge;

impl Unpack {
    /// Writes the tree to an archive, or to standard output. Nothing is installed, so nothing is remembered.
    pub(super) fn write_archive(&self, encoder: &ArchiveEncoder, file: &Path) -> Result<(), Failure> {
        if self.delete || self.adopt || self.rehash || self.no_check || self.seal.is_some() {
            return Err(Failure::usage("--delete, --adopt, --rehash, --no-check and --seal are not for archives"));
        }
        if self.references.len() > 1 {
            return Err(Failure::usage("an archive can hold only one --ref"));
        }
        let options = self.options();
        let to_stdout = file == Path::new("-");
        if to_stdout && !self.dry_run {
            output::check_stdout()?;
        }
        let taken = self.take(None, |bundle, progress| match to_stdout {
            true => archive::stream(
                bundle,
                encoder,
                &mut io::stdout().lock(),
                Path::new("standard output"),
                &options,
                progress,
            ),
            false => archive::write(bundle, encoder, file, &options, progress),
        });
        let (stats, judge, elapsed) = taken.map_err(|failure| failure.of_target(file))?;
        self.conclude(self.target.as_deref().unwrap_or(file), &judge, |then| {
            self.print_archive(encoder, file, &stats, &judge, elapsed, then)
        })
    }

    fn print_archive(
        &self,
        encoder: &ArchiveEncoder,
        file: &Path,
        stats: &ArchiveStats,
        judge: &Judge,
        elapsed: Duration,
        then: Option<&CommandEnd>,
    ) -> io::Result<()> {
        let mut out = self.show.summary(file == Path::new("-") && !self.dry_run);
        if self.show.is_told(&mut out, &taken::line(stats, judge, self.dry_run, elapsed, then))? {
            return Ok(());
        }
        let target = self.target.as_deref().unwrap_or(file);
        let verb = if self.dry_run { "would be written" } else { "written" };
        let (target, bundle) = (target.display().to_string(), shown(&self.bundle.bundle));
        writeln!(
            out,
            "{BOLD}{}{BOLD:#}: {verb} from {}{}",
            escape::text(&target),
            escape::text(&bundle),
            judge.mark()
        )?;
        judge.print_signers(&mut out)?;
        let ArchiveStats { members, archive_bytes, sockets_skipped, xattrs_skipped, install, .. } = stats;
        let members = count(*members, "member");
        if self.dry_run {
            writeln!(out, "  {members}, {} would be written", Bytes(*archive_bytes))?;
        } else {
            let (stored, time) = (Bytes(install.stored_bytes), human::duration(elapsed));
            let rate = human::rate(*archive_bytes, elapsed);
            writeln!(out, "  {members}, {} from {stored} in {time}, {rate}", Bytes(*archive_bytes))?;
        }
        for (number, noun) in [(*sockets_skipped, "socket"), (*xattrs_skipped, "extended attribute")] {
            if number > 0 {
                writeln!(
                    out,
                    "  {WARN}{} left out: {} archives cannot hold them{WARN:#}",
                    count(number, noun),
                    encoder.scheme
                )?;
            }
        }
        Ok(())
    }
}
