//! `unpack DIR ostree:REPO` and `status`: the newest of several bundles that a repository accepts is installed, and the repository's bundles are
//! listed.

use std::fs;

use sealift_desk::noise;

use crate::repos::{Repos, write};
use crate::state::desk;

/// Creates a stick with versions 6 to 8 as full bundles, and deltas from 6 to 7 and from 7 to 8, besides an unsigned bundle and a file that is not a
/// bundle.
fn stick() -> Repos {
    let (desk, trust) = desk();
    fs::create_dir(desk.path("stick")).expect("a folder");
    for (base, version) in [(6, 7), (7, 8)] {
        desk.ostree("source", &["refs", "--force", "--create=os", &tip(&desk, version)]);
        desk.run(&format!(
            "pack ostree:source -o stick/delta-{version}.sealift --name os --bundle-version {version} --key key \
             --base os-{base}.sealift {trust} --expires 2090-01-01"
        ));
    }
    for version in 6..=8 {
        let name = format!("os-{version}.sealift");
        fs::copy(desk.path(&name), desk.path(&format!("stick/{name}"))).expect("there is room");
    }
    desk.run("pack ostree:source -o stick/unsigned.sealift --name os --bundle-version 99");
    write(&desk.path("stick/page.sealift"), 0o644, &noise(1, 100));
    desk
}

/// Returns the commit of a version.
fn tip(desk: &Repos, version: u64) -> String {
    let info = desk.json(&format!("info os-{version}.sealift --json"));
    info["refs"][0]["commit"].as_str().expect("a commit").to_owned()
}

const TAKE: &str = "unpack stick ostree:target --trust allowed --name os";

#[test]
fn the_newest_is_taken_by_delta_where_its_base_is() {
    let desk = stick();
    // Nothing is known about an empty repository: the delta is tried, and the full bundle is installed.
    let first = desk.says(TAKE, "ostree:target: imported stick/os-8.sealift");
    assert!(first.contains("passed over stick/delta-8.sealift: "), "{first}");
    for why in [
        "passed over stick/unsigned.sealift: \"os\" needs the signature of 1 trusted key",
        "passed over stick/page.sealift: ",
        "passed over stick/os-7.sealift: stick/os-8.sealift is newer, version 8",
    ] {
        assert!(first.contains(why), "{why}: {first}");
    }
    assert_eq!(desk.ostree("target", &["rev-parse", "os"]).trim(), tip(&desk, 8));
    desk.fsck("target");

    // A repository that has version 7 installs the delta.
    desk.init("second", "bare-user-only");
    desk.run("unpack os-7.sealift ostree:second --trust allowed --state other");
    let by_delta = desk.good("unpack stick ostree:second --trust allowed --state other");
    assert!(by_delta.contains("ostree:second: imported stick/delta-8.sealift"), "{by_delta}");
    assert!(
        by_delta.contains("passed over stick/os-8.sealift: stick/delta-8.sealift is the same version"),
        "{by_delta}"
    );
    assert_eq!(desk.ostree("second", &["rev-parse", "os"]).trim(), tip(&desk, 8));
    desk.fsck("second");

    // A repository that has version 6 installs the full bundle without trying the delta.
    desk.init("third", "bare-user-only");
    desk.run("unpack os-6.sealift ostree:third --trust allowed --state third-state");
    let in_full = desk.good("unpack stick ostree:third --trust allowed --state third-state");
    assert!(in_full.contains("ostree:third: imported stick/os-8.sealift"), "{in_full}");
    let why = "passed over stick/delta-8.sealift: stick/os-8.sealift is the same version";
    assert!(in_full.contains(why), "{in_full}");
    // Without the full bundle, the delta is installed over version 7, which is beside it.
    fs::remove_file(desk.path("stick/os-8.sealift")).expect("it is there");
    let at = |repo: &str, version: u64| {
        desk.init(repo, "bare-user-only");
        desk.run(&format!("unpack os-6.sealift ostree:{repo} --trust allowed --state {repo}-state"));
        let next = desk.good(&format!("unpack stick ostree:{repo} --trust allowed --state {repo}-state"));
        assert!(next.contains(&format!("ostree:{repo}: imported stick/delta-{version}.sealift")), "{next}");
        assert_eq!(desk.ostree(repo, &["rev-parse", "os"]).trim(), tip(&desk, version));
        desk.fsck(repo);
        next
    };
    at("fourth", 8);
    // Without that too, the delta to 7 is installed first, and then the delta to 8.
    fs::remove_file(desk.path("stick/os-7.sealift")).expect("it is there");
    assert!(at("fifth", 8).contains("ostree:fifth: imported stick/delta-7.sealift"));
}

#[test]
fn status_tells_of_repositories() {
    let desk = stick();
    desk.run("unpack os-7.sealift ostree:target --trust allowed");
    desk.run("pack ostree:source -o app.sealift --name app --bundle-version 3 --key key --expires 2090-01-01");
    desk.run("unpack app.sealift ostree:target --trust allowed");
    let repo = fs::canonicalize(desk.path("target")).expect("it is there");
    let asked = desk.run("status ostree:target --trust allowed");
    let listed = desk.run("status --trust allowed");
    for (name, version) in [("app", 3), ("os", 7)] {
        assert!(asked.contains(&format!("ostree:target: {name} version {version}\n")), "{asked}");
        assert!(listed.contains(&format!("ostree:{}: {name} version {version}\n", repo.display())), "{listed}");
        assert!(listed.contains(&format!("{name}: accepts version {version} or newer\n")), "{listed}");
    }
    // The record of one name was removed.
    fs::remove_dir_all(desk.path("target/extensions/sealift/app")).expect("it is there");
    let listed = desk.run("status --trust allowed");
    assert!(listed.contains("no install record of this bundle") && listed.contains("os version 7\n"), "{listed}");
    fs::rename(desk.path("target"), desk.path("moved")).expect("it can be moved");
    let listed = desk.run("status --trust allowed");
    assert_eq!(listed.matches("gone; remove it from the list").count(), 2, "{listed}");
    assert!(desk.run("clean ostree:target").contains("removed from the list"));
    assert!(!desk.run("status --trust allowed").contains("target"));
}
