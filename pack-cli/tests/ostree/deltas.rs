//! Delta bundles onto repositories that hold their base, and bases that are commits of a repository.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use sealift::{Head, Progress};
use sealift_desk::{can_chown, noise};
use sealift_format::Row;
use sealift_store::base::{Base, BaseReader, Bases};

use crate::repos::{MODES, Repos, copy, plain_tree, write};

/// The only owner that all modes can hold.
const ROOT: &[&str] = &["--owner-uid=0", "--owner-gid=0"];

/// Returns text that resembles other text with a similar seed.
fn prose(seed: u32, lines: u32) -> String {
    let word = |line: u32| (u64::from(line) * 2_654_435 + u64::from(seed) * u64::from(line % 40 == 7)) % 9_973;
    (0..lines).map(|line| format!("{line}: {}\n", word(line))).collect()
}

/// Creates the first version of a tree.
fn first_tree(root: &Path) {
    plain_tree(root);
    write(&root.join("usr/share/prose"), 0o644, prose(1, 5_000).as_bytes());
    write(&root.join("usr/share/moved"), 0o644, &noise(4, 50_000));
    write(&root.join("usr/share/gone"), 0o644, b"gone\n");
    let mut code = noise(5, 200_000);
    code[..4].copy_from_slice(b"\x7fELF");
    write(&root.join("usr/bin/program"), 0o755, &code);
}

/// Changes it: text, machine code, a large file, a name, and only metadata. 1,000 bytes of it are new noise.
fn second_tree(root: &Path) {
    let share = root.join("usr/share");
    write(&share.join("prose"), 0o644, prose(2, 5_000).as_bytes());
    let mut code = fs::read(root.join("usr/bin/program")).expect("it is there");
    code.iter_mut().skip(100).step_by(64).for_each(|byte| *byte = byte.wrapping_add(4));
    write(&root.join("usr/bin/program"), 0o755, &code);
    let mut large = fs::read(share.join("large")).expect("it is there");
    large[1_000_000..1_000_010].copy_from_slice(b"0123456789");
    write(&share.join("large"), 0o644, &large);
    fs::rename(share.join("moved"), root.join("usr/moved")).expect("it is there");
    fs::remove_file(share.join("gone")).expect("it is there");
    fs::set_permissions(share.join("noise"), fs::Permissions::from_mode(0o600)).expect("it is ours");
    fs::set_permissions(share.join("void"), fs::Permissions::from_mode(0o600)).expect("it is ours");
    fs::set_permissions(root.join("none"), fs::Permissions::from_mode(0o600)).expect("it is ours");
    fs::remove_file(root.join("link")).expect("it is there");
    symlink("usr/share/prose", root.join("link")).expect("a link");
    write(&root.join("new"), 0o644, &noise(6, 1_000));
}

/// Two commits of `os` in a repository, the bundle of each, and the delta between the bundles.
struct Versions {
    desk: Repos,
    one: String,
    two: String,
}

impl Versions {
    fn new(mode: &str) -> Self {
        let desk = Repos::new();
        desk.init("source", mode);
        first_tree(&desk.path("tree"));
        let one = desk.commit("source", "os", "./tree", ROOT);
        desk.run("pack --force ostree:source -o 1.sealift --name os --bundle-version 1");
        second_tree(&desk.path("tree"));
        let two = desk.commit("source", "os", "./tree", ROOT);
        desk.run("pack --force ostree:source -o 2.sealift --name os --bundle-version 2");
        let own = Self { desk, one, two };
        own.delta("1.sealift", "delta.sealift");
        own
    }

    fn delta(&self, base: &str, to: &str) {
        let line = format!(
            "pack --force ostree:source --ref os -o {to} --name os --bundle-version 2 --base {base} --allow-unsigned"
        );
        self.desk.run(&line);
    }

    /// Creates a repository into which the first bundle was unpacked.
    fn device(&self, name: &str, mode: &str) {
        self.desk.init(name, mode);
        self.desk.import("1.sealift", name);
    }

    /// Checks that it has the second commit, as in the source.
    fn is_second(&self, repo: &str) {
        self.desk.fsck(repo);
        assert_eq!(self.desk.ostree(repo, &["rev-parse", "os"]).trim(), self.two, "{repo}");
        assert_eq!(self.desk.listed(repo, "os"), self.desk.listed("source", &self.two), "{repo}");
        assert_eq!(self.desk.listed(repo, &self.one), self.desk.listed("source", &self.one), "{repo}");
    }

    /// Checks that the line is refused and the repository unchanged. Returns the message.
    fn refused(&self, line: &str, repo: &str) -> String {
        let before = self.desk.snapshot(repo);
        let said = self.desk.refused(line);
        self.desk.is_as(&before, repo, line);
        said
    }

    fn len(&self, bundle: &str) -> u64 {
        fs::metadata(self.desk.path(bundle)).expect("a bundle").len()
    }

