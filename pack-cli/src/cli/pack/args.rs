//! The arguments of `sealift pack`, and the options that they give.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, ValueHint};
use sealift::order::OrderProfile;
use sealift::pack::{PackOptions, Zone};
use sealift::recovery::Amount;
use sealift::seal::Algorithm;
use sealift::source::{
    DirectoryOptions, Exclude, MetadataOptions, ModeRules, OmitOutput, OwnerRule, SourceOptions, XattrFilter,
};
use sealift::trust::TargetKind;
use sealift::{Error, Identity, Index, Input, Opened};

use super::owner::{parse_owner, parse_rule};
use crate::failure::Failure;
use crate::human;
use crate::jobs_arg::JobsArg;
use crate::limits::limits;
use crate::one_of::one_of;
use crate::order::order_of;
use crate::progress_args::ProgressArgs;
use crate::recovery_amount::parse_recovery_amount;
use crate::show::Show;
use crate::time::Moment;
use crate::trust_args::{PolicyArgs, UnsignedArgs, parse_time};
use crate::verity_args::HASHES;
use crate::volume_size::parse_volume_size;

/// Pack trees into one bundle
///
/// A SOURCE is a directory, a single file such as a disk image, a block device, or an archive: tar:FILE, or cpio:FILE in the newc format of an
/// initramfs; with - as FILE, pack reads the archive from standard input. Several sources become the refs of one bundle and share identical files: name
/// each, as in os=/srv/os. A single source becomes the ref main.
///
/// The content of a block device becomes one file, named as the device with .img behind it, with mode 0644, owner root and time 0. No file
/// system on it may be mounted read-write. image:FILE takes a file or a device in the same way, so that equal content gives equal bytes;
/// image:NAME=FILE names the file in the tree.
///
/// ostree:REPO packs all refs of an OSTree repository, and ostree:REPO:REF one of them, with their names, commits and signatures.
/// NAME=ostree:REPO:CHECKSUM packs a commit as the ref NAME. If REPO contains a colon, the longest prefix that names a directory is taken as
/// REPO.
///
/// oci:DIR[:TAG] packs an image of an OCI layout, and docker-archive:FILE[:REFERENCE] one of an archive that `docker save` or `podman save` wrote;
/// with - as FILE, from standard input. The tree is an OCI layout with the image's layers uncompressed: the image keeps its id, and its manifest gets
/// another digest if layers were compressed.
///
/// With --base, pack makes a delta: it carries only what the base lacks, and updates targets that hold the base. The bundle appears in one
/// rename, once it is complete. With SOURCE_DATE_EPOCH set, the same trees and options give the same bytes.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  sealift pack /srv/os -o os.sealift --name os --bundle-version 7 \\
      --key ~/.ssh/id_ed25519
  sealift pack os=/srv/os docs=tar:docs.tar -o all.sealift --name all \\
      --bundle-version 12
  sealift pack /srv/os -o os-8.sealift --name os --bundle-version 8 \\
      --order-from os-7.sealift
  sealift pack /srv/os -o os-7-to-8.sealift --name os --bundle-version 8 \\
      --base os-7.sealift
  sealift pack ostree:/ostree/repo --ref os/stable -o os.sealift
  sealift pack ostree:/srv/repo --ref os/8 -o os-7-to-8.sealift --name os \\
      --bundle-version 8 --base ostree:/srv/repo:os/7
  docker export box | sealift pack tar:- -o box.sealift --owner-map uid:1000=0
  zstd -dc /boot/initrd.img | sealift pack cpio:- -o initrd.sealift
  sealift pack image:root.img=/dev/mmcblk0p3 -o root.sealift
  sealift pack oci:images:app-2 -o app.sealift --recipes
  podman save app | sealift pack docker-archive:- -o app.sealift
  sealift pack disk.img -o - --name disk | ssh nas 'cat > disk.sealift'")]
pub(crate) struct Pack {
    /// What to pack, optionally with the name of its ref
    #[arg(value_name = "[REF=]SOURCE", required = true, value_hint = ValueHint::AnyPath)]
    pub(super) sources: Vec<OsString>,
    /// The bundle to write; - writes it to standard output
    #[arg(long, short, value_name = "BUNDLE")]
    pub(super) output: PathBuf,
    /// Split the bundle into volumes of at most SIZE beside it, as `sealift split` does, and remove it then; both need room meanwhile
    #[arg(long, value_name = "SIZE", value_parser = parse_volume_size, conflicts_with = "dry_run")]
    pub(super) split: Option<u64>,
    /// With `--split`, write so many recovery volumes, or so much recovery, as `sealift split --recovery` does
    #[arg(long, value_name = "N|P%", requires = "split", value_parser = parse_recovery_amount)]
    pub(super) recovery: Option<Amount>,
    /// Replace the bundle if it exists
    #[arg(long)]
    pub(super) force: bool,

