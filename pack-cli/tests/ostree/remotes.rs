//! Which refs a repository accepts, and by whom they must be signed.

use std::fs;

use sealift_desk::noise;

use crate::repos::write;
use crate::signed::Signed;

#[test]
fn signatures() {
    let signed = Signed::new();
    let desk = &signed.desk;
    ["right", "wrong"].into_iter().for_each(|key| signed.make_key(key));
    desk.init("source", "archive");
    desk.init("target", "bare-user-only");
    let first = signed.sign("os", &["right"]);
    signed.is_refused("--remote origin", "it has no remote \"origin\"");
    desk.ostree("target", &["remote", "add", "origin", "https://example.org"]);
    let keyring = desk.path("target/origin.trustedkeys.gpg");
    let trust = |name: &str| fs::copy(desk.path(name), &keyring).expect("there is room");

    signed.is_refused("--remote origin", "no key of the remote signed it");
    assert!(!signed.does_libostree_take(&first));
    trust("wrong.gpg");
    signed.is_refused("--remote origin", "no key of the remote signed it");
    assert!(!signed.does_libostree_take(&first));
    fs::remove_file(&keyring).expect("it is there");
    desk.ostree("target", &["remote", "gpg-import", "--keyring=right.gpg", "origin"]);
    signed.is_taken("--remote origin", "remotes/origin/os", &first);
    assert!(signed.does_libostree_take(&first));

    let unsigned = signed.commit("os", &[]);
    signed.is_refused("--remote origin", "it has none");
    assert!(!signed.does_libostree_take(&unsigned));
    let other = signed.sign("os", &["wrong"]);
    signed.is_refused("--remote origin", "no key of the remote signed it");
    assert!(!signed.does_libostree_take(&other));
    let both = signed.sign("os", &["wrong", "right"]);
    signed.is_taken("--remote origin", "remotes/origin/os", &both);
    assert!(signed.does_libostree_take(&both));

    // A signature of another commit, and a damaged one.
    let transplanted = signed.commit("os", &[]);
    let beside = |commit: &str| desk.path(&format!("source/objects/{}/{}.commitmeta", &commit[..2], &commit[2..]));
    let good = fs::read(beside(&first)).expect("it is signed");
    fs::write(beside(&transplanted), &good).expect("there is room");
    desk.run("pack --force ostree:source -o os.sealift");
    signed.is_refused("--remote origin", "no key of the remote signed it");
    assert!(!signed.does_libostree_take(&transplanted));
    desk.ostree("source", &["refs", "--force", "--create=os", &first]);
    let mut damaged = good.clone();
    let middle = good.len() / 2;
    damaged[middle] ^= 1;
    fs::write(beside(&first), damaged).expect("there is room");
    desk.run("pack --force ostree:source -o os.sealift");
    signed.is_refused("--remote origin", "no key of the remote signed it");
    assert!(!signed.does_libostree_take(&first));

    // The shared keyrings count for remotes that have no keys of their own.
    fs::write(beside(&first), good).expect("there is room");
    desk.run("pack --force ostree:source -o os.sealift");
    fs::create_dir(desk.path("shared")).expect("a folder");
    fs::rename(desk.path("right.gpg"), desk.path("shared/right.gpg")).expect("it can be moved");
    trust("wrong.gpg");
    signed.is_refused("--remote origin", "no key of the remote signed it");
    assert!(!signed.does_libostree_take(&first));
    fs::remove_file(&keyring).expect("it can be removed");
    signed.is_taken("--remote origin", "remotes/origin/os", &first);
    assert!(signed.does_libostree_take(&first));

    desk.ostree("source", &["refs", "--force", "--create=os", &transplanted]);
    desk.run("pack --force ostree:source -o os.sealift");
    desk.ostree("target", &["config", "set", "remote \"origin\".gpg-verify", "false"]);
    signed.is_taken("--remote origin", "remotes/origin/os", &transplanted);
    for (key, value, why) in [
        ("sign-verify", "nosuch", "sign-verify = \"nosuch\" is not a known kind of signature"),
        ("sign-verify-summary", "true", "which a bundle need not have"),
        ("gpg-verify-summary", "true", "which a bundle need not have"),
        ("gpg-verify", "maybe", "gpg-verify = \"maybe\" is not a valid value"),
        ("unconfigured-state", "register first", "not configured: register first"),
    ] {
        let setting = format!("remote \"origin\".{key}");
        let before = desk.try_ostree("target", &["config", "get", &setting]);
        desk.ostree("target", &["config", "set", &setting, value]);
        signed.is_refused("--remote origin", why);
        match before {
            Ok(before) => desk.ostree("target", &["config", "set", &setting, before.trim_end()]),
            Err(_) => desk.ostree("target", &["config", "unset", &setting]),
        };
    }
    signed.is_taken("", "heads/os", &transplanted);
}

