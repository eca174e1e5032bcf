//! `sealift mount`: mounts a bundle, or an installed tree of a composefs store.

mod composefs;
mod serve;

use std::path::PathBuf;

use clap::{Args, ValueHint};
use sealift::in_place::ReadOptions;
use sealift::trust::TargetKind;

use super::base_args::BaseArgs;
use super::failure::Failure;
use super::human;
use super::jobs_arg::JobsArg;
use super::limits::Uses;
use super::progress_args::ProgressArgs;
use super::show::Show;
use super::trust_args::AdmitArgs;

/// Mount a trusted bundle, and read its files in place
///
/// Nothing is unpacked: mount decodes only the chunks that are needed, and compares each with its digest before it returns a byte of it.
/// Reading a damaged file fails with an I/O error, and mount prints the chunk and its offset. If the medium is pulled out, reads from it fail
/// until it is back. If a full bundle and deltas are given, in any order, the version to which they lead is mounted; of a channel's directory or address, its newest
/// version. A single ref, or the one chosen with
/// --ref, becomes the root of the mount; several refs become directories in it.
///
/// The mount is read-only, and follows the owners and modes in the bundle. mount stays in the foreground until the directory is unmounted
/// with umount or fusermount3 -u, or until SIGINT, SIGTERM or SIGHUP, which unmounts it. Without root it needs fusermount3, and shows the
/// mount to this user only.
///
/// With composefs:REPO and the NAME of a bundle, mount has the kernel mount an installed tree of that store, and exits. NAME/REF chooses one
/// of several trees. In a sealed store (unpack --seal), the kernel checks each byte on every read: an object that is missing or does not
/// match the signed bundle cannot be read. In an unsealed store, mount first reads and hashes all objects, and mounts only if all match. It
/// checks the signatures of the installed bundle again, as unpack does, and requires root and Linux 6.12; unmount with umount.
#[derive(Args, Debug)]
#[command(override_usage = "\
sealift mount [OPTIONS] <BUNDLE>... <MOUNTPOINT>
       sealift mount [OPTIONS] composefs:<REPO> <NAME> <MOUNTPOINT>")]
#[command(after_long_help = "\
Examples:
  sealift mount os.sealift /mnt --trust /etc/sealift/allowed_signers
  sealift mount os-2.sealift os-2-to-3.sealift os-3-to-4.sealift /mnt
  sealift mount https://example.org/os/ /mnt
  sealift mount apps.sealift /srv/editor --ref editor
  sealift mount os.sealift mnt --record start.order
  sealift unpack os.sealift composefs:/sysroot/composefs --seal try
  sealift mount composefs:/sysroot/composefs os /mnt
  sealift mount composefs:/srv/store app/main /srv/app --trust allowed_signers")]
pub(crate) struct Mount {
    /// The bundle, with a delta also its bases, or a channel's directory or address; and then an existing directory to mount on
    #[arg(value_name = "BUNDLE|MOUNTPOINT", value_hint = ValueHint::AnyPath, required = true)]
    paths: Vec<PathBuf>,
    /// Mount only this ref; repeatable
    #[arg(long = "ref", value_name = "REF")]
    references: Vec<String>,
    #[command(flatten)]
    base: BaseArgs,
    /// Allow access by other users, as the modes permit; always on for root
    ///
    /// Without root, /etc/fuse.conf must contain user_allow_other.
    #[arg(long)]
    allow_other: bool,
    /// Make device nodes and set-user-id bits of the bundle effective
    #[arg(long)]
    dev_suid: bool,
    /// Record what is read, and write it to PROFILE for pack --order when the mount ends
    ///
    /// Records files in the order in which any process first reads them, and for a large file the ranges that the kernel requested, which
    /// include its read-ahead. Unlike `sealift order record`, does not require root.
    #[arg(long, value_name = "PROFILE", value_hint = ValueHint::FilePath)]
    record: Option<PathBuf>,
    /// Replace the profile if it exists
    #[arg(long, requires = "record")]
    force: bool,
    /// Memory for decoded content [default: 64MiB]
    #[arg(long, value_name = "SIZE", value_parser = human::parse_size)]
    cache: Option<u64>,
    #[command(flatten)]
    jobs: JobsArg,
    #[command(flatten)]
    trust: AdmitArgs,
    #[command(flatten)]
    show: Show,
    #[command(flatten)]
    progress: ProgressArgs,
}

impl Mount {
    pub(crate) fn uses(&self) -> Uses {
        Uses { jobs: self.jobs.count(), cache: self.cache_bytes() }
    }

    fn cache_bytes(&self) -> u64 {
        self.cache.unwrap_or(ReadOptions::CACHE_BYTES)
    }

    pub(crate) fn run(self) -> Result<(), Failure> {
        let [before @ .., last, mountpoint] = &self.paths[..] else {
            return Err(Failure::usage("give the directory to mount on after the bundle"));
        };
        let first = before.first().unwrap_or(last);
        match TargetKind::of(first) {
            (TargetKind::Directory, _) => self.run_bundle([before, std::slice::from_ref(last)].concat(), mountpoint),
            (TargetKind::Composefs, store) if before.len() == 1 => {
                let is_served = self.allow_other || self.dev_suid || self.record.is_some() || self.cache.is_some();
                if !self.references.is_empty() || self.base.is_given() || is_served {
                    return Err(Failure::usage(
                        "--ref, --base, --allow-other, --dev-suid, --record and --cache are for a bundle, not for a store",
                    ));
                }
                self.run_store(store, &last.to_string_lossy(), mountpoint)
            }
            (TargetKind::Composefs, _) => {
                Err(Failure::usage("give the bundle's name and a directory after composefs:REPO"))
            }
            (TargetKind::Ostree | TargetKind::Slot, _) => {
                Err(Failure::usage(format!("{}: mount takes bundles, not repositories or devices", first.display())))
            }
        }
    }
}