    /// The name of what the bundle updates; required with --key [default: the output's name without .sealift]
    #[arg(long, value_name = "NAME", help_heading = "Identity")]
    pub(super) name: Option<String>,
    /// A whole number, higher than that of the previous bundle; required with --key [default: 0]
    #[arg(long, value_name = "N", help_heading = "Identity", value_parser = parse_version)]
    pub(super) bundle_version: Option<u64>,
    /// When the bundle expires; devices refuse it from then on
    #[arg(long, value_name = "TIME", help_heading = "Identity", value_parser = parse_time)]
    pub(super) expires: Option<i64>,
    /// Restrict the bundle to devices with this tag [default: those of the base, otherwise any device]
    #[arg(long, value_name = "TAG", help_heading = "Identity")]
    pub(super) compatible: Vec<String>,
    /// Make the bundle for any device, although its base is restricted to some
    #[arg(long, conflicts_with = "compatible", help_heading = "Identity")]
    pub(super) any_device: bool,
    /// Add an annotation, such as url=https://example.org
    #[arg(long, value_name = "KEY=VALUE", help_heading = "Identity")]
    pub(super) annotate: Vec<String>,
    /// Record the composefs image of each tree, for unpacking to composefs:REPO; HASH is sha256 (the default) or sha512; repeatable
    #[arg(long, value_name = "HASH", help_heading = "Identity", value_parser = one_of(HASHES), hide_possible_values = true,
        num_args = 0..=1, require_equals = true, default_missing_value = "sha256")]
    pub(super) composefs: Vec<Algorithm>,

    /// Sign with this OpenSSH key: a private key (Ed25519 or ECDSA P-256), or a public key (also RSA or a token) to sign through ssh-agent
    #[arg(long, value_name = "KEY", help_heading = "Identity")]
    pub(super) key: Vec<PathBuf>,
    /// Read the passphrase of the keys from the first line of this file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Identity", requires = "key")]
    pub(super) passphrase_file: Option<PathBuf>,

    /// Exclude files that match this pattern, in .gitignore syntax
    #[arg(long, value_name = "PATTERN", help_heading = "Files")]
    pub(super) exclude: Vec<String>,
    /// Exclude files that match a pattern in this file, one per line
    #[arg(long, value_name = "FILE", help_heading = "Files")]
    pub(super) exclude_from: Vec<PathBuf>,
    /// The ref of ostree:REPO to pack, or COLLECTION:REF [default: all]
    #[arg(long = "ref", value_name = "REF", help_heading = "OSTree")]
    pub(super) refs: Vec<String>,
    /// Also include N parent commits of each ref (ostree:REPO)
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true, help_heading = "OSTree")]
    pub(super) depth: u32,

    /// Do not cross file system boundaries; mount points become empty directories
    #[arg(long, help_heading = "Files")]
    pub(super) one_file_system: bool,
    /// Also pack extended attributes that match, in addition to user.*, ACLs and capabilities
    #[arg(long, value_name = "PATTERN", help_heading = "Files")]
    pub(super) xattrs: Vec<OsString>,
    /// Set owner and group of all files, as numbers
    #[arg(long, value_name = "UID:GID", help_heading = "Files", value_parser = parse_owner)]
    pub(super) owner: Option<(u32, u32)>,
    /// Map an owner or group to another, as in uid:1000=0
    #[arg(long, value_name = "RULE", help_heading = "Files", value_parser = parse_rule)]
    pub(super) owner_map: Vec<OwnerRule>,
    /// Change permission bits, written as for chmod: go-w, or u=rwX,go=rX for a checkout made under any umask
    #[arg(long, value_name = "CHANGES", help_heading = "Files")]
    pub(super) mode: Option<ModeRules>,
    /// Limit modification times to the creation time of the bundle
    #[arg(long, help_heading = "Files")]
    pub(super) clamp_mtime: bool,

    /// Store these files first, in that order: a profile of `sealift order`, or a list of paths
    #[arg(long, value_name = "PROFILE", help_heading = "Storage")]
    pub(super) order: Option<PathBuf>,
    /// Take the order from a full bundle, or from what is installed in a directory, ostree:REPO or composefs:STORE: the paths that it stores
    /// first are stored first again; needs no signature
    #[arg(long, value_name = "BUNDLE|TARGET", help_heading = "Storage", value_hint = ValueHint::AnyPath, conflicts_with = "order")]
    pub(super) order_from: Option<PathBuf>,
    /// Put what this earlier bundle lacks into chunks of its own, so that a device that has it reads little else of this bundle without a
    /// delta; repeat for earlier versions; needs no signature
    #[arg(long, value_name = "BUNDLE", help_heading = "Storage", value_hint = ValueHint::FilePath, conflicts_with_all = ["base", "request"])]
    pub(super) apart_from: Vec<PathBuf>,
    /// zstd compression level, 1 to 22
    #[arg(long, value_name = "N", default_value_t = PackOptions::LEVEL, help_heading = "Storage",
        value_parser = clap::value_parser!(i32).range(1..=22))]
    pub(super) level: i32,
    /// Size of a chunk, the unit of compression and reading, 4KiB to 64MiB [default: 2MiB]
    #[arg(long, value_name = "SIZE", help_heading = "Storage", value_parser = human::parse_size)]
    pub(super) chunk_size: Option<u64>,
    /// Size of a chunk with files named by --order or --order-from, at least 4KiB; --chunk-size if that is less [default: 256KiB]
    #[arg(long, value_name = "SIZE", help_heading = "Storage", value_parser = human::parse_size)]
    pub(super) order_chunk_size: Option<u64>,
    /// Where to store the files that are read first: at the start of the bundle, or at its end, the fastest part of a disc that the bundle
    /// fills; at the end, a pipe delivers them last [default: start]
    #[arg(
        long,
        value_name = "start|end",
        value_parser = one_of([("start", Zone::Start), ("end", Zone::End)]),
        default_value = "start",
        hide_default_value = true,
        hide_possible_values = true,
        help_heading = "Storage"
    )]
    pub(super) zone: Zone,
    /// Space to reserve for signatures, including later ones, at most 512KiB; if they need more, sign copies the bundle
    #[arg(long, value_name = "SIZE", default_value = "1KiB", help_heading = "Storage", value_parser = signature_room)]
    pub(super) signature_room: u32,
    #[command(flatten)]
    pub(super) jobs: JobsArg,

    /// Only estimate the size of the bundle and the time to pack it, from a sample of the files, or for a delta from all files
    #[arg(long)]
    pub(super) dry_run: bool,

    /// Make a delta against this base: a bundle, an installed directory, or a commit, [REF=]ostree:REPO[:REF]
    #[arg(long, value_name = "BASE", help_heading = "Delta", value_hint = ValueHint::AnyPath)]
    pub(super) base: Vec<OsString>,
    /// Make a delta for the target described by this request; with --base, use only objects that both provide
    #[arg(long = "for", value_name = "REQUEST", help_heading = "Delta", value_hint = ValueHint::FilePath)]
    pub(super) request: Option<PathBuf>,
    /// Store images, archives and compressed files as the files in them, from which devices make them again byte by byte; the browser's page
    /// checks what is stored, and makes nothing
    #[arg(long)]
    pub(super) recipes: bool,
    /// Most memory that a device may need to decode a chunk
    #[arg(long, value_name = "SIZE", help_heading = "Delta", default_value = "128MiB", value_parser = human::parse_size)]
    pub(super) delta_memory: u64,
    #[command(flatten)]
    pub(super) policy: PolicyArgs,
    #[command(flatten)]
    pub(super) unsigned: UnsignedArgs,

    #[command(flatten)]
    pub(super) show: Show,
    #[command(flatten)]
    pub(super) progress: ProgressArgs,
}

