//! Packs trees into one signed file, verifies it, and unpacks it elsewhere.
//!
//! A tree of files becomes a **bundle**: one file with its contents deduplicated and compressed, under an index that is signed. Any
//! transport carries it, and whoever receives it checks every byte before it counts. The command line `sealift` is a thin shell on this
//! library, and does nothing that a program cannot do: a build script that publishes, a software centre, an updater on a device.
//!
//! The library prints nothing, asks nobody, never ends the process, and reads no configuration but the files that
//! [`trust::Places`] names. The format is described in `spec/sealift.md`.
//!
//! # Pack
//!
//! Sources are opened, and packed under the names of refs. The bundle appears by one rename when it is complete.
//!
//! ```
//! use sealift::pack::{Output, PackOptions, PackRef, pack};
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
//!     version: 7,             // rises from bundle to bundle
//!     created: 1_700_000_000, // equal input and an equal moment give equal bytes
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
//! A [`trust::Guard`] holds the administrator's files and what this device took before. It judges a bundle by its head, before anything
//! behind it is read, and makes it [`Trusted`](trust::Trusted): what hands out content or installs it takes nothing else. An operation that
//! installs makes sure that the state can be written before it begins, and raises the floor before the first file can be reached.
//!
//! ```
//! use sealift::trust::{Guard, TrustOptions};
//! use sealift::unpack::{UnpackOptions, unpack};
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
//! let bundle = guard.admit(input, Limits::default())?; // or it is refused: not trusted, older, expired
//! // `update` makes a tree that is there what the bundle has, and reads and writes only what it lacks.
//! let options = UnpackOptions { update: true, delete: true, jobs: 2, ..UnpackOptions::default() };
//! let stats = unpack(bundle, &target, &options, &Progress::default())?;
//! assert_eq!(stats.files, 1);
//! assert_eq!(std::fs::read(target.join("etc/os-release"))?, b"ID=example\n");
//! # Ok(())
//! # }
//! ```
//!
//! # Verify
//!
//! One pass over the file, from a file or a pipe. Anybody may have signed it: nothing of it is handed out.
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
//! What is in a bundle, from a few parts at its start: for a window that shows it, not for using its content.
//!
//! ```
//! use sealift::inspect::{Cost, What, entries};
//! use sealift::{Input, Limits};
//!
//! # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/bundle.rs"));
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = signed_bundle()?;
//! # let bundle = folder.path().join("os.sealift");
//! let bundle = Input::open(&bundle)?.open_bundle(Limits::default())?;
//! println!("unpacking takes about {} bytes of disk", Cost::of(bundle.head.root(), 2).disk);
//! let regular = entries(&bundle).filter(|entry| matches!(entry.what, What::Regular { .. }));
//! assert_eq!(regular.map(|entry| entry.path()).collect::<Vec<_>>(), [b"etc/os-release"]);
//! # Ok(())
//! # }
//! ```
//!
//! [`seal`] has the kernel keep files as they are (fs-verity). [`join`] makes the full bundle of a delta and its base, [`diff`] compares two bundles or trees, [`audit`] an installed tree with what it
//! took, and [`cat`] hands out one file. [`request`] says what a target holds, for who packs what it lacks.
//!
//! # Progress, and stopping
//!
//! Each long operation takes a [`Progress`]. Another thread asks it for a [`Snapshot`] whenever it draws, and may
//! [`cancel`](Progress::cancel) at any moment: the operation ends with [`Error::Cancelled`], and leaves the target as it was; an update
//! that has begun to change it ends well instead. An unpacking that was stopped goes on where it was when it is run again.
//! `examples/updater.rs` is such a program.
//!
//! # Errors
//!
//! There is one [`Error`]. [`Error::kind`] says in which way the bundle is at fault, and is `None` where it is not; [`Error::word`] is the
//! error in one word, for programs; its text is a sentence for people, with the numbers in it. A program ends as `sealift` does with
//! [`Error::exit_status`]:
//!
//! | status | meaning |
//! | --- | --- |
//! | 0 | good |
//! | 1 | the bundle or the target is damaged, or is not what it is to be |
//! | 2 | it could not be told or done: a wrong option, input or output, a full disk, a malformed trust file |
//! | 3 | refused by policy: not trusted, another name, older, expired, for another device |
//! | 4 | the base of a delta bundle is not here |
//! | 128 + N | stopped by signal N: the program's own, as the library knows no signals |
//!
//! # Logs
//!
//! Whoever subscribes to [`tracing`](https://docs.rs/tracing) is told of phases, of what was found in state, of what was left out, and of
//! what had to be done in another way, such as copying where a file system shares no blocks. Nothing depends on it.
//!
//! # Features
//!
//! `composefs` is composefs images and stores, and brings OpenSSL. `cli`, on by default, is the command line with all that it stands on. A
//! program leaves it out:
//!
//! ```toml
//! sealift = { version = "0", default-features = false }
//! ```
//!
//! # Threads
//!
//! Operations run on as many threads as their options' `jobs` say, all of which have ended when they return. 0 is 1.
#![deny(missing_docs)]

pub mod audit;
pub mod cat;
pub mod choose;
pub mod clean;
pub mod diff;
pub mod inspect;
pub mod join;
pub mod pack;
#[cfg(feature = "portal")]
pub mod portal;
pub mod request;
pub mod status;
pub mod trust;
pub mod verify;

pub use sealift_format::{Base as RootBase, Error as FormatError};
pub use sealift_format::{
    Bundle, Chunk, Envelope, Full, Head, Identity, Image, Index, Kind, Limits, Opened, Request, Root, name,
};
#[cfg(feature = "composefs")]
pub use sealift_store::target::composefs;
pub use sealift_store::target::{directory as unpack, ostree};
pub use sealift_store::{
    CommitSpec, DirId, Error, Input, Metadata, NewNode, NodeId, Phase, Progress, RepoFault, Snapshot, Tree, Unopened,
    Visited, base, contents, seal, source,
};
pub use sealift_verify::Error as TrustError;
