//! The measures, their contenders and their targets.

use super::contenders as run;
use super::contenders::Contender;

pub(crate) struct Measure {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) ours: &'static Contender,
    pub(crate) peers: &'static [&'static Contender],
    /// Inputs that are created first, and not measured.
    pub(crate) needs: &'static [&'static Contender],
    /// Files that are read into the page cache before each run.
    pub(crate) reads: &'static [&'static str],
    pub(crate) state: State,
    /// A command that prints nothing if our result is right.
    pub(crate) check: Option<&'static str>,
    pub(crate) is_large: bool,
    pub(crate) wanted: &'static [Wanted],
}

/// Conditions that must hold before each run.
#[derive(PartialEq, Eq)]
pub(crate) enum State {
    Warm,
    /// No writes are pending, and nothing was removed recently: ext4 skips inodes freed in the last few minutes one by one, so that creating files
    /// after `rm -r` takes ten times as long.
    Untouched,
    /// This file is not in the page cache.
    Cold(&'static str),
}

pub(crate) enum Wanted {
    /// Our time is at most this multiple of that of the best of these peers.
    Seconds(f64, &'static [&'static str]),
    /// Our size is at most this multiple of that of this peer.
    Bytes(f64, &'static str),
    PeakMib(f64),
    Milliseconds(f64),
}

/// What most measures have.
const WARM: Measure = Measure {
    name: "",
    title: "",
    ours: &run::PACK,
    peers: &[],
    needs: &[],
    reads: &[],
    state: State::Warm,
    check: None,
    is_large: false,
    wanted: &[],
};

pub(crate) const MEASURES: &[Measure] = &[
    Measure {
        name: "pack",
        title: "Pack at level 3, index and fs-verity digests included",
        ours: &run::PACK,
        peers: &[&run::TAR_ZSTD, &run::MKSQUASHFS],
        reads: &["TREE"],
        wanted: &[Wanted::Seconds(0.45, &["tar + zstd"]), Wanted::Bytes(1.0, "mksquashfs"), Wanted::PeakMib(200.0)],
        ..WARM
    },
    Measure {
        name: "unpack",
        title: "Unpack to a new directory in memory",
        ours: &run::UNPACK,
        peers: &[&run::ZSTD_TAR, &run::UNSQUASHFS],
        needs: &[&run::PACK, &run::TAR_ZSTD, &run::MKSQUASHFS],
        reads: &["SCRATCH/tree.sealift", "SCRATCH/tree.tar.zst", "SCRATCH/tree.squashfs"],
        check: Some("rsync -aHAXnci --modify-window=-1 --delete TREE/ SCRATCH/new/"),
        wanted: &[Wanted::Seconds(0.8, &["zstd + tar"]), Wanted::Seconds(0.6, &["unsquashfs"]), Wanted::PeakMib(200.0)],
        ..WARM
    },
    Measure {
        name: "unpack-disk",
        title: "Unpack to a new directory on the disk, everything written when it ends",
        ours: &run::UNPACK_TO_DISK,
        peers: &[&run::ZSTD_TAR_TO_DISK, &run::UNSQUASHFS_TO_DISK, &run::CP_TO_DISK],
        needs: &[&run::PACK, &run::TAR_ZSTD, &run::MKSQUASHFS],
        reads: &["TREE", "SCRATCH/tree.sealift", "SCRATCH/tree.tar.zst", "SCRATCH/tree.squashfs"],
        state: State::Untouched,
        check: Some("rsync -aHAXnci --modify-window=-1 --delete TREE/ DISK/new/"),
        wanted: &[Wanted::Seconds(0.8, &["zstd + tar", "unsquashfs"]), Wanted::PeakMib(200.0)],
        ..WARM
    },
    Measure {
        name: "verify",
        title: "Verify a bundle of the tree and 2 GiB of noise: signature, index, layout, every chunk",
        ours: &run::VERIFY_BIG,
        peers: &[&run::B3SUM],
        needs: &[&run::PACK_BIG],
        reads: &["SCRATCH/big.sealift"],
        is_large: true,
        wanted: &[Wanted::Seconds(1.15, &["b3sum"])],
        ..WARM
    },
    Measure {
        name: "verify-deep",
        title: "Verify, decompressing and hashing every object",
        ours: &run::VERIFY_DEEP,
        peers: &[&run::ZSTD_TEST],
        needs: &[&run::PACK, &run::TAR_ZSTD],
        reads: &["SCRATCH/tree.sealift", "SCRATCH/tree.tar.zst"],
        wanted: &[Wanted::Seconds(1.0, &["zstd -t"])],
        ..WARM
    },
    Measure {
        name: "digest",
        title: "fs-verity digests of 2 GiB of noise",
        ours: &run::DIGEST,
        peers: &[&run::FSVERITY_DIGEST],
        reads: &["SCRATCH/noise"],
        is_large: true,
        // That is, at least 0.9 of the peer's speed.
        wanted: &[Wanted::Seconds(1.11, &["fsverity digest"])],
        ..WARM
    },
    Measure {
        name: "info",
        title: "State what a bundle is, from its head",
        ours: &run::INFO,
        needs: &[&run::PACK],
        reads: &["SCRATCH/tree.sealift"],
        wanted: &[Wanted::Milliseconds(60.0)],
        ..WARM
    },
    Measure {
        name: "cat",
        title: "Load index and layout, and hand out one small file",
        ours: &run::CAT,
        needs: &[&run::PACK],
        reads: &["SCRATCH/tree.sealift"],
        wanted: &[Wanted::Milliseconds(60.0)],
        ..WARM
    },
    Measure {
        name: "cat-cold",
        title: "The same from the disk, the bundle not in the page cache",
        ours: &run::CAT_COLD,
        needs: &[&run::PACK_TO_DISK],
        state: State::Cold("DISK/tree.sealift"),
        ..WARM
    },
];