impl Pack {
    pub(crate) fn uses(&self) -> crate::limits::Uses {
        crate::limits::Uses::of(self.jobs)
    }

    /// Requires name and version of a signed bundle to be explicit, not derived from a file name or left at a default.
    pub(super) fn check_signed_identity(&self) -> Result<(), Failure> {
        let missing = match (&self.name, self.bundle_version) {
            _ if self.key.is_empty() => return Ok(()),
            (Some(_), Some(_)) => return Ok(()),
            (None, None) => "--name NAME and --bundle-version N",
            (None, Some(_)) => "--name NAME",
            (Some(_), None) => "--bundle-version N",
        };
        Err(Failure::usage(format!("a signed bundle needs {missing}: the defaults are only for unsigned bundles")))
    }

    /// Returns the names of the refs and their sources.
    pub(super) fn specs(&self) -> Result<Vec<(Option<String>, OsString)>, Failure> {
        let several = self.sources.len() > 1;
        let specs = self.sources.iter().map(|argument| {
            let (name, source) = split_ref(argument);
            match name {
                Some(name) => Ok((Some(name.to_owned()), source.to_owned())),
                // A repository's refs have names of their own.
                None if several && TargetKind::of(source).0 != TargetKind::Ostree => Err(Failure::usage(format!(
                    "{}: with several sources, give each a ref, as in REF={}",
                    source.display(),
                    source.display()
                ))),
                None => Ok((None, source.to_owned())),
            }
        });
        specs.collect()
    }

