//! Volumes, wherever a bundle is read.

use std::fs;

use crate::desk::{POLICY, Volumes};

/// A desk whose bundle is in `parts`.
fn split() -> Volumes {
    let desk = Volumes::new();
    desk.good("split os.sealift --size 256KiB -o parts");
    desk
}

#[test]
fn each_verb_prints_for_volumes_what_it_prints_for_the_bundle() {
    let desk = split();
    let names = desk.volumes("parts");
    for line in ["ls -l BUNDLE", "ls --json BUNDLE", "cat BUNDLE data/07 --trust signers --state state", "root BUNDLE"]
    {
        let of = |bundle: &str| desk.command(&line.replace("BUNDLE", bundle)).output().unwrap().stdout;
        let wanted = of("os.sealift");
        assert!(!wanted.is_empty(), "{line}");
        assert!(of("parts") == wanted, "{line} of the directory");
        for name in &names {
            assert!(of(&format!("parts/{name}")) == wanted, "{line} of {name}");
        }
    }
    let info = desk.json("info --json parts --trust signers");
    assert_eq!(info, desk.json("info --json os.sealift --trust signers"));
    assert!(info.get("volume").is_none());
    desk.says(&format!("diff os.sealift parts/{}", names[1]), "no difference in 44 paths");
    desk.says("diff parts os.sealift", "no difference in 44 paths");
    desk.does("verify --deep parts");
}

#[test]
fn a_list_is_taken_in_any_order_and_from_several_places() {
    let desk = split();
    let mut names = desk.volumes("parts");
    names.reverse();
    let mut paths = Vec::new();
    for (number, name) in names.iter().enumerate() {
        let medium = format!("medium-{number}");
        fs::create_dir(desk.path(&medium)).unwrap();
        fs::rename(desk.path(&format!("parts/{name}")), desk.path(&format!("{medium}/{name}"))).unwrap();
        paths.push(format!("{medium}/{name}"));
    }
    let list = paths.join(" ");
    desk.does(&format!("verify {list}"));
    desk.does(&format!("unpack {list} target"));
    desk.assert_same("tree", "target");
    let media: Vec<&str> = paths.iter().map(|path| path.split_once('/').unwrap().0).collect();
    desk.does(&format!("unpack {} again", media.join(" ")));
    desk.assert_same("tree", "again");
}

#[test]
fn a_stick_with_volumes_of_several_bundles_is_a_stick_with_several_bundles() {
    let desk = split();
    desk.write("tree/etc/os-release", "ID=example\nVERSION_ID=8\n");
    desk.pack("tree", "newer", 8);
    desk.good("pack tree -o newer.sealift --name os --bundle-version 8 --key release --chunk-size 64KiB --force");
    desk.good("split newer.sealift --size 256KiB -o parts");
    desk.pack("tree", "apps", 3);
    desk.good("split apps.sealift --size fat32 -o parts");
    // The directory is not one bundle.
    let said = desk.refused("ls parts", 2, "parts has volumes of several sets");
    assert!(said.contains("of os version 7") && said.contains("volume 1 of 1 of apps version 3"), "{said}");
    desk.does("unpack parts target --name os");
    desk.assert_same("tree", "target");
    // Of a set that is not whole, the next one is taken, and the reason is printed.
    let of_8 = desk.volumes("parts").into_iter().find(|name| name.starts_with("os-8.002")).unwrap();
    fs::remove_file(desk.path(&format!("parts/{of_8}"))).unwrap();
    let said = desk.good(&format!("unpack parts older --name os {POLICY} --allow-downgrade"));
    assert!(said.contains("passed over") && said.contains("has no volume 2 of"), "{said}");
    assert!(desk.text("older/etc/os-release").ends_with("example\n"));
}

#[test]
fn a_volume_alone_says_what_it_is_and_is_checked() {
    let desk = split();
    let name = desk.volumes("parts").swap_remove(1);
    fs::create_dir(desk.path("alone")).unwrap();
    fs::copy(desk.path(&format!("parts/{name}")), desk.path("alone/renamed")).unwrap();
    let count = desk.volumes("parts").len();
    let label = format!("os version 7, volume 2 of {count}");
    let said = desk.good(&format!("verify alone/renamed {POLICY}"));
    assert!(said.contains(&format!("alone/renamed: sound, {label}")) && said.contains("signed by SHA256:"), "{said}");
    let info = desk.json("info --json alone/renamed --trust signers");
    assert_eq!((&info["volume"]["number"], &info["volume"]["count"]), (&2.into(), &count.into()));
    assert_eq!(info["trust"], "trusted");
    desk.says("info alone/renamed --trust signers", &format!("2 of {count}, with"));
    // It is judged.
    desk.refused("verify alone/renamed --state state", 3, "needs the signature of 1 trusted key");
    // What it carries is checked, and so is each byte before that.
    let bytes = desk.read("alone/renamed");
    for at in [30, 200, 1500, bytes.len() - 1] {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        desk.write("alone/renamed", &damaged);
        desk.refused(&format!("verify alone/renamed {POLICY}"), 1, "alone/renamed");
    }
    desk.write("alone/renamed", &bytes);
    desk.refused(&format!("unpack alone/renamed target {POLICY}"), 1, "has no volumes 1, 3");
}

#[test]
fn volumes_of_a_delta_are_read_over_its_base() {
    let desk = split();
    desk.write("tree/data/03", "changed");
    let base = format!("parts/{}", desk.volumes("parts")[0]);
    desk.good(&format!(
        "pack tree -o delta.sealift --name os --bundle-version 8 --key release --base {base} --trust signers"
    ));
    desk.good("split delta.sealift --size fat32 -o delta");
    desk.does("unpack parts target");
    desk.does("unpack delta target --update");
    desk.assert_same("tree", "target");
}
