//! Packs trees into one signed file, verifies it, and unpacks it elsewhere.
//!
//! A tree of files becomes a **bundle**: one file with deduplicated and compressed contents under a signed index. Any transport can carry it, and the
//! receiver checks every byte before using it. The command line `sealift` is a thin layer over this library: a build script that publishes, a
//! software centre, or an updater on a device can do everything it does.
//!
//! The library does not print, prompt or exit the process, and reads no configuration except the files that [`trust::TrustPaths`] names. The format is
//! described in `spec/`.
//!
//! # Pack
//!
//! Opens sources, and packs them under the names of refs. The bundle appears in one rename, once it is complete.
//!
//! ```
//! use sealift::Output;
//! use sealift::pack::{PackOptions, PackRef, pack};
//! use sealift::source::{Source, SourceOptions};
//! use sealift::trust::sign::{Signer, generate_key, sign_root};
//! use sealift::{Identity, Progress};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let folder = folder.path();
//! # std::fs::create_dir(folder.join("tree"))?;
//! # std::fs::write(folder.join("tree/hello"), "hello")?;
//! generate_key(&folder.join("release"), None, "release@example.org")?; // or ssh-keygen made one
//! let keys = [Signer::open(&folder.join("release"), &|_| unreachable!("the key has no passphrase"))?];
//!
//! let source = Source::open_spec(folder.join("tree").as_os_str(), &SourceOptions::default(), 2)?;
//! let options = PackOptions::new(Identity {
//!     name: "os".into(),
//!     version: 7,             // higher than that of the previous bundle
//!     created: 1_700_000_000, // the same input and time give the same bytes
//!     expires: None,
//!     compatible: Vec::new(),
//! });
//! let refs = [PackRef { name: "main", source: &source }];
//! let output = Output::File(folder.join("os.sealift"));
//! let stats = pack(&refs, &output, &options, &|signed| sign_root(signed, &keys), &Progress::default())?;
//! assert_eq!(stats.file_bytes, std::fs::metadata(folder.join("os.sealift"))?.len());
//! # Ok(())
//! # }
//! ```
//!
//! # Unpack
//!
//! A [`trust::Guard`] holds the administrator's files and the versions that this device installed before. It judges a bundle by its head, before
//! anything after it is read, and makes it [`Trusted`](trust::Trusted): operations that extract or install content accept nothing else. An operation
//! that installs first makes sure that the state can be written, and raises the floor before the first file becomes reachable.
//!
//! ```
//! use sealift::trust::{Guard, TrustOptions};
//! use sealift::unpack::unpack;
//! use sealift::{InstallOptions, TreeOptions};
//! use sealift::{Input, Limits, Progress};
//!
//! # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/bundle.rs"));
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = signed_bundle()?;
//! # let folder = folder.path();
//! let guard = Guard::load(&TrustOptions {
//!     signers: Some(folder.join("allowed_signers")), // without it: /etc/sealift/allowed_signers, or the user's own
//!     state: Some(folder.join("state")),             // without it: /var/lib/sealift, or the user's own
//!     ..TrustOptions::default()
//! })?;
//! let target = folder.join("target");
//! let input = Input::open(&folder.join("os.sealift"))?; // or Input::pipe
//! let bundle = guard.admit(input, Limits::default())?; // fails if it is refused: not trusted, older, expired
//! // `update` changes an existing tree to match the bundle, and reads and writes only what differs.
//! let tree = TreeOptions { update: true, delete: true, ..TreeOptions::default() };
//! let options = InstallOptions { tree, jobs: 2, ..InstallOptions::default() };
//! let stats = unpack(bundle, &target, &options, &Progress::default())?;
//! assert_eq!(stats.files, 1);
//! assert_eq!(std::fs::read(target.join("etc/os-release"))?, b"ID=example\n");
//! # Ok(())
//! # }
//! ```
//!
//! # Verify
//!
//! One pass over a file or a pipe. Any signer will do: no content is extracted.
//!
//! ```
//! use sealift::verify::{Depth, verify};
//! use sealift::{Input, Kind, Limits, Progress};
//!
//! # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/bundle.rs"));
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = signed_bundle()?;
//! # let bundle = folder.path().join("os.sealift");
//! let check = || {
//!     let unopened = Input::open(&bundle)?.begin(Limits::default())?;
//!     verify(unopened, Depth::Objects, 2, &Progress::default())
//! };
//! assert_eq!(check()?.opened.head().root().identity.version, 7);
//!
//! let mut bytes = std::fs::read(&bundle)?;
//! *bytes.last_mut().expect("a bundle is not empty") ^= 1;
//! std::fs::write(&bundle, bytes)?;
//! assert_eq!(check().expect_err("a flipped bit is found").kind(), Some(Kind::Chunk));
//! # Ok(())
//! # }
//! ```
//!
//! # Inspect
//!
//! Lists what is in a bundle, from the parts before its chunks: for display, not for using its content.
//!
//! ```
//! use sealift::inspect::{Cost, EntryKind, entries};
//! use sealift::{Input, Limits};
//!
//! # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/bundle.rs"));
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = signed_bundle()?;
//! # let bundle = folder.path().join("os.sealift");
//! let bundle = Input::open(&bundle)?.open_bundle(Limits::default())?;
//! println!("unpacking takes about {} bytes of disk", Cost::of(bundle.head.root(), 2).disk);
//! let regular = entries(&bundle).filter(|entry| matches!(entry.what, EntryKind::Regular { .. }));
//! assert_eq!(regular.map(|entry| entry.path()).collect::<Vec<_>>(), [b"etc/os-release"]);
//! # Ok(())
//! # }
//! ```
//!
//! [`seal`] has the kernel protect files against changes (fs-verity). [`diff`] compares two bundles or trees, [`audit`] compares an installed tree
//! with its record, and [`cat`] extracts one file. [`mount`] serves a bundle as a read-only file system, and [`in_place`] reads its files for any
//! other server. [`request`] describes what a target holds, so that a publisher can pack what it lacks.
//!
//! # Progress and cancellation
//!
//! Each long operation takes a [`Progress`]. Another thread can take a [`Snapshot`] of it to show, and [`cancel`](Progress::cancel) at any
//! moment: the operation ends with [`Error::Cancelled`], and leaves the target as it was. An update that has begun to change the target is
//! completed instead. The next run resumes a cancelled unpacking. `examples/updater.rs` is such a program.
//!
//! # Errors
//!
//! There is one [`Error`]. [`Error::class`] says what a program can do about it:
//!
//! | class | what to do | status of `sealift` |
//! | --- | --- | --- |
//! | [`Damaged`](Class::Damaged) | get the bundle again, or repair the target by installing it once more | 1 |
//! | [`Refused`](Class::Refused) | take another bundle: this one is not trusted, is older, expired, or for another device | 3 |
//! | [`BaseMissing`](Class::BaseMissing) | get the full bundle | 4 |
//! | [`DiskFull`](Class::DiskFull) | free space, then repeat | 2 |
//! | [`Busy`](Class::Busy) | repeat later | 2 |
//! | [`Cancelled`](Class::Cancelled) | nothing; repeat to go on | 128 + N after signal N, which the program handles |
//! | [`Setup`](Class::Setup) | show the message to a person, who changes an option, a file, rights or a device | 2 |
//!
//! [`Error::kind`] says what is wrong with the bundle, and is `None` if the bundle is not at fault. [`Error::word`] is the error in one word. The
//! error's text is a sentence for people, with numbers.
//!
//! # Logs
//!
//! Subscribers to [`tracing`](https://docs.rs/tracing) receive phases, findings about the state, omissions, and fallbacks, such as copying where a
//! file system cannot share blocks. No subscriber is needed.
//!
//! # Features
//!
//! What every program has judges, verifies, installs, audits and compares bundles. The rest brings crates of its own, and each feature adds modules:
//!
//! | feature | modules | brings |
//! | --- | --- | --- |
//! | `pack` | `pack`, `recovery`, `split`, `request`, `simulate`, `order::import`, and patterns in [`source::Exclude`] | compressors, binary differences, regular expressions |
//! | `sign` | `trust::sign`, also for kernels; with `pack`, `publish` | private keys, X.509 and RSA |
//! | `http` | bundles and channels at addresses, which are otherwise refused | an HTTP client and TLS |
//! | `mount` | `mount` | FUSE |
//! | `composefs` | composefs images and stores, where they are otherwise refused | OpenSSL |
//! | `portal` | `portal` | HTTP, and the page, which `cargo xtask web` builds first |
//!
//! `cli`, on by default, is the command line with the first four. A program that uses the library disables it:
//!
//! ```toml
//! sealift = { version = "0", default-features = false } # an updater
//! sealift = { version = "0", default-features = false, features = ["pack", "sign"] } # a publisher
//! ```
//!
//! # Threads
//!
//! Operations run on as many threads as `jobs` in their options says, and all of them have ended when the operation returns. 0 means 1.
#![deny(missing_docs)]