    pub(super) fn options(&self, epoch: Option<i64>) -> Result<PackOptions, Failure> {
        let created = epoch.unwrap_or_else(|| Moment::now().0);
        if let Some(expires) = self.expires.filter(|expires| *expires <= created) {
            let expires = Moment(expires);
            return Err(Failure::usage(format!(
                "--expires {expires} is in the past: no device would accept the bundle"
            )));
        }
        let order = match (&self.order, &self.order_from) {
            (Some(path), _) => Some(OrderProfile::read(path)?),
            (None, Some(path)) => Some(order_of(path, |_| {
                Failure::usage(format!(
                    "{0} is a delta, which stores only part of the order: use `sealift order export {0} --base BASE -o PROFILE` and \
                     --order PROFILE",
                    path.display()
                ))
            })?),
            (None, None) => None,
        };
        let apart_from = self.apart_from.iter().map(|path| index_of(path)).collect::<Result<_, Failure>>()?;
        Ok(PackOptions {
            identity: Identity {
                name: self.bundle_name()?,
                version: self.bundle_version.unwrap_or(0),
                created,
                expires: self.expires,
                compatible: self.tags()?,
            },
            annotations: self.annotations()?,
            images: self.composefs.clone(),
            order,
            apart_from,
            level: self.level,
            chunk_len: self.chunk_size.unwrap_or(PackOptions::CHUNK_LEN),
            hot_chunk_len: self.order_chunk_size.unwrap_or(PackOptions::HOT_CHUNK_LEN),
            zone: self.zone,
            recipes: self.recipes,
            delta_memory: self.delta_memory,
            signature_room: self.signature_room,
            limits: limits(),
            jobs: self.jobs.count(),
        })
    }

    fn bundle_name(&self) -> Result<String, Failure> {
        let name = match &self.name {
            Some(name) => name.clone(),
            None if self.output == Path::new("-") => {
                return Err(Failure::usage("a bundle on standard output needs --name NAME"));
            }
            None => {
                let file = self.output.file_name().unwrap_or_default().to_string_lossy();
                match file.rsplit_once('.') {
                    Some((stem, ending)) if ending.eq_ignore_ascii_case("sealift") => stem.to_owned(),
                    _ => file.into_owned(),
                }
            }
        };
        if sealift::name::is_bundle_name(&name) {
            return Ok(name);
        }
        Err(Failure::usage(format!(
            "{name} is not a bundle's name: use at most 128 letters, digits, '.', '_', '+' and '-', a letter or digit first; set it with --name"
        )))
    }

    fn tags(&self) -> Result<Vec<String>, Failure> {
        let mut tags = self.compatible.clone();
        tags.sort();
        tags.dedup();
        match tags.iter().find(|tag| !sealift::name::is_bundle_name(tag)) {
            Some(tag) => Err(Failure::usage(format!("--compatible {tag}: use letters, digits, '.', '_', '+' and '-'"))),
            None => Ok(tags),
        }
    }

