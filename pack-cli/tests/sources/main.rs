//! Sources of every kind against each other: what GNU tar and bsdtar make of a directory is the directory.

mod archives;
mod cpio;
mod desk;
mod peers;
mod random;
