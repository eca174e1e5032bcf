//! Requirements on a kernel with fs-verity.

mod audit;
mod composefs;
mod many;
mod power;
mod refusals;
mod seal;
mod signatures;
mod tamper;
mod unpack;
mod vouched;

use crate::disk::{BTRFS, Disk, EXT4};
use crate::{Case, Check};

/// Run on each file system.
const CASES: &[(&str, Check)] = &[
    ("the kernel's digests are ours", seal::digests),
    ("its tree, descriptor and parameters too", seal::metadata),
    ("a tree is sealed, and once more", seal::trees),
    ("with other parameters it is not sealed again", seal::other_parameters),
    ("who writes to a file is waited for, and not for long", seal::writers),
    ("what is sealed cannot be written to, and can be removed", seal::sealed_files),
    ("what the kernel refuses is said", refusals::refusals),
    ("a bit that flips on the disk is an error", tamper::flipped),
    ("built-in signatures", signatures::signatures),
    ("a tree is unpacked, and every file of it sealed", unpack::directories),
    ("a tree that is there is sealed", unpack::later),
    ("a part of a bundle is sealed", unpack::parts),
    ("a hot set that is written again is sealed", unpack::hot_set),
    ("nothing is written where fs-verity is required and not there", unpack::required),
    ("an index with a wrong digest of digests is refused", unpack::wrong_digest),
    ("objects of OSTree are sealed", unpack::repositories),
    ("the kernel vouches for the index of a directory", vouched::directories),
    ("the kernel vouches for the index that a repository keeps", vouched::repositories),
    ("composefs: objects are sealed, and a tree of them mounted", composefs::stores),
    ("composefs: a bit that flips on the disk is an error", composefs::tampered),
    ("composefs: an object that was replaced is not read", composefs::replaced),
    ("an audit finds each kind of damage", audit::damage),
    ("an audit reads no content of what is sealed", audit::unread),
    ("an audit reads no image that is sealed", audit::images),
    ("an audit of a composefs store", audit::stores),
    ("an audit of an OSTree repository", audit::repositories),
];

/// Returns the cases of a suite, each with its mounted file system.
pub(crate) fn of(suite: &str) -> Vec<Case> {
    match suite {
        "cases" => {
            let desks = [EXT4, BTRFS];
            desks.iter().for_each(Disk::mount);
            let of = |desk: Disk| CASES.iter().map(move |(name, case)| (desk, *name, *case));
            desks.into_iter().flat_map(of).collect()
        }
        // Each uses the disks of the previous run.
        "cut" | "resume" => {
            EXT4.mount();
            let case: (_, Check) = if suite == "cut" {
                ("unpack, until the power goes", power::cut)
            } else {
                ("what was begun is completed", power::resume)
            };
            vec![(EXT4, case.0, case.1)]
        }
        "many" => {
            EXT4.mount();
            vec![(EXT4, "a hundred thousand sealed files are audited", many::audited)]
        }
        other => panic!("there is no suite {other:?}"),
    }
}