    fn annotations(&self) -> Result<Vec<(String, String)>, Failure> {
        let mut annotations = Vec::new();
        for text in &self.annotate {
            let refuse = |why: &str| Err(Failure::usage(format!("--annotate {text}: {why}")));
            match text.split_once('=') {
                Some((key, _)) if !sealift::name::is_bundle_name(key) => {
                    return refuse("use letters, digits, '.', '_', '+' and '-' for the key");
                }
                Some((_, value)) if value.len() > usize::from(u16::MAX) => {
                    return refuse("a value can have at most 65,535 bytes");
                }
                Some((key, value)) => annotations.push((key.to_owned(), value.to_owned())),
                None => return refuse("write KEY=VALUE"),
            }
        }
        annotations.sort();
        match annotations.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            Some(pair) => Err(Failure::usage(format!("--annotate {}: give each key once", pair[0].0))),
            None => Ok(annotations),
        }
    }

    pub(super) fn source_options(&self, created: i64) -> Result<SourceOptions, Failure> {
        let mut xattrs = XattrFilter::default();
        for pattern in &self.xattrs {
            xattrs.add(pattern.as_bytes());
        }
        let is_stdout = self.output == Path::new("-");
        let spool_dir = match is_stdout {
            false => self.output.parent().filter(|parent| !parent.as_os_str().is_empty()).map(Path::to_owned),
            true => Some(std::env::temp_dir()),
        };
        Ok(SourceOptions {
            directory: DirectoryOptions {
                xattrs,
                one_file_system: self.one_file_system,
                exclude: self.excluded()?,
                omit_output: if is_stdout { None } else { OmitOutput::of(&self.output)? },
                omit_lost_and_found: false,
                leave_mounts: false,
                progress: None,
            },
            metadata: MetadataOptions {
                owner: self.owner,
                owner_map: self.owner_map.clone(),
                modes: self.mode.clone().unwrap_or_default(),
                mtime_max: self.clamp_mtime.then_some(created),
            },
            spool_dir: spool_dir.unwrap_or_else(|| ".".into()),
            progress: None,
        })
    }

    fn excluded(&self) -> Result<Option<Exclude>, Failure> {
        let mut lines = String::new();
        for path in &self.exclude_from {
            let text = String::from_utf8(read(path)?);
            lines.push_str(&text.map_err(|_| Failure::usage(format!("{} is not UTF-8", path.display())))?);
            lines.push('\n');
        }
        // The last pattern that matches decides: that of the command line.
        let patterns: Vec<&str> = lines.lines().chain(self.exclude.iter().map(String::as_str)).collect();
        if patterns.is_empty() { Ok(None) } else { Ok(Some(Exclude::new(patterns.into_iter())?)) }
    }
}

/// Splits `REF=SOURCE`. Text before `=` that is not a valid ref name belongs to the path, as in `./a=b`.
pub(super) fn split_ref(argument: &OsStr) -> (Option<&str>, &OsStr) {
    let bytes = argument.as_bytes();
    let Some(at) = bytes.iter().position(|byte| *byte == b'=') else { return (None, argument) };
    match std::str::from_utf8(&bytes[..at]) {
        Ok(name) if sealift::name::is_ref_name(name) => (Some(name), OsStr::from_bytes(&bytes[at + 1..])),
        _ => (None, argument),
    }
}

/// Parses `--signature-room`: at most half of the longest signature area, so that the first signatures always fit beside it.
fn signature_room(text: &str) -> Result<u32, String> {
    let room = u32::try_from(human::parse_size(text)?).ok().filter(|room| *room <= 512 << 10);
    room.ok_or_else(|| "at most 512KiB".into())
}

/// Parses a version.
pub(crate) fn parse_version(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("the version must be a whole number, not {text:?}"))
}

pub(super) fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let read = std::fs::read(path);
    read.map_err(|source| Error::Io { doing: "read", path: path.to_owned(), source }.into())
}

/// Returns the index of a full bundle, unverified: it decides only where objects lie.
fn index_of(path: &Path) -> Result<Arc<Index>, Failure> {
    let opened = Input::open(path).and_then(|input| input.begin(limits())?.open_any());
    match opened.map_err(|error| error.of_bundle(path))?.1 {
        Opened::Whole(bundle) => Ok(Arc::new(bundle.index)),
        Opened::Delta(_) => Err(Failure::usage(format!(
            "--apart-from {0}: {0} is a delta; give the full bundle of that version",
            path.display()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refs_and_paths() {
        let split = |text| split_ref(OsStr::new(text));
        assert_eq!(split("a/b"), (None, OsStr::new("a/b")));
        assert_eq!(split("os/12=/srv/os"), (Some("os/12"), OsStr::new("/srv/os")));
        assert_eq!(split("x=a=b"), (Some("x"), OsStr::new("a=b")));
        assert_eq!(split("./a=b"), (None, OsStr::new("./a=b")));
        assert_eq!(split("=a"), (None, OsStr::new("=a")));
    }
}
