//! `sealift mount`: mounts an installed tree of a composefs store.

use std::path::PathBuf;

use clap::{Args, ValueHint};

#[cfg(not(feature = "composefs"))]
use super::failure::Failure;
use super::pace::Pace;
use super::show::Show;
use super::trust_args::TrustArgs;

/// Mount an installed tree of a composefs store
///
/// Mounts only if every object matches the signed bundle. If the store's objects are sealed (unpack --seal), the kernel checks each byte on
/// every read, and mounting reads none; otherwise mount first reads and hashes all of them. Checks the signatures of the installed bundle
/// again, as unpack does.
///
/// The mount is read-only. Requires root and Linux 6.12; unmount with umount.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  sealift unpack os.sealift composefs:/sysroot/composefs --seal try
  sealift mount composefs:/sysroot/composefs os /mnt
  sealift mount composefs:/srv/store app/main /srv/app --trust allowed_signers")]
pub(crate) struct Mount {
    /// The store, as composefs:REPO
    #[arg(value_name = "STORE", value_hint = ValueHint::DirPath)]
    store: PathBuf,
    /// The bundle's name; add /REF if the store has several trees of it
    #[arg(value_name = "NAME")]
    name: String,
    /// An existing directory to mount on
    #[arg(value_name = "MOUNTPOINT", value_hint = ValueHint::DirPath)]
    mountpoint: PathBuf,
    #[command(flatten)]
    trust: TrustArgs,
    #[command(flatten)]
    show: Show,
    #[command(flatten)]
    pace: Pace,
}

/// The error of a program built without composefs.
#[cfg(not(feature = "composefs"))]
pub(crate) fn without_composefs() -> Failure {
    Failure::usage(
        "this sealift was built without composefs: use one built with `cargo xtask dist` or \
         `cargo build --release --features composefs`",
    )
}

#[cfg(not(feature = "composefs"))]
impl Mount {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let Self { store: _, name: _, mountpoint: _, trust: _, show: _, pace: _ } = self;
        Err(without_composefs())
    }
}

#[cfg(feature = "composefs")]
mod with_composefs {
    use std::io::Write;
    use std::time::{Duration, Instant};

    use sealift::composefs::{Checked, MountOptions, MountStats, mount};
    use sealift::trust::TargetKind;
    use serde::Serialize;

    use super::Mount;
    use crate::bundle::jobs;
    use crate::escape;
    use crate::failure::{About as _, Failure};
    use crate::human::{self, Bytes, count};
    use crate::show::{BOLD, WARN, json_line};
    use crate::trust_args::Judge;

    impl Mount {
        pub(crate) fn run(self) -> Result<(), Failure> {
            let start = Instant::now();
            let (TargetKind::Composefs, store) = TargetKind::of(&self.store) else {
                return Err(Failure::usage(format!("{}: write composefs:REPO", self.store.display())));
            };
            let judge = self.trust.load()?;
            let options = MountOptions { jobs: jobs(None) };
            let mounted = self.pace.watch(self.show, "Opening", |progress| {
                mount(store, &self.name, &self.mountpoint, options, judge.guard(), progress)
            });
            let (stats, judged) = mounted.about(&self.store)?;
            judge.saw(judged);
            judge.warn(self.show);
            Ok(self.print(&stats, &judge, start.elapsed())?)
        }

        fn print(&self, stats: &MountStats, judge: &Judge, elapsed: Duration) -> std::io::Result<()> {
            let mut out = self.show.out();
            let (name, version) = judge.identity();
            let is_sealed = stats.checked == Checked::Kernel;
            if self.show.json {
                return json_line(
                    &mut out,
                    &Summary {
                        name,
                        version,
                        signers: judge.signers(),
                        tree: &stats.name,
                        image: &stats.image,
                        objects: stats.objects,
                        sealed: is_sealed,
                        hashed_bytes: stats.hashed_bytes,
                        seconds: human::seconds(elapsed),
                    },
                );
            }
            if self.show.quiet {
                return Ok(());
            }
            let at = self.mountpoint.display().to_string();
            let (at, tree) = (escape::text(&at), escape::text(&stats.name));
            writeln!(out, "{BOLD}{at}{BOLD:#}: mounted {tree}, version {version}{}", judge.mark())?;
            judge.print_signers(&mut out)?;
            judge.print_since(&mut out)?;
            writeln!(out, "  image {}", stats.image)?;
            let (objects, time) = (count(stats.objects, "object"), human::duration(elapsed));
            if is_sealed {
                return writeln!(out, "  {objects} sealed: the kernel checks each byte it reads");
            }
            writeln!(out, "  {objects}, {} hashed in {time}", Bytes(stats.hashed_bytes))?;
            writeln!(out, "  {WARN}not sealed{WARN:#}: anyone who can write to the store can change the mounted files")
        }
    }

    #[derive(Serialize)]
    struct Summary<'a> {
        name: &'a str,
        version: u64,
        signers: Vec<String>,
        tree: &'a str,
        image: &'a str,
        objects: u64,
        sealed: bool,
        hashed_bytes: u64,
        seconds: f64,
    }
}
