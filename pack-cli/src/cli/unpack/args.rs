//! The arguments of `sealift unpack`, and the options that they give.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

use clap::{Args, ValueHint};
use sealift::seal::Seal;
use sealift::slot::SlotAddress;
use sealift::{Destination, Durability, InstallOptions, OsTreeOptions, SlotOptions, TreeOptions};

use crate::base_args::BaseArgs;
use crate::bundle::BundleArg;
use crate::failure::Failure;
use crate::jobs_arg::JobsArg;
use crate::log;
use crate::next_volume::NextVolumeArgs;
use crate::one_of::one_of;
use crate::progress_args::ProgressArgs;
use crate::show::Show;
use crate::time::{Moment, source_date_epoch};
use crate::trust_args::AdmitArgs;

/// Unpack a trusted bundle into a new directory, or update one
///
/// A new directory appears in one rename, once it is complete, checked and flushed to disk; until then it is staged beside TARGET. With
/// --update, unpack stages what TARGET lacks, then moves it in file by file. It compares the existing files with the install record by
/// size, times and inode number, and reads and repairs those that differ. Repeat the command to resume an interrupted run. What this process
/// may not set, or the file system cannot store, such as owners without root, is left out and reported; later updates and audits do not expect it.
///
/// A delta bundle updates a TARGET that holds its base; unpack checks the parts of the base that it needs before it writes anything. With
/// --base it makes or updates any TARGET, as the full bundle does.
///
/// Of several bundles, or of those in a DIR such as a USB stick, unpack installs the newest that this device accepts: a delta if its base
/// is installed, otherwise the full bundle, otherwise a delta whose base is among them. It reports why it passed over the others, and tries the
/// next one if the chosen one is damaged. Copies of one bundle count as one: what is damaged in a copy is read from another. So do the volumes of a
/// bundle that was split, in a DIR or one by one.
///
/// A DIR with the list of a channel, or an address that ends with a slash, is a channel: unpack takes the cheapest way to its newest version. Several
/// addresses of one bundle or channel are mirrors, which share what is read; one that fails or sends something else is left.
///
/// With ostree:REPO as TARGET, unpack imports the bundle's OSTree commits into that repository and then sets its refs. With --usb DIR, it
/// imports them into DIR/.ostree/repo, where OSTree itself looks for updates on removable media.
///
/// With tar:FILE or cpio:FILE, unpack writes the tree of one ref as a new archive, for programs that read no bundles; with - as FILE, to standard
/// output, once all of it was checked. This installs nothing, and the device does not remember the version. Names in tar:FILE begin with ./, as `tar -c .` writes them.
///
/// With docker-archive:FILE, unpack writes an OCI image layout, as `pack oci:DIR` made it, as an archive that `podman load`, `docker load` and skopeo
/// read. With oci:DIR, it unpacks such a tree to a directory, as DIR alone does, but refuses any other tree, and a DIR that holds several images.
///
/// With composefs:REPO, unpack imports the trees for which the bundle records images (pack --composefs) into that store, and creates it
/// if needed. Each content is stored once, named by its fs-verity digest. `sealift mount` mounts the trees.
///
/// With a block device as TARGET, or image:FILE, unpack writes one file of the bundle to it, such as the image of a file system: IMAGE=/dev/DEVICE
/// names the file if there are several, and several devices take several images in one run. The device begins with zeros until all of its image
/// is there, so that nothing mounts or boots it before; a run that was interrupted is repeated, and writes only what is lacking. A delta is read
/// over what --base names, or over another device to which its base was unpacked. With --update, only blocks that differ are written. A device
/// that holds something else is refused without --adopt.
///
/// With --into FILE, unpack installs bundles of several names in one run. Each line of FILE has a name, its target, and options for it, quoted as in
/// a shell; empty lines and those that begin with # are skipped. A bundle whose name has no line is left alone; the exit status is that of the worst.
#[derive(Args, Debug)]
#[command(override_usage = "\
sealift unpack [OPTIONS] <BUNDLE|DIR>... <TARGET>
       sealift unpack [OPTIONS] <BUNDLE|DIR>... [IMAGE=]<DEVICE>...
       sealift unpack [OPTIONS] <BUNDLE|DIR>... --usb <DIR>
       sealift unpack [OPTIONS] <BUNDLE|DIR>... --into <FILE>")]
