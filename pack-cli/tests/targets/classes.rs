//! The class of an error, by which a program decides what to do next: each in a situation where it arises.

use std::fs;
use std::path::Path;

use sealift::trust::{Guard, TrustOptions};
use sealift::unpack::unpack;
use sealift::{Class, Error, Input, InstallOptions, Kind, Limits, Progress};
use sealift_desk::{Mounted, as_root};

use crate::deltas::versions;
use crate::installed::{Installed, anyones};

/// A desk with a bundle of its tree.
fn packed() -> Installed {
    let desk = Installed::new();
    desk.pack(1);
    desk
}

/// Returns the error of unpacking to a new target.
fn failed(bundle: &Path, target: &Path, progress: &Progress) -> Error {
    let bundle = anyones(Input::open(bundle).unwrap()).unwrap();
    unpack(bundle, target, &InstallOptions::default(), progress).unwrap_err()
}

#[test]
fn a_flipped_bit_is_damage() {
    let desk = packed();
    let mut bytes = fs::read(desk.path("1.sealift")).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    desk.write("1.sealift", bytes);
    let error = failed(&desk.path("1.sealift"), &desk.path("target"), &Progress::default());
    assert_eq!((error.class(), error.kind(), error.exit_status()), (Class::Damaged, Some(Kind::Chunk), 1), "{error}");
}

#[test]
fn an_unknown_signer_is_refused() {
    let desk = packed();
    desk.write("nobody", "");
    let (signers, state) = (Some(desk.path("nobody")), Some(desk.path("state")));
    let guard = Guard::load(&TrustOptions { signers, state, ..TrustOptions::default() }).unwrap();
    let input = Input::open(&desk.path("1.sealift")).unwrap();
    let error = guard.admit(input, Limits::default()).unwrap_err();
    assert_eq!((error.class(), error.exit_status()), (Class::Refused, 3), "{error}");
}

#[test]
fn a_delta_without_its_base_lacks_it() {
    let desk = versions();
    let error = failed(&desk.path("delta.sealift"), &desk.path("target"), &Progress::default());
    assert_eq!((error.class(), error.exit_status()), (Class::BaseMissing, 4), "{error}");
}

#[test]
fn a_small_disk_is_full() {
    let Some(desk) = as_root("mounts", packed) else { return };
    let _disk = Mounted::new(desk.path("disk"), "tmpfs", "size=16k");
    let error = failed(&desk.path("1.sealift"), &desk.path("disk/target"), &Progress::default());
    assert_eq!((error.class(), error.word(), error.exit_status()), (Class::DiskFull, "space", 2), "{error}");
}

#[test]
fn a_stopped_run_is_cancelled() {
    let (desk, progress) = (packed(), Progress::default());
    progress.cancel();
    let error = failed(&desk.path("1.sealift"), &desk.path("target"), &progress);
    assert_eq!((error.class(), error.exit_status()), (Class::Cancelled, 2), "{error}");
}

#[test]
fn a_second_run_finds_the_target_busy() {
    let desk = packed();
    let (bundle, target) = (desk.path("1.sealift"), desk.path("target"));
    let input = desk.trapped(1, 1, move || {
        let error = failed(&bundle, &target, &Progress::default());
        assert_eq!((error.class(), error.exit_status()), (Class::Busy, 2), "{error}");
    });
    let options = InstallOptions::default();
    unpack(anyones(input).unwrap(), &desk.path("target"), &options, &Progress::default()).unwrap();
}

#[test]
fn a_directory_in_the_way_is_for_a_person_to_decide() {
    let desk = packed();
    let error = failed(&desk.path("1.sealift"), &desk.path("tree"), &Progress::default());
    assert_eq!((error.class(), error.exit_status()), (Class::Setup, 2), "{error}");
}
