//! Clients read what was packed.

use std::fs::File;
use std::os::unix::fs::FileExt as _;

use sealift::split::{SplitOptions, split};
use sealift::{Input, Limits, Progress};
use sealift_desk::{Desk, has, noise, out, said};

use crate::served::{desk, nbdkit, pack, pack_over, refused, serve};

/// Creates an image with data, a hole, and an odd size.
fn sparse(desk: &Desk, name: &str) {
    desk.write(name, noise(1, 1 << 20));
    let file = File::options().write(true).open(desk.path(name)).unwrap();
    file.write_all_at(&noise(2, 300_001), 3 << 20).unwrap();
}

#[test]
fn an_image_is_read_whole_over_several_connections() {
    let Some(desk) = has(&["nbdkit", "nbdcopy"]).then(desk) else { return };
    sparse(&desk, "disk.img");
    pack(&desk, "disk.img", "os.sealift");
    let serving = serve(&desk, &[], &["os.sealift"]);
    out(desk.command_of("nbdcopy").args(["--connections=4", &serving.uri(), "copy.img"]));
    assert!(desk.read("copy.img") == desk.read("disk.img"));
    // Without the server's information about holes, all of it is read.
    out(desk.command_of("nbdcopy").args(["--no-extents", &serving.uri(), "again.img"]));
    assert!(desk.read("again.img") == desk.read("disk.img"));
    assert_eq!(serving.end(), "");
}

#[test]
fn an_image_is_read_from_volumes() {
    let Some(desk) = has(&["nbdkit", "nbdcopy"]).then(desk) else { return };
    sparse(&desk, "disk.img");
    pack(&desk, "disk.img", "os.sealift");
    let options = SplitOptions { size: 600_000, recovery: None, jobs: 1, limits: Limits::default() };
    let bundle = Input::open(&desk.path("os.sealift")).unwrap();
    let split = split(bundle, &desk.path("parts"), &options, &Progress::default()).unwrap();
    assert!(split.volumes.len() > 2, "{split:?}");
    let serving = serve(&desk, &[], &["parts"]);
    out(desk.command_of("nbdcopy").args(["--connections=4", &serving.uri(), "copy.img"]));
    assert!(desk.read("copy.img") == desk.read("disk.img"));
    assert_eq!(serving.end(), "");
}

#[test]
fn one_content_is_served_whatever_its_names() {
    let Some(desk) = has(&["nbdkit", "nbdcopy"]).then(desk) else { return };
    desk.write("tree/disk.img", noise(1, 100_000));
    std::fs::hard_link(desk.path("tree/disk.img"), desk.path("tree/linked.img")).unwrap();
    desk.write("tree/same/disk.img", noise(1, 100_000));
    pack(&desk, "tree", "os.sealift");
    let serving = serve(&desk, &[], &["os.sealift"]);
    out(desk.command_of("nbdcopy").args([&serving.uri(), "copy.img"]));
    assert!(desk.read("copy.img") == desk.read("tree/disk.img"));
}

#[test]
fn clients_are_told_what_the_export_is() {
    let Some(desk) = has(&["nbdkit", "nbdinfo"]).then(desk) else { return };
    sparse(&desk, "disk.img");
    pack(&desk, "disk.img", "os.sealift");
    let serving = serve(&desk, &[], &["file=os.sealift"]);
    // What the content is like, nbdinfo asks file(1), which may be missing.
    let info = out(desk.command_of("nbdinfo").args(["--json", "--no-content", &serving.uri()]));
    for fact in [
        "\"export-size\": 3445729,",
        "\"is_read_only\": true,",
        "\"can_multi_conn\": true,",
        "\"can_cache\": true,",
        "\"block_size_minimum\": 1,",
        "\"block_size_preferred\": 65536,",
    ] {
        assert!(info.contains(fact), "{fact}: {info}");
    }
    let map = out(desk.command_of("nbdinfo").args(["--map", &serving.uri()]));
    let map: Vec<Vec<&str>> = map.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(
        map,
        [["0", "1048576", "0", "data"], ["1048576", "2097152", "3", "hole,zero"], ["3145728", "300001", "0", "data"]]
    );
    assert_eq!(serving.end(), "");
}

#[test]
fn one_of_several_files_is_served() {
    let Some(desk) = has(&["nbdkit", "nbdcopy"]).then(desk) else { return };
    desk.write("tree/images/a", noise(1, 100_000));
    desk.write("tree/images/b", noise(2, 200_000));
    pack(&desk, "tree", "os.sealift");
    for path in ["images/b", "main:/images/b"] {
        let serving = serve(&desk, &[], &["os.sealift", &format!("path={path}"), "cache=128K", "jobs=1"]);
        out(desk.command_of("nbdcopy").args([&serving.uri(), "copy"]));
        assert!(desk.read("copy") == desk.read("tree/images/b"), "{path}");
        assert_eq!(serving.end(), "");
    }
}

#[test]
fn a_delta_is_read_over_its_base() {
    let Some(desk) = has(&["nbdkit", "nbdcopy"]).then(desk) else { return };
    desk.write("disk.img", noise(1, 1 << 20));
    pack(&desk, "disk.img", "os-1.sealift");
    let file = File::options().write(true).open(desk.path("disk.img")).unwrap();
    file.write_all_at(&noise(2, 5_000), 700_000).unwrap();
    pack_over(&desk, "os-1.sealift", "disk.img", "os-2.sealift");
    assert!(desk.read("os-2.sealift").len() < 100_000);
    let after = ["os-1.sealift", "os-2.sealift"];
    let named = ["base=os-1.sealift", "os-2.sealift"];
    for parameters in [after, named] {
        let serving = serve(&desk, &[], &parameters);
        out(desk.command_of("nbdcopy").args([&serving.uri(), "copy.img"]));
        assert!(desk.read("copy.img") == desk.read("disk.img"), "{parameters:?}");
        assert_eq!(serving.end(), "");
    }
    refused(&desk, &["os-2.sealift", "trust=signers"], "os-2.sealift");
}

#[test]
fn the_plugin_says_its_version() {
    let Some(desk) = has(&["nbdkit"]).then(desk) else { return };
    let done = nbdkit(&desk, &["--dump-plugin"], &[]).output().unwrap();
    let said = said(&done);
    let lines = [
        "name=sealift",
        &format!("version={}", env!("CARGO_PKG_VERSION")),
        "api_version=2",
        "thread_model=parallel",
        "magic_config_key=file",
        "has_block_size=1",
        "has_extents=1",
    ];
    for line in lines {
        assert!(said.lines().any(|said| said == line), "{line}: {said}");
    }
}

#[test]
fn it_serves_from_the_background() {
    let Some(desk) = has(&["nbdkit", "nbdcopy"]).then(desk) else { return };
    sparse(&desk, "disk.img");
    pack(&desk, "disk.img", "os.sealift");
    // nbdkit forks, and changes its directory.
    let options = ["--unix", "socket", "--pidfile", "pid", "--filter=exitlast"];
    let started = nbdkit(&desk, &options, &["os.sealift", "trust=signers"]).output().unwrap();
    assert!(started.status.success(), "{}", said(&started));
    out(desk
        .command_of("nbdcopy")
        .args([&format!("nbd+unix:///?socket={}", desk.path("socket").display()), "copy.img"]));
    assert!(desk.read("copy.img") == desk.read("disk.img"));
}