#[command(after_long_help = "\
Examples:
  sealift unpack os.sealift /srv/os --trust /etc/sealift/allowed_signers
  curl -s https://example.org/os.sealift | sealift unpack - /srv/second
  sealift unpack os.sealift etc --path etc --allow-unsigned
  sealift unpack os-2.sealift /srv/os --update --delete
  sealift unpack /media/stick /srv/os --name os --update --delete
  sealift unpack /media/stick/os.sealift /media/disc/os.sealift /srv/os
  sealift unpack /media/stick --into /etc/sealift/targets
  sealift unpack os-2.sealift ostree:/ostree/repo --remote debian
  sealift unpack os-2.sealift --usb /media/stick
  sealift unpack os-2-to-3.sealift ostree:/ostree/repo
  sealift unpack os-2-to-3.sealift /srv/new --base os-2.sealift
  sealift unpack image-2.sealift /dev/mmcblk0p3 --expect-partlabel root-b
  sealift unpack image-1-to-2.sealift /dev/mmcblk0p3 --base /dev/mmcblk0p2
  sealift unpack app-2.sealift /srv/app --update --then 'systemctl restart app'
  sealift unpack os.sealift tar:os.tar
  sealift unpack os.sealift tar:- | docker import - os
  sealift unpack app-2.sealift oci:/srv/images/app --update --delete
  sealift unpack app-2.sealift docker-archive:- | podman load
  sealift unpack os.sealift /srv/os --dry-run")]