pub mod audit;
pub mod cat;
pub mod channel;
pub mod choose;
pub mod clean;
pub mod copies;
pub mod diff;
pub mod dm_verity;
mod files;
pub mod in_place;
#[cfg(feature = "pack")]
pub mod inside;
pub mod inspect;
#[cfg(feature = "mount")]
pub mod mount;
pub mod order;
#[cfg_attr(
    not(all(feature = "pack", feature = "sign")),
    allow(dead_code, reason = "packing and signing use different parts of a spool")
)]
mod output;
#[cfg(feature = "pack")]
pub mod pack;
#[cfg(feature = "portal")]
pub mod portal;
#[cfg(all(feature = "pack", feature = "sign"))]
pub mod publish;
#[cfg(feature = "pack")]
pub mod recovery;
#[cfg(feature = "pack")]
pub mod request;
#[cfg(feature = "pack")]
pub mod simulate;
#[cfg(feature = "pack")]
pub mod split;
pub mod status;
pub mod trust;
pub mod verify;
pub mod volume;
#[cfg(feature = "pack")]
mod volume_name;

pub use output::Output;
pub use sealift_format::{
    Bundle, Chunk, Delta, Envelope, Head, Identity, Image, Index, Kind, Limits, Opened, Request, Root, Row, Volume,
    data_ranges, difference, name, recipes,
};
pub use sealift_format::{Error as FormatError, RootBase};
pub use sealift_store::base::{Bases, GivenBases, SharedBases};
pub use sealift_store::install::archive;
pub use sealift_store::install::{
    Destination, Durability, ExpectedPartition, InstallOptions, OsTreeOptions, SlotOptions, TreeOptions,
};
pub use sealift_store::install::{ImportStats, InstallStats, RefValue, SetRef, import_may_go_on};
pub use sealift_store::{
    ArchiveFault, Aspect, ChangeMedium, Child, Class, CommitSpec, CopyStats, DamagedRange, DirId, Error, FileFault,
    ImageFault, Input, Keeps, LeftRun, Media, Medium, Metadata, NewNode, Node, NodeId, NodeKind, OpenBundle,
    OpenVolume, Origin, Phase, Progress, RecordFault, RecoveryFault, RepoFault, SlotFault, Snapshot, TarFault, Times,
    Tree, Unopened, Visited, VolumeFault, VolumeSet, WantedVolume, base, by_set, has_only_volumes, is_address,
    is_damaged_copy, seal, source, without_secrets,
};
pub use sealift_verify::content::ContentError;
pub use sealift_verify::{Error as TrustError, escape};