/// Keys that the remote used to trust, and does not trust any more.
#[test]
fn keys_that_ended() {
    let signed = Signed::new();
    let desk = &signed.desk;
    desk.init("source", "archive");
    desk.init("target", "archive");
    desk.ostree("target", &["remote", "add", "origin", "https://example.org"]);
    for key in ["expired", "revoked"] {
        signed.make_key(key);
        let commit = signed.sign("os", &[key]);
        let fingerprint = signed.fingerprint(key);
        if key == "expired" {
            signed.gpg(&format!("--faked-system-time 20200102T000000 --quick-set-expire {fingerprint} 1d"));
        } else {
            let made = desk.path(&format!("keys/openpgp-revocs.d/{fingerprint}.rev"));
            let text = fs::read_to_string(made).expect("gpg makes it with the key");
            write(&desk.path("revocation"), 0o644, text.replace(":-----BEGIN", "-----BEGIN").as_bytes());
            signed.gpg("--import revocation");
        }
        signed.gpg(&format!("--output {key}-now.gpg --export {key}"));
        let keyring = desk.path("target/origin.trustedkeys.gpg");
        fs::copy(desk.path(&format!("{key}-now.gpg")), &keyring).expect("there is room");
        assert!(!signed.does_libostree_take(&commit), "{key}");
        signed.is_refused("--remote origin", "no key of the remote signed it");
        fs::copy(desk.path(&format!("{key}.gpg")), &keyring).expect("there is room");
        assert!(signed.does_libostree_take(&commit), "{key}");
        signed.is_taken("--remote origin", "remotes/origin/os", &commit);
    }
}

#[test]
fn bindings() {
    let signed = Signed::new();
    let desk = &signed.desk;
    desk.ostree("source", &["init", "--mode=archive", "--collection-id=org.example.Os"]);
    desk.init("target", "archive");
    for (remote, collection) in [("same", "org.example.Os"), ("other", "org.example.Other")] {
        let collection = format!("--collection-id={collection}");
        desk.ostree("target", &["remote", "add", "--no-gpg-verify", &collection, remote, "https://example.org"]);
    }
    let bound = signed.commit("os", &[]);
    signed.is_taken("", "heads/os", &bound);
    signed.is_taken("--remote same", "remotes/same/os", &bound);
    signed.is_refused("--remote other", "its collection is org.example.Os, not org.example.Other");
    signed.is_taken("--mirror", "mirrors/org.example.Os/os", &bound);

    // The commit of one ref under the name of another.
    desk.ostree("source", &["refs", "--create=other", "os"]);
    desk.run("pack --force ostree:source --ref other -o os.sealift");
    for destination in ["", "--remote same", "--mirror"] {
        signed.is_refused(destination, "its commit is bound to os");
    }
    // A commit that is not bound to a ref may have any name, but not any collection.
    let free = signed.commit("free", &["--no-bindings"]);
    signed.is_taken("", "heads/free", &free);
    signed.is_refused("--remote same", "its collection is none, not org.example.Os");
    signed.is_refused("--mirror", "its collection is none, not org.example.Os");
    // A commit that was made without a ref has no bindings.
    let orphan =
        desk.ostree("source", &["commit", "--orphan", "--owner-uid=0", "--owner-gid=0", "--subject=orphan", "./tree"]);
    desk.ostree("source", &["refs", "--create=orphan", orphan.trim()]);
    desk.run("pack --force ostree:source --ref orphan -o os.sealift");
    signed.is_refused("", "its commit is bound to no ref");
    assert!(desk.try_ostree("target", &["pull-local", "source", "orphan"]).is_err());
    // A collection binding counts only together with ref bindings.
    let collection = "--add-metadata-string=ostree.collection-binding=org.example.Os";
    signed.commit("loose", &["--no-bindings", collection]);
    signed.is_refused("--remote same", "its collection is none, not org.example.Os");
    assert!(desk.try_ostree("target", &["pull-local", "source", "loose"]).is_err());
    // The collection of a mirror is that of the bundle, and the commit must have the same.
    desk.ostree("source", &["config", "set", "core.collection-id", "org.example.Other"]);
    desk.run("pack --force ostree:source --ref os -o os.sealift");
    signed.is_refused("--mirror", "its collection is org.example.Os, not org.example.Other");
}