pub(crate) struct Unpack {
    /// The bundle, several bundles, or directories of bundles; - reads one from standard input
    #[arg(skip)]
    pub(super) bundle: BundleArg,
    /// Bundles, or directories of bundles; - reads one from standard input. The last is TARGET:
    /// the directory to create or update, oci:DIR, ostree:REPO, composefs:REPO, tar:FILE, cpio:FILE,
    /// docker-archive:FILE, or block devices; without --update, the directory must be empty or not exist
    #[arg(value_name = "PATH", required = true, value_hint = ValueHint::AnyPath)]
    pub(super) paths: Vec<PathBuf>,
    #[arg(skip)]
    pub(super) target: Option<PathBuf>,
    /// Whether the target was given as oci:DIR
    #[arg(skip)]
    pub(super) image_layout: bool,
    #[arg(skip)]
    pub(super) slots: Vec<SlotAddress>,
    #[command(flatten)]
    pub(super) next_volume: NextVolumeArgs,
    /// Instead of TARGET: install the bundles of each name into the target that a line of FILE says
    ///
    /// A line is NAME TARGET [OPTION...], such as: os /srv/os --update --delete. Targets are absolute paths, none inside another. The options
    /// are those of unpack that concern one target, and --trust, --revoked, --threshold and --compatible for one name; those given here hold for all
    /// lines. Another user must not be able to write FILE.
    #[arg(
        long,
        value_name = "FILE",
        value_hint = ValueHint::FilePath,
        conflicts_with_all = [
            "next_volume", "name", "references", "remote", "mirror", "usb", "path", "update", "delete", "adopt", "assume_mtime", "seal",
            "hardlink_duplicates", "no_same_owner", "same_owner", "no_devices", "devices", "expect_partlabel", "expect_partuuid", "read_back",
            "then", "base", "durability", "no_check",
        ],
    )]
    pub(super) into: Option<PathBuf>,
    /// Files that were reported before
    #[arg(skip)]
    pub(super) said: Vec<PathBuf>,
    /// Install the bundle of this name, if there are several [default: the name installed in TARGET]
    #[arg(long, value_name = "NAME")]
    pub(super) name: Option<String>,
    /// The ref to unpack, if the bundle has several; for a repository, repeatable [default there: all]
    #[arg(long = "ref", value_name = "REF")]
    pub(super) references: Vec<String>,
    /// Import as refs of this remote of ostree:REPO, and require the signatures it requires
    #[arg(long, value_name = "NAME", conflicts_with = "mirror", help_heading = "OSTree")]
    pub(super) remote: Option<String>,
    /// Import the refs of a collection as mirrored refs of ostree:REPO
    #[arg(long, help_heading = "OSTree")]
    pub(super) mirror: bool,
    /// Instead of TARGET: create or update DIR/.ostree/repo on removable media, as `ostree create-usb` does
    #[arg(
        long,
        value_name = "DIR",
        value_hint = ValueHint::DirPath,
        conflicts_with_all = ["remote", "mirror"],
        help_heading = "OSTree",
    )]
    pub(super) usb: Option<PathBuf>,
    /// Unpack only this path and what is below it
    #[arg(long, value_name = "PREFIX")]
    pub(super) path: Option<OsString>,
    /// Update an existing directory; reads and writes only what it lacks
    #[arg(long)]
    pub(super) update: bool,
    /// With --update: delete files that the bundle does not have; --dry-run and -v list them
    #[arg(long)]
    pub(super) delete: bool,
    /// Take over a target that sealift did not create, or whose install record is lost or damaged; asks first
    ///
    /// Replaces existing files with those of the bundle, and with --delete deletes all others. Shows on the terminal what would be affected
    /// and asks for confirmation, even if standard input and output are pipes. Without a terminal, as in a service, proceeds without asking,
    /// except that --adopt --delete then needs --yes. With --dry-run, only reports it.
    #[arg(long)]
    pub(super) adopt: bool,
    /// With --adopt: do not ask
    #[arg(long, requires = "adopt")]
    pub(super) yes: bool,
    /// Read and hash existing files, instead of comparing sizes and times with the install record
    #[arg(long, conflicts_with = "no_check")]
    pub(super) rehash: bool,
    /// Do not check existing files: rely on the install record alone
    #[arg(long)]
    pub(super) no_check: bool,
    /// With --update, without an install record: assume that files whose size and time match are right, and do not read them
    #[arg(long)]
    pub(super) assume_mtime: bool,
    /// Protect files with fs-verity: require, try (if the file system supports it) or off [default: as before]
    ///
    /// A sealed file can be read, replaced and removed, but not written to; if its bytes change on the disk, reading it fails. Unpack seals
    /// new files before they appear, and the index in the install record too, with the bundle's kernel signature if it has one (`sign
    /// --kernel-key`). With require, it writes nothing if the file system does not support fs-verity or the kernel refuses that signature.
    /// Without this option an update seals if the last one did. Existing files are hashed before they are sealed for the first time.
    #[arg(long, value_name = "HOW", value_parser = one_of(SEALS), hide_possible_values = true)]
    pub(super) seal: Option<Seal>,
    /// When to flush to disk: none, end (before TARGET appears) or each (after each file)
    #[arg(long, value_name = "WHEN", value_parser = one_of(MOMENTS), default_value = "end", hide_possible_values = true)]
    pub(super) durability: Durability,
    /// Hard-link files that have the same content and metadata
    #[arg(long)]
    pub(super) hardlink_duplicates: bool,
    /// Leave all files to the user who unpacks, without set-id bits; later updates and audits of TARGET do the same
    ///
    /// Without this option or --same-owner, files get their owners if this process can set all of them: it needs the capabilities CAP_CHOWN,
    /// CAP_FOWNER, CAP_FSETID and CAP_DAC_OVERRIDE, and in a user namespace, all ids have to exist there.
    #[arg(long, overrides_with = "same_owner")]
    pub(super) no_same_owner: bool,
    /// Set owners and set-id bits, or refuse [default: in an update as before, otherwise if possible]
    #[arg(long)]
    pub(super) same_owner: bool,
    /// Do not create devices; later updates and audits of TARGET do the same
    #[arg(long, overrides_with = "devices")]
    pub(super) no_devices: bool,
    /// Create devices, or refuse [default: in an update as before, otherwise if possible]
    #[arg(long)]
    pub(super) devices: bool,
    /// Write to a block device only if its partition has this label, as in `lsblk -o PARTLABEL` (repeatable)
    ///
    /// With several devices, IMAGE= says which one is meant, by its image or device as it is given here; without it, all are.
    #[arg(long, value_name = "[IMAGE=]LABEL", help_heading = "Block devices")]
    pub(super) expect_partlabel: Vec<String>,
    /// Write to a block device only if its partition has this UUID, as in `lsblk -o PARTUUID` (repeatable); IMAGE= as above
    #[arg(long, value_name = "[IMAGE=]UUID", help_heading = "Block devices")]
    pub(super) expect_partuuid: Vec<String>,
    /// After writing to a block device, read everything again and compare it
    #[arg(long, help_heading = "Block devices")]
    pub(super) read_back: bool,
    /// Once the bundle is installed, run this shell command line, such as 'systemctl restart app'
    ///
    /// /bin/sh -c runs COMMAND when the target is complete and no longer locked. In its environment are SEALIFT_NAME, SEALIFT_VERSION,
    /// SEALIFT_TARGET (as it was given here) and SEALIFT_DIGEST (that of the content, as `info` prints it); it has nothing to read. COMMAND runs
    /// even if TARGET already held the bundle, since the run that installed it may have been killed before its command; it does not run with
    /// --dry-run, or if unpack fails. SIGINT, SIGTERM and SIGHUP are passed on to it. If it fails, the bundle remains installed, and the exit
    /// status is 5. With --json, what it prints goes to standard error.
    #[arg(long, value_name = "COMMAND", value_hint = ValueHint::CommandString)]
    pub(super) then: Option<OsString>,
    /// Only print what would be written and deleted; the exit status is that of the real run, except that damaged content is not detected
    #[arg(long)]
    pub(super) dry_run: bool,
    #[command(flatten)]
    pub(super) jobs: JobsArg,
    #[command(flatten)]
    pub(super) base: BaseArgs,
    #[command(flatten)]
    pub(super) trust: AdmitArgs,
    #[command(flatten)]
    pub(super) show: Show,
    #[command(flatten)]
    pub(super) progress: ProgressArgs,
}

