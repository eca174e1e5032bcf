//! Sources of each kind, compared with each other: an archive that GNU tar or bsdtar makes of a directory equals the directory.

mod archives;
mod cpio;
mod images;
mod modes;
mod peers;
mod random;
mod trees;
