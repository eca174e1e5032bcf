//! The kernel's interfaces of `linux/fiemap.h` and ext4, mincore(2), and two calls of glibc.
#![allow(unsafe_code, reason = "ioctl(2) and mincore(2) take pointers")]

#[cfg(target_env = "gnu")]
use std::ffi::c_int;
use std::num::NonZeroUsize;
use std::os::fd::{AsRawFd as _, BorrowedFd};

use nix::errno::Errno;
use nix::libc;
use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};
use nix::unistd::{SysconfVar, sysconf};
use sealift_format::num;

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

nix::ioctl_readwrite!(fs_ioc_fiemap, b'f', 11, MapHeader);
nix::ioctl_readwrite!(ext4_ioc_move_ext, b'f', 15, MoveArg);

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

/// Has glibc return what is free at the end of a heap to the kernel once that is 128 KiB (`M_TRIM_THRESHOLD` of mallopt(3)). Unless it is set, this
/// threshold grows to 64 MiB. Other C libraries return memory whenever it is freed.
#[cfg(target_env = "gnu")]
pub(super) fn trim_early() {
    const THRESHOLD: c_int = 128 << 10;
    // SAFETY: any thread may call it at any time, with any threshold.
    unsafe { libc::mallopt(libc::M_TRIM_THRESHOLD, THRESHOLD) };
}

#[cfg(not(target_env = "gnu"))]
pub(super) fn trim_early() {}

/// Calls `free`, then returns free memory to the kernel.
///
/// Each thread allocates from one of several heaps. malloc_trim(3) does not return free memory at the end of a heap; glibc returns that if memory is freed
/// in the heap while more than the threshold is free there.
#[cfg(target_env = "gnu")]
pub(super) fn trim_after(free: impl FnOnce()) {
    /// glibc looks at a heap's end only if so much is freed together.
    const LEAST: usize = 64 << 10;
    trim_early();
    free();
    drop(std::hint::black_box(Vec::<u8>::with_capacity(LEAST)));
    // SAFETY: any thread may call it at any time.
    unsafe { libc::malloc_trim(0) };
}

#[cfg(not(target_env = "gnu"))]
pub(super) fn trim_after(free: impl FnOnce()) {
    free();
}