/// The values of `--durability`.
const MOMENTS: [(&str, Durability); 3] =
    [("none", Durability::None), ("end", Durability::End), ("each", Durability::Each)];
/// The values of `--seal`.
const SEALS: [(&str, Seal); 3] = [("require", Seal::Require), ("try", Seal::Try), ("off", Seal::Off)];

impl Unpack {
    pub(crate) fn uses(&self) -> crate::limits::Uses {
        crate::limits::Uses::of(self.jobs)
    }

    pub(super) fn options(&self) -> InstallOptions {
        InstallOptions {
            refs: self.references.clone(),
            bases: self.base.given(self.jobs, self.trust.state()),
            seal: self.seal.unwrap_or_default(),
            adopt: self.adopt,
            rehash: self.rehash,
            no_check: self.no_check,
            dry_run: self.dry_run,
            jobs: self.jobs.count(),
            tree: TreeOptions {
                prefix: prefix(self.path.clone().unwrap_or_default()),
                update: self.update,
                delete: self.delete,
                assume_mtime: self.assume_mtime,
                durability: self.durability,
                hardlink_duplicates: self.hardlink_duplicates,
                owners: choice(self.same_owner, self.no_same_owner),
                devices: choice(self.devices, self.no_devices),
                list_deletions: self.dry_run || log::is_on(),
                image_layout: self.image_layout,
            },
            ostree: OsTreeOptions::default(),
            slot: SlotOptions { read_back: self.read_back, expected: self.expected_partitions() },
        }
    }

    /// The options for an OSTree repository.
    pub(super) fn ostree_options(&self) -> Result<InstallOptions, Failure> {
        let destination = match (&self.remote, self.mirror) {
            (Some(remote), _) => Destination::Remote(remote.clone()),
            (None, true) => Destination::Mirror,
            (None, false) => Destination::Heads,
        };
        Ok(InstallOptions { ostree: OsTreeOptions { destination, now: now()? }, ..self.options() })
    }

    /// Refuses options that are for directories only.
    pub(super) fn check_of_repository(&self) -> Result<(), Failure> {
        if self.update || self.path.is_some() || self.hardlink_duplicates {
            return Err(Failure::usage("--update, --path and --hardlink-duplicates are for directories"));
        }
        if self.options().tree.owners.is_some() || self.options().tree.devices.is_some() {
            return Err(Failure::usage("--same-owner, --devices and their opposites are for directories"));
        }
        if self.durability != Durability::End {
            return Err(Failure::usage("--durability is for directories: a repository is always flushed at the end"));
        }
        Ok(())
    }
}

/// Returns what two opposite options say; the last one given counts.
fn choice(is_on: bool, is_off: bool) -> Option<bool> {
    (is_on || is_off).then_some(is_on)
}

/// Returns the time to record for what is written now, in seconds since 1970.
fn now() -> Result<u64, Failure> {
    let now = source_date_epoch()?.unwrap_or_else(|| Moment::now().0);
    Ok(now.max(0).cast_unsigned()) // a clock before 1970 counts as 1970
}

/// Normalizes a path: `/usr/`, `./usr` and `usr` are the same in a bundle.
fn prefix(path: OsString) -> Vec<u8> {
    let path = path.into_vec();
    let names = path.split(|byte| *byte == b'/').filter(|name| !matches!(*name, b"" | b"."));
    names.collect::<Vec<_>>().join(&b'/')
}
