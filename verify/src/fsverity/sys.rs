//! The kernel's interface of `linux/fsverity.h`: three calls.
#![allow(unsafe_code, reason = "ioctl(2) takes pointers")]

use std::os::fd::{AsRawFd as _, BorrowedFd};

use nix::errno::Errno;
use sealift_format::num;

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

// The numbers of the ioctls contain these sizes.
const _: () = assert!(size_of::<EnableArg>() == 128);
const _: () = assert!(size_of::<DigestHeader>() == 4 && size_of::<DigestArg>() == 68);
const _: () = assert!(size_of::<ReadMetadataArg>() == 40);

nix::ioctl_write_ptr!(fs_ioc_enable_verity, b'f', 133, EnableArg);
nix::ioctl_readwrite!(fs_ioc_measure_verity, b'f', 134, DigestHeader);
nix::ioctl_readwrite!(fs_ioc_read_verity_metadata, b'f', 135, ReadMetadataArg);

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

fn address(pointer: *const u8) -> u64 {
    num::wide(pointer.expose_provenance())
}
