//! Mounts an installed tree of a composefs store.

use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use sealift::composefs::{ImageChecked, MountStats, mount};
use serde::Serialize;

use super::Mount;
use crate::escape;
use crate::failure::{About as _, Failure};
use crate::human::{self, Bytes, count};
use crate::show::{BOLD, WARN};
use crate::signers::Signers;
use crate::trust_args::Judge;

impl Mount {
    /// Mounts the tree `name` of a store.
    pub(super) fn run_store(&self, store: &Path, name: &str, mountpoint: &Path) -> Result<(), Failure> {
        let start = Instant::now();
        let judge = self.trust.load()?;
        let mounted = self.progress.watch(self.show, "Opening", |progress| {
            mount(store, name, mountpoint, self.jobs.count(), judge.guard(), progress)
        });
        let (stats, judged) = mounted.about(store)?;
        judge.saw(judged);
        judge.warn(self.show);
        Ok(self.print_store(mountpoint, &stats, &judge, start.elapsed())?)
    }

    fn print_store(
        &self,
        mountpoint: &Path,
        stats: &MountStats,
        judge: &Judge,
        elapsed: Duration,
    ) -> std::io::Result<()> {
        let mut out = self.show.out();
        let (name, version) = judge.identity();
        let is_sealed = stats.checked == ImageChecked::Kernel;
        let summary = JsonImageMount {
            name,
            version,
            signers: judge.signers(),
            tree: &stats.name,
            image: &stats.image,
            objects: stats.objects,
            sealed: is_sealed,
            hashed_bytes: stats.hashed_bytes,
            seconds: human::seconds(elapsed),
        };
        if self.show.is_told(&mut out, &summary)? {
            return Ok(());
        }
        let at = mountpoint.display().to_string();
        let (at, tree) = (escape::text(&at), escape::text(&stats.name));
        writeln!(out, "{BOLD}{at}{BOLD:#}: mounted {tree}, version {version}{}", judge.mark())?;
        judge.print_signers(&mut out)?;
        judge.print_since(&mut out)?;
        writeln!(out, "  image {}", stats.image)?;
        let (objects, time) = (count(stats.objects, "object"), human::duration(elapsed));
        if is_sealed {
            return writeln!(out, "  {objects}: the kernel checks each byte it reads");
        }
        writeln!(out, "  {objects}, {} hashed in {time}", Bytes(stats.hashed_bytes))?;
        writeln!(out, "  {WARN}not sealed{WARN:#}: anyone who can write to the store can change the mounted files")
    }
}

#[derive(Serialize)]
struct JsonImageMount<'a> {
    name: &'a str,
    version: u64,
    #[serde(flatten)]
    signers: Signers,
    tree: &'a str,
    image: &'a str,
    objects: u64,
    sealed: bool,
    hashed_bytes: u64,
    seconds: f64,
}