/// Unpacks a bundle into a new directory, or onto an existing one.
///
/// A new directory appears by one rename when it is complete. With [`TreeOptions::update`], an existing one is changed to match the bundle: what it
/// lacks is first built beside it, and then moved there. The next run goes on from one that was stopped or killed, and [`clean`] discards what is left
/// of it. What a target holds is recorded beside it.
pub mod unpack {
    pub use sealift_store::install::directory::{Census, Consent, NotKept, UnpackStats};
    pub use sealift_store::install::directory::{is_half_updated, is_unfinished, may_go_on, unpack, unpack_asking};
}

/// The contents of a source: their object ids, read and hashed on several threads.
pub mod contents {
    pub use sealift_store::contents::{ContentInfo, Want, hash_contents};
}

/// Places that are opened once, and then reached by their descriptors, which no other process can exchange.
pub mod fs {
    pub use sealift_store::fs::found::{is_directory, is_there, named_at};
    pub use sealift_store::fs::parent::{parent_of, shown_directory};
    pub use sealift_store::fs::read_own_file;
    pub use sealift_store::fs::stat_cache::FileTime;
    pub use sealift_store::{InodeId, OwnDir, Place, Site};
}

/// OSTree repositories: imports into them and onto media, and audits.
pub mod ostree {
    pub use sealift_format::ostree::{Checksum, Malformed};
    pub use sealift_store::audit::ostree::audit;
    pub use sealift_store::install::ostree::{OsTreeStats, USB_PATH, import, write_usb};
}

/// composefs stores: imports into them, audits, and mounts of what they hold.
pub mod composefs {
    pub use sealift_store::audit::composefs::{ImageChecked, MountStats, audit, mount};
    pub use sealift_store::install::composefs::{ComposefsStats, import};
}

/// Slots: images that are written to block devices, and audits of them.
///
/// A slot begins with zeros until its image is complete, so that nothing mounts or boots it before. What was written there is recorded in the state,
/// bound to the partition.
pub mod slot {
    pub use sealift_store::audit::slot::{SlotAudit, audit};
    pub use sealift_store::install::slot::{SlotStats, SlotsStats, held_by_others, install};
    pub use sealift_store::slot::{Partition, Slot, SlotAddress};
}
