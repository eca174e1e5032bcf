//! Every measured command line. Ours are all in the first half: change our options there.

/// One program's way to do a job.
pub(crate) struct Contender {
    pub(crate) name: &'static str,
    pub(crate) line: &'static str,
    /// Its output, removed before each run.
    pub(crate) makes: Option<&'static str>,
}

const fn makes(name: &'static str, line: &'static str, file: &'static str) -> Contender {
    Contender { name, line, makes: Some(file) }
}

const fn only_reads(name: &'static str, line: &'static str) -> Contender {
    Contender { name, line, makes: None }
}

pub(crate) const PACK: Contender = makes(
    "sealift pack",
    "sealift pack --force TREE -o SCRATCH/tree.sealift --level 3 --name tree --bundle-version 1 --key SCRATCH/key --progress none",
    "SCRATCH/tree.sealift",
);
pub(crate) const PACK_TO_DISK: Contender = makes(
    "sealift pack",
    "sealift pack --force TREE -o DISK/tree.sealift --level 3 --name tree --bundle-version 1 --key SCRATCH/key --progress none",
    "DISK/tree.sealift",
);
/// The tree and 2 GiB of noise.
pub(crate) const PACK_BIG: Contender = makes(
    "sealift pack",
    "sealift pack --force tree=TREE noise=SCRATCH/noise -o SCRATCH/big.sealift --level 3 --name tree --bundle-version 1 --key SCRATCH/key --progress none",
    "SCRATCH/big.sealift",
);
pub(crate) const PACK_SMALL_FILES: Contender = makes(
    "sealift pack",
    "sealift pack --force SCRATCH/files -o SCRATCH/files.sealift --level 3 --name tree --bundle-version 1 --key SCRATCH/key --progress none",
    "SCRATCH/files.sealift",
);
pub(crate) const UNPACK: Contender = makes(
    "sealift unpack",
    "sealift unpack SCRATCH/tree.sealift SCRATCH/new --trust SCRATCH/allowed_signers --state SCRATCH/state --durability none --progress none",
    "SCRATCH/new",
);
pub(crate) const UNPACK_TO_DISK: Contender = makes(
    "sealift unpack",
    "sealift unpack SCRATCH/tree.sealift DISK/new --trust SCRATCH/allowed_signers --state SCRATCH/state --durability end --progress none",
    "DISK/new",
);
pub(crate) const UNPACK_SMALL_FILES: Contender = makes(
    "sealift unpack",
    "sealift unpack SCRATCH/files.sealift SCRATCH/new --trust SCRATCH/allowed_signers --state SCRATCH/state --durability none --progress none",
    "SCRATCH/new",
);
pub(crate) const VERIFY_BIG: Contender = only_reads(
    "sealift verify",
    "sealift verify SCRATCH/big.sealift --trust SCRATCH/allowed_signers --state SCRATCH/state --progress none",
);
pub(crate) const VERIFY_DEEP: Contender = only_reads(
    "sealift verify --deep",
    "sealift verify --deep SCRATCH/tree.sealift --trust SCRATCH/allowed_signers --state SCRATCH/state --progress none",
);
pub(crate) const INFO: Contender = only_reads("sealift info", "sealift info SCRATCH/tree.sealift --json");
pub(crate) const CAT: Contender = only_reads(
    "sealift cat",
    "sealift cat SCRATCH/tree.sealift FILE --trust SCRATCH/allowed_signers --state SCRATCH/state",
);
pub(crate) const CAT_COLD: Contender = only_reads(
    "sealift cat",
    "sealift cat DISK/tree.sealift FILE --trust SCRATCH/allowed_signers --state SCRATCH/state",
);

/// 2 GiB, on one thread.
pub(crate) const DIGEST: Contender =
    only_reads("sealift digest", "find SCRATCH/noise -type f -exec sealift digest --progress none {} +");

pub(crate) const TAR_ZSTD: Contender = makes(
    "tar + zstd",
    "tar --sort=name -C TREE -cf - . | zstd -q -3 -TCORES -o SCRATCH/tree.tar.zst",
    "SCRATCH/tree.tar.zst",
);
pub(crate) const MKSQUASHFS: Contender = makes(
    "mksquashfs",
    "mksquashfs TREE SCRATCH/tree.squashfs -comp zstd -Xcompression-level 3 -b 1M -noappend -quiet -no-progress",
    "SCRATCH/tree.squashfs",
);
pub(crate) const ZSTD_TAR: Contender = makes(
    "zstd + tar",
    "mkdir SCRATCH/new && zstd -q -dc SCRATCH/tree.tar.zst | tar -C SCRATCH/new -xf -",
    "SCRATCH/new",
);
pub(crate) const ZSTD_TAR_TO_DISK: Contender = makes(
    "zstd + tar",
    "mkdir DISK/new && zstd -q -dc SCRATCH/tree.tar.zst | tar -C DISK/new -xf - && sync -f DISK/new",
    "DISK/new",
);
pub(crate) const UNSQUASHFS: Contender =
    makes("unsquashfs", "unsquashfs -q -n -d SCRATCH/new SCRATCH/tree.squashfs", "SCRATCH/new");
pub(crate) const UNSQUASHFS_TO_DISK: Contender =
    makes("unsquashfs", "unsquashfs -q -n -d DISK/new SCRATCH/tree.squashfs && sync -f DISK/new", "DISK/new");
pub(crate) const CP_TO_DISK: Contender = makes("cp -a", "cp -a TREE DISK/new && sync -f DISK/new", "DISK/new");
pub(crate) const B3SUM: Contender = only_reads("b3sum", "b3sum SCRATCH/big.sealift");
pub(crate) const FSVERITY_DIGEST: Contender =
    only_reads("fsverity digest", "find SCRATCH/noise -type f -exec fsverity digest {} +");
pub(crate) const ZSTD_TEST: Contender = only_reads("zstd -t", "zstd -q -t SCRATCH/tree.tar.zst");
