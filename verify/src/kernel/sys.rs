//! The kernel's interfaces of `linux/fsverity.h` (three calls), `linux/fiemap.h` and ext4, mincore(2), and two calls of glibc: the only unsafe code in
//! Sealift besides the interface of nbdkit's plugin.
#![allow(unsafe_code, reason = "ioctl(2) and mincore(2) take pointers")]

use sealift_format::num;
#[cfg(target_env = "gnu")]
use std::ffi::c_int;
use std::num::NonZeroUsize;
use std::os::fd::{AsRawFd as _, BorrowedFd};
#[cfg(target_env = "gnu")]
use std::sync::{Mutex, PoisonError};

use nix::errno::Errno;
use nix::libc;
use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};
use nix::unistd::{SysconfVar, sysconf};

/// `struct fsverity_enable_arg`
#[repr(C)]
struct EnableArg {
    version: u32,
    hash_algorithm: u32,
    block_size: u32,
    salt_size: u32,
    salt_ptr: u64,
    sig_size: u32,
    reserved1: u32,
    sig_ptr: u64,
    reserved2: [u64; 11],
}

/// `struct fsverity_digest` without the digest, which follows: the number of the ioctl contains the size of these fields only.
#[repr(C)]
struct DigestHeader {
    algorithm: u16,
    size: u16,
}

/// `struct fsverity_digest` with room for any digest.
#[repr(C)]
struct DigestArg {
    header: DigestHeader,
    digest: [u8; 64],
}

/// `struct fsverity_read_metadata_arg`
#[repr(C)]
struct ReadMetadataArg {
    metadata_type: u64,
    offset: u64,
    length: u64,
    buf_ptr: u64,
    reserved: u64,
}

/// `struct fiemap` (linux/fiemap.h) without the extents, which follow: the number of the ioctl contains the size of these fields only.
#[repr(C)]
struct MapHeader {
    start: u64,
    length: u64,
    flags: u32,
    mapped_extents: u32,
    extent_count: u32,
    reserved: u32,
}

/// `struct fiemap_extent`
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct MapExtent {
    pub(super) logical: u64,
    pub(super) physical: u64,
    pub(super) length: u64,
    reserved64: [u64; 2],
    pub(super) flags: u32,
    reserved: [u32; 3],
}

/// `struct fiemap` with room for some extents.
#[repr(C)]
struct MapArg {
    header: MapHeader,
    extents: [MapExtent; 32],
}

/// `struct move_extent` (fs/ext4/ext4.h)
#[repr(C)]
struct MoveArg {
    reserved: u32,
    donor_fd: u32,
    orig_start: u64,
    donor_start: u64,
    len: u64,
    moved_len: u64,
}

// The numbers of the ioctls contain these sizes.
const _: () = assert!(size_of::<MoveArg>() == 40);
const _: () = assert!(size_of::<MapHeader>() == 32 && size_of::<MapExtent>() == 56);
const _: () = assert!(size_of::<EnableArg>() == 128);
const _: () = assert!(size_of::<DigestHeader>() == 4 && size_of::<DigestArg>() == 68);
const _: () = assert!(size_of::<ReadMetadataArg>() == 40);

nix::ioctl_write_ptr!(fs_ioc_enable_verity, b'f', 133, EnableArg);
nix::ioctl_readwrite!(fs_ioc_measure_verity, b'f', 134, DigestHeader);
nix::ioctl_readwrite!(fs_ioc_read_verity_metadata, b'f', 135, ReadMetadataArg);
nix::ioctl_readwrite!(fs_ioc_fiemap, b'f', 11, MapHeader);
nix::ioctl_readwrite!(ext4_ioc_move_ext, b'f', 15, MoveArg);

/// `FS_IOC_ENABLE_VERITY`. An empty salt or signature means none.
pub(super) fn enable(
    file: BorrowedFd<'_>,
    algorithm: u32,
    block_len: u32,
    salt: &[u8],
    signature: &[u8],
) -> Result<(), Errno> {
    let arg = EnableArg {
        version: 1,
        hash_algorithm: algorithm,
        block_size: block_len,
        salt_size: u32::try_from(salt.len()).map_err(|_| Errno::EMSGSIZE)?,
        salt_ptr: address(salt.as_ptr()),
        sig_size: u32::try_from(signature.len()).map_err(|_| Errno::EMSGSIZE)?,
        reserved1: 0,
        sig_ptr: address(signature.as_ptr()),
        reserved2: [0; 11],
    };
    // SAFETY: the kernel reads the argument, and the bytes to which its pointers and sizes refer, only during the call; they are borrowed until
    // it returns.
    unsafe { fs_ioc_enable_verity(file.as_raw_fd(), &raw const arg) }.map(drop)
}

/// `FS_IOC_MEASURE_VERITY`. Returns the algorithm's number, and the digest.
pub(super) fn measure(file: BorrowedFd<'_>) -> Result<(u16, Vec<u8>), Errno> {
    let mut arg = DigestArg { header: DigestHeader { algorithm: 0, size: 64 }, digest: [0; 64] };
    // SAFETY: the kernel writes the header and at most `size` bytes after it, for which the whole argument has room; the pointer was
    // made from the whole argument.
    unsafe { fs_ioc_measure_verity(file.as_raw_fd(), (&raw mut arg).cast()) }?;
    let digest = arg.digest.get(..usize::from(arg.header.size)).ok_or(Errno::EOVERFLOW)?;
    Ok((arg.header.algorithm, digest.to_vec()))
}