    /// Returns the file object of a repository that has the content of a path.
    fn object(&self, repo: &str, commit: &str, path: &str) -> PathBuf {
        let line = self.desk.ostree(repo, &["ls", "-C", commit, path]);
        let checksum = line.split_whitespace().find(|word| word.len() == 64).expect("a checksum").to_owned();
        let found = |end: &str| self.desk.path(&format!("{repo}/objects/{}/{}.{end}", &checksum[..2], &checksum[2..]));
        if found("file").exists() { found("file") } else { found("filez") }
    }
}

fn modes() -> impl Iterator<Item = &'static str> {
    MODES.iter().copied().filter(|mode| *mode != "bare" || can_chown())
}

/// The record that a repository keeps of the bundles with the name os.
const KEPT: &str = "extensions/sealift/os/head";

/// Removes the record.
fn forget(desk: &Repos, repo: &str) {
    let head = desk.path(repo).join(KEPT);
    fs::remove_dir_all(head.parent().expect("a folder")).expect("it is kept");
}

/// Returns the only index that it keeps.
fn kept_index(repo: &Path) -> PathBuf {
    let folder = repo.join(KEPT).parent().expect("a folder").to_owned();
    let paths = fs::read_dir(folder).expect("it is kept").map(|entry| entry.expect("an entry").path());
    let mut found: Vec<_> = paths.filter(|path| !path.ends_with("head")).collect();
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

#[test]
fn onto_each_mode() {
    let own = Versions::new("archive");
    let desk = &own.desk;
    assert!(own.len("delta.sealift") < 12_000, "{} bytes", own.len("delta.sealift"));
    for mode in modes() {
        for keeps in [true, false] {
            let repo = &format!("{mode}-{keeps}");
            own.device(repo, mode);
            if !keeps {
                forget(desk, repo);
            }
            let line = format!("unpack delta.sealift ostree:{repo} --allow-unsigned");
            let before = desk.snapshot(repo);
            let dry = desk.run(&format!("{line} --dry-run --json"));
            desk.is_as(&before, repo, "a dry run");
            let taken = desk.import("delta.sealift", repo);
            let dry: serde_json::Value = serde_json::from_str(&dry).expect("it is JSON");
            // prose, program, large, new and link; noise, void and none only have other permissions.
            for (what, number) in [("commits", 1), ("files", 8)] {
                assert_eq!((&taken[what], &dry[what]), (&number.into(), &number.into()), "{repo}: {what}");
            }
            own.is_second(repo);
            let before = desk.snapshot(repo);
            let again = desk.import("delta.sealift", repo);
            for what in ["commits", "metadata", "files", "stored_bytes"] {
                assert_eq!(again[what], 0, "{repo}: {what} {again}");
            }
            desk.is_as(&before, repo, "a second run");
            // A run that was killed after it set the refs, before it wrote the record.
            let kept = fs::read(desk.path(repo).join(KEPT)).expect("it is kept");
            forget(desk, repo);
            assert_eq!(desk.import("delta.sealift", repo)["files"], 0, "{repo}");
            assert!(fs::read(desk.path(repo).join(KEPT)).expect("it is kept") == kept, "{repo}");
            // The full bundle finds everything there, and from then on the record is its own.
            assert_eq!(desk.import("2.sealift", repo)["stored_bytes"], 0, "{repo}");
        }
    }
}

#[test]
fn of_each_mode() {
    let first = Versions::new("archive");
    let expected = fs::read(first.desk.path("delta.sealift")).expect("a bundle");
    for mode in modes() {
        let own = Versions::new(mode);
        let desk = &own.desk;
        assert!(fs::read(desk.path("delta.sealift")).expect("a bundle") == expected, "{mode}: a bundle as base");
        for base in [format!("ostree:source:{}", own.one), format!("os=ostree:source:{}", own.one)] {
            own.delta(&base, "of-commit.sealift");
            let bytes = fs::read(desk.path("of-commit.sealift")).expect("a bundle");
            assert!(behind_head(&bytes) == behind_head(&expected), "{mode}: {base}");
        }
        // A device as the base, by its ref.
        own.device("device", "bare-user-only");
        own.delta("ostree:device:os", "of-device.sealift");
        let bytes = fs::read(desk.path("of-device.sealift")).expect("a bundle");
        assert!(behind_head(&bytes) == behind_head(&expected), "{mode}: a device");
    }
}

/// Returns everything but the head, which has the name and version of a base that is a bundle, but not of one that is a commit.
fn behind_head(bundle: &[u8]) -> &[u8] {
    Head::parse_first(bundle).expect("a sound head").1
}

/// The content of a file with other permissions is not carried.
#[test]
fn metadata_alone() {
    let own = Versions::new("archive");
    let desk = &own.desk;
    own.device("device", "bare-user");
    desk.import("2.sealift", "device");
    for name in ["usr/share/large", "usr/share/noise", "usr/bin/run"] {
        fs::set_permissions(desk.path("tree").join(name), fs::Permissions::from_mode(0o640)).expect("it is ours");
    }
    let three = desk.commit("source", "os", "./tree", ROOT);
    let pack =
        "pack --force ostree:source -o delta.sealift --name os --bundle-version 3 --base 2.sealift --allow-unsigned";
    desk.run(pack);
    assert!(own.len("delta.sealift") < 2_000, "{} bytes", own.len("delta.sealift"));
    let taken = desk.import("delta.sealift", "device");
    assert_eq!((&taken["files"], &taken["stored_bytes"]), (&3.into(), &0.into()));
    desk.fsck("device");
    assert_eq!(desk.listed("device", "os"), desk.listed("source", &three));
}

/// The summary of a repository, and signatures of commits, are not part of a base that is a commit: the device finds the base anyway.
#[test]
fn with_a_summary_and_a_collection() {
    let desk = Repos::new();
    desk.ostree("source", &["init", "--mode=archive", "--collection-id=org.example.Os"]);
    desk.ostree("source", &["config", "set", "core.fsync", "false"]);
    let mut commits = Vec::new();
    for number in 1..=3_u32 {
        fs::create_dir_all(desk.path("tree/sub")).expect("a folder");
        write(&desk.path("tree/prose"), 0o644, prose(number, 3_000).as_bytes());
        write(&desk.path("tree/sub/same"), 0o644, &noise(1, 100_000));
        commits.push(desk.commit("source", "os", "./tree", ROOT));
        desk.ostree("source", &["summary", "--update"]);
        desk.run(&format!(
            "pack --force ostree:source --ref os -o {number}.sealift --name os --bundle-version {number}"
        ));
        if let [.., before, _] = &commits[..] {
            let line = format!(
                "pack --force ostree:source --ref os -o to-{number}.sealift --name os --bundle-version {number}"
            );
            desk.run(&format!("{line} --base ostree:source:{before}"));
        }
    }
    for (number, to) in ["", "--mirror", "--remote origin"].into_iter().enumerate() {
        for (mode, keeps) in [("bare-user-only", true), ("archive", false)] {
            let repo = format!("device-{number}-{keeps}");
            desk.init(&repo, mode);
            desk.ostree(&repo, &["remote", "add", "--no-gpg-verify", "origin", "https://example.org/"]);
            let take = |bundle: &str| desk.run(&format!("unpack {bundle} ostree:{repo} --allow-unsigned {to}"));
            take("1.sealift");
            for delta in ["to-2.sealift", "to-3.sealift"] {
                if !keeps {
                    forget(&desk, &repo);
                    take(delta);
                    continue;
                }
                // With the record, unchanged objects need not be checked.
                let same = desk.largest(&repo, ".file");
                fs::rename(&same, desk.path("aside")).expect("it is there");
                let line = format!("unpack {delta} ostree:{repo} --allow-unsigned {to}");
                assert!(desk.refused(&line).contains("use the full bundle"), "{repo}");
                desk.run(&format!("{line} --no-check"));
                fs::rename(desk.path("aside"), same).expect("it was there");
            }
            desk.fsck(&repo);
            assert_eq!(desk.listed(&repo, &commits[2]), desk.listed("source", &commits[2]), "{repo}");
            let refs = desk.ostree(&repo, &["refs", "-c", "--list"]) + &desk.ostree(&repo, &["refs", "--list"]);
            let is_named = refs.contains(["os", "org.example.Os, os", "origin:os"][number]);
            assert!(is_named, "{repo}: {refs}");
        }
    }
}

/// If the repository has lost objects that a delta needs, they are named before anything is written.
#[test]
fn lost_objects() {
    let own = Versions::new("archive");
    let desk = &own.desk;
    for mode in modes() {
        own.device("device", mode);
        let line = "unpack delta.sealift ostree:device --allow-unsigned";
        // One object is the prefix of another, one only changes its metadata, and one is large.
        for (path, name) in [
            ("usr/share/prose", "usr/share/prose"),
            ("usr/share/noise", "usr/share/noise"),
            ("usr/share/large", "usr/share/as-large"),
        ] {
            let object = own.object("device", &own.one, path);
            copy(&object, &desk.path("aside"));
            for damage in ["removed", "changed", "cut"] {
                let mut bytes = fs::read(&object).expect("it is there");
                let at = bytes.len() / 2;
                fs::remove_file(&object).expect("it is there");
                match damage {
                    "changed" => bytes[at] ^= 1,
                    _ => bytes.truncate(at),
                }
                if damage != "removed" {
                    copy(&desk.path("aside"), &object);
                    fs::write(&object, &bytes).expect("there is room");
                }
                let said = own.refused(line, "device");
                assert!(
                    said.contains("were changed or removed: ") && said.contains(name),
                    "{mode}, {path} {damage}: {said}"
                );
                assert_eq!(desk.ostree("device", &["rev-parse", "os"]).trim(), own.one);
                let _ = fs::remove_file(&object);
                copy(&desk.path("aside"), &object);
            }
            fs::remove_file(desk.path("aside")).expect("it is there");
        }
        // Without the record, the whole base is read.
        forget(desk, "device");
        let object = own.object("device", &own.one, "usr/bin/run");
        fs::rename(&object, desk.path("aside")).expect("it is there");
        let said = own.refused(line, "device");
        assert!(said.contains("cannot be read") && said.contains(".file"), "{mode}: {said}");
        fs::rename(desk.path("aside"), &object).expect("it is there");
        desk.import("delta.sealift", "device");
        own.is_second("device");
        // An object that the delta brought is lost, but the base is still there: the delta brings it again.
        let commit = desk.path(&format!("device/objects/{}/{}.commit", &own.two[..2], &own.two[2..]));
        fs::remove_file(own.object("device", &own.two, "usr/bin/program")).expect("it is there");
        fs::remove_file(&commit).expect("it is there");
        copy(&desk.path("device"), &desk.path("lacking"));
        desk.import("delta.sealift", "device");
        own.is_second("device");
        // If the base is lost too, the full bundle helps.
        fs::remove_file(own.object("lacking", &own.one, "usr/bin/program")).expect("it is there");
        let said = own.refused(&line.replace("device", "lacking"), "lacking");
        assert!(said.contains("cannot be read") && said.contains("full bundle"), "{mode}: {said}");
        desk.import("2.sealift", "lacking");
        assert_eq!(desk.listed("lacking", "os"), desk.listed("source", &own.two));
        assert!(own.object("lacking", &own.two, "usr/bin/program").exists(), "it is there again");
        fs::remove_dir_all(desk.path("lacking")).expect("it is there");
        // An update that was undone can be installed again.
        desk.ostree("device", &["reset", "os", &own.one]);
        desk.ostree("device", &["prune", "--refs-only", "--depth=0"]);
        assert!(desk.try_ostree("device", &["ls", &own.two]).is_err(), "it is pruned");
        desk.import("delta.sealift", "device");
        own.is_second("device");
        fs::remove_dir_all(desk.path("device")).expect("it is there");
    }
}

/// If a repository lacks the whole base, the message says so, and what it has instead.
#[test]
fn another_base() {
    let own = Versions::new("archive");
    let desk = &own.desk;
    let line = "unpack delta.sealift ostree:device --allow-unsigned";
    desk.init("device", "archive");
    let said = own.refused(line, "device");
    assert!(said.contains("wrong base: this delta needs os version 1 (") && said.contains("no ref os"), "{said}");

    write(&desk.path("tree/new"), 0o644, b"another\n");
    desk.commit("source", "os", "./tree", ROOT);
    desk.run("pack --force ostree:source -o 3.sealift --name os --bundle-version 3");
    desk.import("3.sealift", "device");
    let said = own.refused(line, "device");
    assert!(said.contains("the last imported bundle was os version 3 (") && said.contains("full bundle"), "{said}");
    forget(desk, "device");
    let said = own.refused(line, "device");
    assert!(said.contains("the commits of its refs") && !said.contains("imported bundle was"), "{said}");

    // A damaged record is rebuilt on request.
    own.device("damaged", "archive");
    let kept = fs::read(desk.path("damaged").join(KEPT)).expect("it is kept");
    for damaged in [Vec::new(), kept[..100].to_vec(), kept[..kept.len() - 1].to_vec(), b"nothing".repeat(100)] {
        copy(&desk.path("damaged"), &desk.path("copy"));
        fs::write(desk.path("copy").join(KEPT), damaged).expect("there is room");
        own.refused("unpack delta.sealift ostree:copy --allow-unsigned", "copy");
        desk.import_with("delta.sealift", "copy", "--adopt");
        own.is_second("copy");
        fs::remove_dir_all(desk.path("copy")).expect("it is there");
    }
    let index = kept_index(&desk.path("damaged"));
    for damaged in [None, Some(Vec::new()), Some(fs::read(&index).expect("it is kept")[1..].to_vec())] {
        copy(&desk.path("damaged"), &desk.path("copy"));
        let index = kept_index(&desk.path("copy"));
        match damaged {
            None => fs::remove_file(index).expect("it is kept"),
            Some(damaged) => fs::write(index, damaged).expect("there is room"),
        }
        own.refused("unpack delta.sealift ostree:copy --allow-unsigned", "copy");
        desk.import_with("delta.sealift", "copy", "--adopt");
        own.is_second("copy");
        // The previous index is removed.
        kept_index(&desk.path("copy"));
        fs::remove_dir_all(desk.path("copy")).expect("it is there");
    }

    desk.run("pack --force tree -o tree.sealift --name os --bundle-version 1");
    own.delta("tree.sealift", "of-tree.sealift");
    let said = own.refused("unpack of-tree.sealift ostree:damaged --allow-unsigned", "damaged");
    assert!(said.contains("main of the base is a tree, and the repository has commits"), "{said}");
    for (base, why) in [("ostree:source:none", "no ref \"none\""), ("ostree:nowhere:os", "no such directory")] {
        let said = desk.refused(&format!("pack --force ostree:source -o no.sealift --name os --base {base}"));
        assert!(said.contains(why) && !desk.path("no.sealift").exists(), "{base}: {said}");
    }
    for base in ["ostree:source", "ostree:source:os"] {
        let said = desk.run(&format!("pack --force ostree:source -o no.sealift --name os --base {base}"));
        assert!(said.contains("nothing has changed since") && !desk.path("no.sealift").exists(), "{base}: {said}");
    }
    let object = own.object("source", &own.one, "usr/share/noise");
    fs::remove_file(object).expect("it is there");
    let said = desk.refused(&format!("pack --force tree -o no.sealift --name os --base os=ostree:source:{}", own.one));
    assert!(said.contains("it has no object") && !desk.path("no.sealift").exists(), "{said}");
}

/// Signatures and versions of a delta are judged like those of any bundle.
#[test]
fn signatures_and_versions() {
    let own = Versions::new("archive");
    let desk = &own.desk;
    desk.run("key generate -o key");
    let public = fs::read_to_string(desk.path("key.pub")).expect("it is there");
    fs::write(desk.path("signers"), format!("os namespaces=\"sealift\" {public}")).expect("there is room");
    let pack = |name: &str, version: u32, commit: &str, base: &str, to: &str| {
        desk.run(&format!(
            "pack --force os=ostree:source --ref {commit} -o {to} --name {name} --bundle-version {version} --base {base} --key key --allow-unsigned"
        ));
    };
    pack("os", 2, &own.two, "1.sealift", "up.sealift");
    // A base that is a bundle states its version, so that nobody packs a lower one by mistake.
    pack("os", 1, &own.one, &format!("os=ostree:source:{}", own.two), "down.sealift");
    pack("app", 3, &own.one, "2.sealift", "other.sealift");
    own.device("device", "bare-user-only");
    let take = |bundle: &str| format!("unpack {bundle} ostree:device --trust signers --state state");
    let said = own.refused(&take("delta.sealift"), "device");
    assert!(said.contains("signature"), "{said}");
    desk.run(&take("up.sealift"));
    own.is_second("device");
    let said = own.refused(&take("down.sealift"), "device");
    assert!(said.contains("version 1"), "{said}");
    own.refused(&take("other.sealift"), "device");
    desk.run(&(take("down.sealift") + " --allow-downgrade"));
    assert_eq!(desk.ostree("device", &["rev-parse", "os"]).trim(), own.one);
}

/// A base with commits before its newest one is found only through the record.
#[test]
fn history() {
    let own = Versions::new("archive");
    let desk = &own.desk;
    desk.run("pack --force ostree:source --depth 1 -o 2-and-1.sealift --name os --bundle-version 2");
    write(&desk.path("tree/new"), 0o644, b"third\n");
    let three = desk.commit("source", "os", "./tree", ROOT);
    let pack = "pack --force ostree:source --depth 2 -o to-3.sealift --name os --bundle-version 3 --allow-unsigned";
    desk.run(&format!("{pack} --base 2-and-1.sealift"));
    desk.init_with("device", "archive", "2-and-1.sealift");
    copy(&desk.path("device"), &desk.path("forgot"));
    forget(desk, "forgot");
    let said = own.refused("unpack to-3.sealift ostree:forgot --allow-unsigned", "forgot");
    assert!(said.contains("a base that includes parent commits"), "{said}");
    desk.import("to-3.sealift", "device");
    desk.fsck("device");
    for commit in [&own.one, &own.two, &three] {
        assert_eq!(desk.listed("device", commit), desk.listed("source", commit));
    }
}

/// The refs of one bundle, together and one by one.
#[test]
fn several_refs() {
    let desk = Repos::new();
    desk.init("source", "archive");
    let commit = |seed: u32| {
        for name in ["app", "os"] {
            fs::create_dir_all(desk.path(name)).expect("a folder");
            write(&desk.path(name).join("prose"), 0o644, prose(seed, 3_000).as_bytes());
            write(&desk.path(name).join("own"), 0o644, (name.to_owned() + &prose(seed, 2_000)).as_bytes());
            desk.commit("source", name, &format!("./{name}"), ROOT);
        }
        desk.run(&format!("pack --force ostree:source -o {seed}.sealift --name all --bundle-version {seed}"));
    };
    commit(1);
    commit(2);
    desk.run(
        "pack --force ostree:source -o delta.sealift --name all --bundle-version 2 --base 1.sealift --allow-unsigned",
    );
    for keeps in [true, false] {
        let repo = format!("device-{keeps}");
        desk.init_with(&repo, "bare-user-only", "1.sealift");
        if !keeps {
            fs::remove_dir_all(desk.path(&repo).join("extensions/sealift")).expect("it is kept");
        }
        copy(&desk.path(&repo), &desk.path("one"));
        desk.run("unpack delta.sealift ostree:one --ref app --allow-unsigned");
        desk.fsck("one");
        assert_eq!(desk.listed("one", "app"), desk.listed("source", "app"));
        assert_eq!(desk.listed("one", "os"), desk.listed("source", "os^"));
        let before = desk.snapshot("one");
        desk.run("unpack delta.sealift ostree:one --ref app --allow-unsigned");
        desk.is_as(&before, "one", "a second run");
        // The other ref, whose base is the previous state of the first one.
        desk.run("unpack delta.sealift ostree:one --allow-unsigned");
        desk.fsck("one");
        assert_eq!(desk.listed("one", "os"), desk.listed("source", "os"));
        fs::remove_dir_all(desk.path("one")).expect("it is there");
        desk.import("delta.sealift", &repo);
        desk.fsck(&repo);
        for name in ["app", "os"] {
            assert_eq!(desk.listed(&repo, name), desk.listed("source", name), "{repo}");
        }
    }
}

/// A delta over two bundles, for a repository that imported both.
#[test]
fn of_several_bases() {
    let desk = Repos::new();
    desk.init("source", "archive");
    let commit = |name: &str, texts: &[(&str, u32)]| {
        fs::create_dir_all(desk.path(name)).expect("a folder");
        for (file, seed) in texts {
            write(&desk.path(name).join(file), 0o644, prose(*seed, 9_000).as_bytes());
        }
        desk.commit("source", name, &format!("./{name}"), ROOT);
    };
    commit("os", &[("own", 1), ("same", 4)]);
    commit("app", &[("library", 1_000)]);
    let pack = |name: &str, version: u32, more: &str| {
        let to = format!("{name}-{version}.sealift");
        desk.run(&format!(
            "pack --force ostree:source --ref {name} -o {to} --name {name} --bundle-version {version} {more}"
        ));
        to
    };
    let bundles = [pack("os", 1, ""), pack("app", 1, "")];
    // A file of the app becomes a file of the system.
    commit("os", &[("own", 2), ("library", 1_001)]);
    fs::rename(desk.path(&pack("os", 2, "")), desk.path("full.sealift")).expect("it is there");
    let delta = pack("os", 2, "--base os-1.sealift --base app-1.sealift --allow-unsigned");
    let len = fs::metadata(desk.path(&delta)).expect("a bundle").len();
    assert!(len < 6_000, "{len} bytes");
    let line = format!("unpack {delta} ostree:device --allow-unsigned");
    desk.init("device", "bare-user-only");
    for (taken, lacking) in [(&bundles[0], "wrong base: this delta needs app version 1 ("), (&bundles[1], "")] {
        desk.import(taken, "device");
        if !lacking.is_empty() {
            let before = desk.snapshot("device");
            let said = desk.refused(&line);
            assert!(said.contains(lacking) && said.contains("; use the full bundle"), "{said}");
            desk.is_as(&before, "device", &line);
        }
    }
    let is_read_over = |bases: &str| {
        desk.run(&format!("verify {delta} --deep {bases} --allow-unsigned"));
        assert_eq!(desk.run(&format!("ls {delta} --json {bases}")), desk.run("ls full.sealift --json"), "{bases}");
        let content = desk.run(&format!("cat {delta} library {bases} --allow-unsigned"));
        assert_eq!(content, desk.run("cat full.sealift library --allow-unsigned"), "{bases}");
    };
    // Without records, the commits of its refs are read.
    for forgotten in ["os", "app", ""] {
        copy(&desk.path("device"), &desk.path("forgot"));
        fs::remove_dir_all(desk.path("forgot/extensions/sealift").join(forgotten)).expect("it is kept");
        is_read_over("--base ostree:forgot");
        desk.import(&delta, "forgot");
        desk.fsck("forgot");
        assert_eq!(desk.listed("forgot", "os"), desk.listed("source", "os"), "{forgotten}");
        fs::remove_dir_all(desk.path("forgot")).expect("it is there");
    }
    // Each base is given by a ref or a checksum, with other bases, in any order.
    let commit = |name: &str| desk.ostree("device", &["rev-parse", name]).trim().to_owned();
    for bases in [
        "--base ostree:device:os --base ostree:device:app".to_owned(),
        format!("--base ostree:device:{} --base ostree:device:{}", commit("app"), commit("os")),
        "--base app-1.sealift --base ostree:device:os".to_owned(),
        "--base ostree:device:app --base os-1.sealift".to_owned(),
    ] {
        is_read_over(&bases);
    }
    let said = desk.refused(&format!("cat {delta} own --base ostree:device:app --allow-unsigned"));
    assert!(said.contains("it needs os version 1 (") && said.contains("which was not given"), "{said}");
    desk.import(&delta, "device");
    desk.fsck("device");
    for name in ["app", "os"] {
        assert_eq!(desk.listed("device", name), desk.listed("source", name), "{name}");
    }
    let before = desk.snapshot("device");
    desk.run(&line);
    desk.is_as(&before, "device", "a second run");
}

/// A medium that holds the base gets the same as with `unpack --usb` of the full bundle, and no files of ours.
#[test]
fn onto_a_medium() {
    let desk = Repos::new();
    desk.ostree("source", &["init", "--mode=archive", "--collection-id=org.example.Os"]);
    first_tree(&desk.path("tree"));
    desk.commit("source", "os", "./tree", ROOT);
    desk.run("pack --force ostree:source -o 1.sealift --name os --bundle-version 1");
    second_tree(&desk.path("tree"));
    let two = desk.commit("source", "os", "./tree", ROOT);
    desk.run(
        "pack --force ostree:source -o delta.sealift --name os --bundle-version 2 --base 1.sealift --allow-unsigned",
    );
    for name in ["stick", "empty"] {
        fs::create_dir(desk.path(name)).expect("a folder");
    }
    let said = desk.refused("unpack delta.sealift --usb empty --allow-unsigned");
    assert!(said.contains("wrong base: this delta needs os version 1 ("), "{said}");
    assert_eq!(fs::read_dir(desk.path("empty")).expect("a folder").count(), 0, "nothing is left there");
    desk.run("unpack 1.sealift --usb stick --allow-unsigned");
    desk.run("unpack delta.sealift --usb stick --allow-unsigned");
    desk.fsck("stick/.ostree/repo");
    assert_eq!(desk.listed("stick/.ostree/repo", &two), desk.listed("source", &two));
    assert_eq!(fs::read_dir(desk.path("stick/.ostree/repo/extensions")).expect("a folder").count(), 0);
    desk.init("device", "bare-user-only");
    desk.ostree("device", &["pull-local", "stick/.ostree/repo", &two]);
    desk.fsck("device");
}

#[test]
fn it_is_listed_verified_and_compared() {
    let own = Versions::new("archive");
    let desk = &own.desk;
    // With the base, names in a commit are known.
    assert_eq!(desk.run("ls delta.sealift"), "");
    let hint = "os is an OSTree commit; to list what changes in it: sealift diff BASE delta.sealift";
    for (line, hint) in [
        ("ls delta.sealift", format!("{hint}\n")),
        ("ls delta.sealift --json", format!("{{\"warning\":\"{hint}\"}}\n")),
    ] {
        let said = desk.command(line).output().expect("sealift runs").stderr;
        let said = String::from_utf8_lossy(&said);
        assert!(said.ends_with(&hint), "{line}: {said}");
    }
    let listed = desk.run("ls delta.sealift --base 1.sealift");
    assert_eq!(listed, desk.run("ls 2.sealift"));
    let listed = desk.run("diff 1.sealift delta.sealift");
    for name in ["link", "new", "usr/moved", "usr/share/gone", "usr/share/prose"] {
        assert!(listed.contains(name), "{name} in:\n{listed}");
    }
    assert!(!listed.contains("again") && !listed.contains("  usr/share/equal"), "{listed}");
    assert!(desk.run("info delta.sealift").contains("Base"));
    for (bundle, commit) in [("1.sealift", &own.one), ("2.sealift", &own.two), ("delta.sealift", &own.two)] {
        let info = desk.run(&format!("info {bundle}"));
        assert!(info.contains(&format!("\n                os\n                commit {commit}\n")), "{info}");
        let json = desk.json(&format!("info {bundle} --json"));
        assert_eq!(json["refs"], serde_json::json!([{"name": "os", "kind": "commit", "commit": commit}]));
    }
    desk.run("verify delta.sealift --deep --allow-unsigned");
    let entries = |line: &str| {
        let text = desk.run(line);
        text[text.find("\"entries\"").expect("it is told")..].to_owned()
    };
    let by_delta = entries("diff 1.sealift delta.sealift --json");
    assert_eq!(by_delta, entries("diff 1.sealift 2.sealift --json"));
}

#[test]
fn for_a_request() {
    let versions = Versions::new("bare-user");
    let desk = &versions.desk;
    versions.device("device", "archive");
    let said = desk.run("request ostree:device:os -o device.request");
    assert!(said.contains("ostree:device:os holds content "), "{said}");
    desk.run("pack --force ostree:source --ref os -o asked.sealift --name os --bundle-version 2 --for device.request");
    desk.import("asked.sealift", "device");
    versions.is_second("device");
    // None of the old contents were available.
    assert!(versions.len("delta.sealift") < versions.len("asked.sealift"));
    assert!(versions.len("asked.sealift") < versions.len("2.sealift"));
}

/// Where a full bundle can be used, a delta can be used with a base that is elsewhere: its bundle, or a repository that holds it.
#[test]
fn over_a_given_base() {
    let own = Versions::new("archive");
    let desk = &own.desk;
    own.device("holder", "bare-user-only");
    for base in ["1.sealift", "ostree:holder"] {
        desk.run(&format!("verify delta.sealift --deep --base {base} --allow-unsigned"));
        for (number, mode) in modes().enumerate() {
            let repo = format!("new-{number}");
            desk.init(&repo, mode);
            let line = format!("unpack delta.sealift ostree:{repo} --allow-unsigned");
            let said = own.refused(&line, &repo);
            assert!(said.contains("wrong base: this delta needs os version 1 ("), "{said}");
            desk.run(&format!("{line} --base {base}"));
            desk.fsck(&repo);
            assert_eq!(desk.ostree(&repo, &["rev-parse", "os"]).trim(), own.two, "{mode}");
            assert_eq!(desk.listed(&repo, "os"), desk.listed("source", &own.two), "{mode}");
            // It is installed as from the full bundle.
            desk.run(&format!("audit ostree:{repo} --allow-unsigned"));
            desk.run(&format!("audit ostree:{repo} 2.sealift --allow-unsigned"));
            desk.run(&format!("audit ostree:{repo} delta.sealift --base {base} --allow-unsigned"));
            fs::remove_dir_all(desk.path(&repo)).expect("it can be removed");
        }
    }
    // All objects of a base are compared with their ids.
    let object = own.object("holder", &own.one, "/usr/share/large");
    fs::write(&object, noise(9, 100)).expect("it can be written");
    desk.init("new", "archive");
    let said = own.refused("unpack delta.sealift ostree:new --base ostree:holder --allow-unsigned", "new");
    assert!(said.contains("ostree:holder: the delta needs files of its base") && said.contains("usr/share/"), "{said}");
    desk.run("unpack delta.sealift new-tree --base 1.sealift --allow-unsigned");
    assert_eq!(fs::read(desk.path("new-tree/new")).expect("a file"), fs::read(desk.path("tree/new")).expect("a file"));
}

/// A repository into which no bundle was imported has the base as well: its commits are read.
#[test]
fn over_a_repository_without_a_record() {
    let own = Versions::new("archive");
    let desk = &own.desk;
    let (one, two) = (&own.one, &own.two);
    own.device("holder", "bare-user-only");
    forget(desk, "holder");
    desk.init("mirror", "bare-user");
    desk.ostree("mirror", &["pull-local", "--remote=origin", "source", one]);
    desk.ostree("mirror", &["refs", "--create=origin:os", one]);
    // In the source, the ref is at the delta's commit, which follows that of the base.
    let bases = ["holder", "mirror", "source", &format!("source:{one}"), "mirror:origin:os"];
    for base in bases {
        desk.run(&format!("verify delta.sealift --deep --base ostree:{base} --allow-unsigned"));
        desk.init("new", "archive");
        desk.run(&format!("unpack delta.sealift ostree:new --base ostree:{base} --allow-unsigned"));
        assert_eq!(desk.listed("new", "os"), desk.listed("source", two), "{base}");
        fs::remove_dir_all(desk.path("new")).expect("it can be removed");
    }
    let refused = |base: &str| desk.refused(&format!("ls delta.sealift --base ostree:{base}"));
    let said = refused(&format!("source:{two}"));
    assert!(said.contains("wrong base: this delta needs os version 1 (") && said.contains("objects"), "{said}");
    desk.init("empty", "archive");
    let said = refused("empty");
    assert!(said.contains("the repository has no ref os"), "{said}");
    // A record of another bundle does not hide the commits.
    desk.run("unpack 2.sealift ostree:mirror --allow-unsigned");
    desk.run("verify delta.sealift --deep --base ostree:mirror --allow-unsigned");
    fs::remove_file(own.object("mirror", one, "/usr/bin/program")).expect("it is there");
    let said = refused("mirror");
    assert!(said.contains("; it has content ") && said.contains("its commits cannot be read"), "{said}");
}

/// In an archive, a part can only be reached through what precedes it. Two threads read parts by turns.
#[test]
fn parts_of_a_commit_are_read_in_any_order() {
    for mode in ["archive", "bare-user"] {
        let desk = Repos::new();
        desk.init("repo", mode);
        fs::create_dir(desk.path("tree")).expect("a folder");
        let content = noise(1, 3_000_000);
        write(&desk.path("tree/large"), 0o644, &content);
        desk.commit("repo", "os", "./tree", ROOT);
        let spec = format!("ostree:{}:os", desk.path("repo").display());
        let base = Base::of_commit(spec.as_ref(), None, &[], 1, &Progress::default()).expect("it is a commit");
        let bases = Bases::new(vec![base]);
        let (mut one, mut two) = (BaseReader::new(&bases), BaseReader::new(&bases));
        let mut read = |range: std::ops::Range<usize>, is_one| {
            let mut out = vec![7];
            let reader = if is_one { &mut one } else { &mut two };
            let range_read = u64::try_from(range.start).expect("it fits")..u64::try_from(range.end).expect("it fits");
            reader.read(Row::FIRST, range_read, &mut out).map(|()| {
                assert!(out[0] == 7 && out[1..] == content[range.clone()], "{mode}: {range:?}");
            })
        };
        let ends = [0, 1, 262_143, 262_145, 1_000_000, 2_000_000, 2_999_999, 3_000_000];
        for order in [[0, 1, 2, 3, 4, 5, 6], [1, 0, 3, 2, 5, 4, 6], [6, 5, 4, 3, 2, 1, 0]] {
            for number in order {
                read(ends[number]..ends[number + 1], number % 2 == 0).expect("it is there");
                read(ends[number]..ends[number], true).expect("it is there");
            }
        }
        let object = desk.largest("repo", if mode == "archive" { ".filez" } else { ".file" });
        let bytes = fs::read(&object).expect("it is there");
        fs::write(&object, &bytes[..2_500_000]).expect("it is ours");
        let error = read(2_600_000..2_700_000, true).expect_err("it is cut").to_string();
        assert!(error.contains("is missing or damaged"), "{error}");
    }
}
