//! Requests that describe what a target holds, and bundles that are packed for them.

use std::fs;

use crate::deltas::versions;

const PACK: &str = "pack tree --name os --bundle-version 2 --allow-unsigned";

#[test]
fn who_knows_no_history_packs_what_a_target_lacks() {
    let desk = versions();
    desk.says("request one -o one.request", "one holds os version 1 (");
    // Names and metadata, and 8 bytes per object.
    assert!(desk.len("one.request") < 1_000);

    desk.good(&format!("{PACK} --for one.request -o asked.sealift"));
    let (asked, delta, full) = (desk.len("asked.sealift"), desk.len("delta.sealift"), desk.len("2.sealift"));
    assert!(asked < full / 2, "{asked} of {full}");
    assert!(asked > delta, "the old contents are not at hand");
    desk.good("unpack asked.sealift one --delete --allow-unsigned");
    desk.assert_same("one", "tree");
}

#[test]
fn a_base_at_hand_makes_it_smaller() {
    let desk = versions();
    desk.good("request one -o one.request");
    desk.good(&format!("{PACK} --for one.request --base 1.sealift -o asked.sealift"));
    // The given base is exactly what the target holds.
    assert_eq!(fs::read(desk.path("asked.sealift")).unwrap(), fs::read(desk.path("delta.sealift")).unwrap());

    // The target is none of the given bases, but has some of their files.
    desk.write("one/own", "nobody else has this");
    fs::remove_dir_all(desk.path(".one.sealift-state")).unwrap();
    desk.says("request one -o read.request", "one holds content ");
    desk.good(&format!("{PACK} --for read.request -o alone.sealift"));
    desk.good(&format!("{PACK} --for read.request --base 1.sealift -o helped.sealift"));
    let (alone, helped) = (desk.len("alone.sealift"), desk.len("helped.sealift"));
    assert!(helped < alone / 2, "{helped} of {alone}");
    desk.good("unpack helped.sealift one --delete --adopt --yes --allow-unsigned");
    desk.assert_same("one", "tree");
}

/// The record tells of a directory that was moved away.
#[test]
fn another_directory_in_its_place_is_read() {
    let desk = versions();
    fs::rename(desk.path("one"), desk.path("old")).unwrap();
    let copied = std::process::Command::new("cp").arg("-a").args([desk.path("two"), desk.path("one")]).status();
    assert!(copied.unwrap().success());
    desk.says("request one -o one.request", "one holds content ");
    fs::remove_dir_all(desk.path(".one.sealift-state")).unwrap();
    desk.good("request one -o read.request");
    assert_eq!(fs::read(desk.path("one.request")).unwrap(), fs::read(desk.path("read.request")).unwrap());
}

#[test]
fn what_could_not_be_taken_is_not_packed() {
    let desk = versions();
    desk.good("request two -o two.request");
    desk.write("cut.request", &fs::read(desk.path("two.request")).unwrap()[..200]);
    let refused = |line: &str, why: &str| {
        let (status, said) = desk.run(line);
        assert!(status.is_some_and(|status| status != 0) && said.contains(why), "{line}: {said}");
        assert!(!desk.path("x").exists());
    };
    let said = desk.good(&format!("{PACK} --for two.request -o x"));
    assert!(said.contains("x: not written, since nothing has changed since os version 2"), "{said}");
    assert!(!desk.path("x").exists());
    refused("pack tree --name os --bundle-version 1 --for two.request -o x", "has version 2, and this would be 1");
    refused("pack tree --name other --bundle-version 2 --for two.request -o x", "use --name os");
    refused(&format!("{PACK} --for cut.request -o x"), "cut.request: request: ");
    refused(&format!("{PACK} --for 1.sealift -o x"), "1.sealift: request: it does not begin with");
    refused(&format!("{PACK} --for absent -o x"), "absent");
    refused("request absent -o x", "absent");
    refused("info two.request", "two.request: this is a request");
    // An update that did not end: the record is that of the previous bundle.
    fs::create_dir_all(desk.path(".one.sealift-partial")).unwrap();
    desk.write(".one.sealift-partial/journal", "");
    refused("request one -o x", "because an update was interrupted");
    fs::remove_dir_all(desk.path(".one.sealift-partial")).unwrap();
    desk.good("pack a=tree b=tree -o parts.sealift --name parts --bundle-version 1");
    desk.good("unpack parts.sealift part --ref a --allow-unsigned");
    refused("request part -o x", "part holds only a part of its bundle");
}

#[test]
fn a_request_goes_through_a_pipe() {
    let desk = versions();
    desk.good("request one -o one.request");
    let piped = desk.command("request one -o -").output().unwrap();
    assert_eq!(piped.stdout, fs::read(desk.path("one.request")).unwrap());
    let json = desk.command("request one -o again.request --json").output().unwrap();
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!((&json["name"], &json["version"]), (&"os".into(), &1.into()));
    assert_eq!(json["file_bytes"], desk.len("one.request"));
}

#[test]
fn a_delta_is_estimated() {
    let desk = versions();
    let line = format!("{PACK} --base 1.sealift -o estimated.sealift --force");
    let expected = desk.command(&format!("{line} --dry-run --json")).output().unwrap();
    let expected: serde_json::Value = serde_json::from_slice(&expected.stdout).unwrap();
    assert!(!desk.path("estimated.sealift").exists());
    desk.good(&line);
    let (guess, len) = (expected["file_bytes"].as_u64().unwrap(), desk.len("estimated.sealift"));
    assert!(guess.abs_diff(len) < len / 3, "{guess} and {len}");
    assert_eq!(expected["delta"]["objects"], 4);
    let full = desk.command(&format!("{PACK} -o full.sealift --json")).output().unwrap();
    let full: serde_json::Value = serde_json::from_slice(&full.stdout).unwrap();
    assert_eq!(expected["logical_bytes"], full["logical_bytes"]);
    // A delta that consists almost entirely of holes.
    fs::File::create(desk.path("tree/sparse")).unwrap().set_len(900 << 20).unwrap();
    let sparse = desk.command(&format!("{line} --dry-run --json")).output().unwrap();
    let sparse: serde_json::Value = serde_json::from_slice(&sparse.stdout).unwrap();
    assert!(
        sparse["seconds"].as_f64().unwrap() < 600.0 && sparse["file_bytes"].as_u64().unwrap() < 2 * len,
        "{sparse}"
    );
    fs::remove_file(desk.path("tree/sparse")).unwrap();

    let said = desk.good(&format!("{line} --dry-run"));
    assert!(said.contains("would be os version 2") && said.contains("4 new objects of"), "{said}");
}