/// Several refs in one bundle: all are imported, or those that are requested; none if one is refused.
#[test]
fn several() {
    let signed = Signed::new();
    let desk = &signed.desk;
    desk.init("source", "bare-user");
    let mut commits = Vec::new();
    for (number, reference) in ["os/a", "os/b", "c"].iter().enumerate() {
        write(&desk.path(&format!("tree/of-{number}")), 0o644, &noise(number, 3000));
        commits.push(signed.commit(reference, &["--add-detached-metadata-string=note=beside"]));
    }
    desk.run("pack --force ostree:source -o all.sealift");
    desk.init("target", "archive");
    let taken = desk.run("unpack all.sealift ostree:target --allow-unsigned --ref os/b --ref c --json");
    assert!(!taken.contains("os/a"), "{taken}");
    let refs = |repo: &str| desk.ostree(repo, &["refs"]).lines().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(refs("target").len(), 2);
    assert!(desk.try_ostree("target", &["ls", &commits[0]]).is_err(), "its objects were not asked for");
    desk.fsck("target");
    let taken = desk.import("all.sealift", "target");
    assert_eq!((&taken["commits"], &taken["files"]), (&1.into(), &0.into()), "{taken}");
    for (reference, commit) in ["os/a", "os/b", "c"].iter().zip(&commits) {
        assert_eq!(desk.ostree("target", &["rev-parse", reference]).trim(), commit);
        assert_eq!(desk.listed("target", reference), desk.listed("source", reference));
        let note = desk.ostree("target", &["show", "--print-detached-metadata-key=note", reference]);
        assert_eq!(note.trim(), "'beside'");
    }
    desk.fsck("target");

    // A ref whose commit is bound to another name prevents the import of all.
    desk.ostree("source", &["refs", "--create=alias", "c"]);
    desk.run("pack --force ostree:source -o os.sealift");
    desk.init("fresh", "archive");
    let before = desk.snapshot("fresh");
    desk.refused("unpack os.sealift ostree:fresh --allow-unsigned");
    desk.is_as(&before, "fresh", "one ref is refused");
    desk.run("unpack os.sealift ostree:fresh --allow-unsigned --ref c");
    desk.fsck("fresh");
}

/// A name that is a file cannot be a directory, and this must be found before other refs are written.
#[test]
fn names_in_the_way() {
    let signed = Signed::new();
    let desk = &signed.desk;
    desk.init("source", "archive");
    for reference in ["a", "os/main", "z"] {
        signed.commit(reference, &["--no-bindings"]);
    }
    desk.run("pack --force ostree:source -o os.sealift");
    for there in ["os", "z/main"] {
        desk.init("target", "archive");
        desk.commit("target", there, "./tree", &[]);
        signed.is_refused("", "conflicts with \"refs/heads/");
        fs::remove_dir_all(desk.path("target")).expect("it can be removed");
    }
    desk.run("pack --force os=ostree:source --ref a -o a.sealift");
    desk.init_with("target", "archive", "a.sealift");
    assert_eq!(desk.ostree("target", &["refs"]).trim(), "os");
    desk.init("second", "archive");
    signed.desk.commit("second", "os", "./tree", &["--no-bindings"]);
    desk.run("pack --force ostree:source ostree:second -o os.sealift");
    fs::remove_dir_all(desk.path("target")).expect("it can be removed");
    desk.init("target", "archive");
    signed.is_refused("", "conflicts with \"refs/heads/os\"");
}

/// Each new commit must be signed, not only the last one.
#[test]
fn what_came_before() {
    let signed = Signed::new();
    let desk = &signed.desk;
    signed.make_key("right");
    desk.init("source", "archive");
    desk.init("target", "archive");
    desk.ostree("target", &["remote", "add", "origin", "https://example.org"]);
    desk.ostree("target", &["remote", "gpg-import", "--keyring=right.gpg", "origin"]);
    let unsigned = signed.commit("os", &[]);
    signed.sign("os", &["right"]);
    let second = signed.sign("os", &["right"]);
    desk.run("pack --force ostree:source --depth 1 -o os.sealift");
    signed.is_taken("--remote origin", "remotes/origin/os", &second);
    desk.ostree("target", &["refs", "--delete", "origin:os"]);
    desk.run("pack --force ostree:source --depth 2 -o os.sealift");
    let why = format!("refused commit {unsigned} as origin:os: the remote requires a GPG signature");
    signed.is_refused("--remote origin", &why);
    let pull = |depth| ["--remote=origin", "--gpg-verify", depth, "source", &second];
    assert!(signed.does_libostree_pull(&pull("--depth=1")) && !signed.does_libostree_pull(&pull("--depth=2")));
    signed.is_taken("", "heads/os", &second);
}
