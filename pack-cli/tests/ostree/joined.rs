//! The full bundle of a repository, made of a delta and its base.

use std::fs;

use crate::desk::{Desk, full_tree, noise, write};

#[test]
fn it_is_the_publishers_file() {
    let desk = Desk::new();
    full_tree(&desk.path("tree"));
    // Equal pieces, which a commit's file has in their order, and pieces of nothing.
    let part = noise(1, 65_536);
    let large = [&part[..], &noise(2, 65_536), &part, &[0; 200_000], &part].concat();
    write(&desk.path("tree/large"), 0o644, &large);
    desk.init("source", "archive");
    desk.commit("source", "os", "./tree", &["--owner-uid=0", "--owner-gid=0"]);
    let pack = "pack --force ostree:source --name os --chunk-size 64KiB --allow-unsigned";
    desk.run(&format!("{pack} -o old.sealift"));
    write(&desk.path("tree/large"), 0o644, &[&large[..], &part, b"more"].concat());
    write(&desk.path("tree/new"), 0o600, &noise(3, 90_000));
    desk.commit("source", "os", "./tree", &["--owner-uid=0", "--owner-gid=0"]);
    desk.run(&format!("{pack} --depth 1 -o new.sealift"));
    desk.run(&format!("{pack} --depth 1 -o delta.sealift --base old.sealift --full new.sealift"));
    let said = desk.run("join old.sealift delta.sealift -o joined.sealift --allow-unsigned");
    let read = |name: &str| fs::read(desk.path(name)).expect("it was written");
    assert!(read("joined.sealift") == read("new.sealift"), "{said}");
    desk.run("verify joined.sealift --deep --allow-unsigned");
    assert!(!said.contains(" 0 chunks copied"), "{said}");
}