/// `FS_IOC_READ_VERITY_METADATA`. Returns the number of bytes that were read; 0 at the end.
pub(super) fn read_metadata(
    file: BorrowedFd<'_>,
    metadata_type: u64,
    offset: u64,
    buffer: &mut [u8],
) -> Result<usize, Errno> {
    let mut arg = ReadMetadataArg {
        metadata_type,
        offset,
        length: num::wide(buffer.len()),
        buf_ptr: address(buffer.as_mut_ptr()),
        reserved: 0,
    };
    // SAFETY: the kernel writes at most `length` bytes to the buffer, which is borrowed for writing until the call returns.
    let read = unsafe { fs_ioc_read_verity_metadata(file.as_raw_fd(), &raw mut arg) }?;
    usize::try_from(read).map(|read| read.min(buffer.len())).map_err(|_| Errno::EIO)
}

/// `FS_IOC_FIEMAP`. Returns the first extents of a file from `start` on, up to 32. The kernel first writes the file to its device.
pub(super) fn map(file: BorrowedFd<'_>, start: u64, length: u64) -> Result<Vec<MapExtent>, Errno> {
    const SYNC: u32 = 1;
    let none = MapExtent { logical: 0, physical: 0, length: 0, reserved64: [0; 2], flags: 0, reserved: [0; 3] };
    let header = MapHeader { start, length, flags: SYNC, mapped_extents: 0, extent_count: 32, reserved: 0 };
    let mut arg = MapArg { header, extents: [none; 32] };
    // SAFETY: the kernel writes the header and at most `extent_count` extents after it, for which the whole argument has room; the
    // pointer was made from the whole argument.
    unsafe { fs_ioc_fiemap(file.as_raw_fd(), (&raw mut arg).cast()) }?;
    Ok(arg.extents.into_iter().take(num::at(arg.header.mapped_extents)).collect())
}

/// `EXT4_IOC_MOVE_EXT`: exchanges `blocks` blocks at the start of a file with those of `other` from its block `from` on. Returns how many were
/// exchanged.
pub(super) fn exchange(file: BorrowedFd<'_>, other: BorrowedFd<'_>, from: u64, blocks: u64) -> Result<u64, Errno> {
    let donor_fd = u32::try_from(other.as_raw_fd()).map_err(|_| Errno::EBADF)?;
    let mut arg = MoveArg { reserved: 0, donor_fd, orig_start: 0, donor_start: from, len: blocks, moved_len: 0 };
    // SAFETY: the kernel reads the argument, and writes `moved_len` in it; both files are borrowed until the call returns.
    unsafe { ext4_ioc_move_ext(file.as_raw_fd(), &raw mut arg) }?;
    Ok(arg.moved_len)
}

/// Returns the size of the kernel's pages.
pub(super) fn page_len() -> Result<usize, Errno> {
    let len = sysconf(SysconfVar::PAGE_SIZE)?.and_then(|len| usize::try_from(len).ok());
    len.filter(|len| *len > 0).ok_or(Errno::EINVAL)
}

/// mincore(2). Returns for each page of a part of a file whether it is in memory. `offset` is in whole pages.
pub(super) fn in_memory(file: BorrowedFd<'_>, offset: u64, len: NonZeroUsize) -> Result<Vec<bool>, Errno> {
    let offset = libc::off_t::try_from(offset).map_err(|_| Errno::EOVERFLOW)?;
    let mut pages = vec![0_u8; len.get().div_ceil(page_len()?)];
    // SAFETY: the kernel places a new mapping. It can be neither read nor written, so changes of the file do no harm.
    let place = unsafe { mmap(None, len, ProtFlags::PROT_NONE, MapFlags::MAP_SHARED, file, offset) }?;
    // SAFETY: the kernel writes one byte for each page of the mapping, for which the vector has room.
    let asked = Errno::result(unsafe { libc::mincore(place.as_ptr(), len.get(), pages.as_mut_ptr()) });
    // SAFETY: this is the whole mapping from above, which nothing else uses.
    unsafe { munmap(place, len.get()) }?;
    asked?;
    // The other bits are reserved.
    Ok(pages.into_iter().map(|page| page & 1 == 1).collect())
}

/// Calls `free`, then returns free memory to the kernel. C libraries other than glibc do so whenever memory is freed.
///
/// Each thread allocates from one of several heaps. malloc_trim(3) does not return free memory at the end of a heap; glibc returns that if memory is freed
/// in the heap while more is free there than `M_TRIM_THRESHOLD` of mallopt(3), which grows by itself to 64 MiB.
#[cfg(target_env = "gnu")]
pub(super) fn trim_after(free: impl FnOnce()) {
    /// One thread at a time: the threshold is that of all.
    static TURN: Mutex<()> = Mutex::new(());
    const LOW: c_int = 128 << 10;
    const HIGH: c_int = 64 << 20;
    /// glibc looks at a heap's end only if so much is freed together.
    const LEAST: usize = 64 << 10;
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: any thread may call it at any time, with any threshold.
    unsafe { libc::mallopt(libc::M_TRIM_THRESHOLD, LOW) };
    free();
    drop(std::hint::black_box(Vec::<u8>::with_capacity(LEAST)));
    // SAFETY: as above; any thread may call malloc_trim(3) at any time too.
    unsafe {
        libc::mallopt(libc::M_TRIM_THRESHOLD, HIGH);
        libc::malloc_trim(0);
    }
}

#[cfg(not(target_env = "gnu"))]
pub(super) fn trim_after(free: impl FnOnce()) {
    free();
}

fn address(pointer: *const u8) -> u64 {
    num::wide(pointer.expose_provenance())
}
