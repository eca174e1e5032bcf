//! Which refs a repository takes, and from whom.

use std::fs;
use std::process::Command;

use crate::desk::{Desk, noise, write};

/// A desk with keys, whose agent ends with it.
struct Signed {
    desk: Desk,
}

impl Drop for Signed {
    fn drop(&mut self) {
        let _ = self.gnupg("gpgconf").args(["--kill", "all"]).status();
    }
}

impl Signed {
    fn new() -> Self {
        let desk = Desk::new();
        fs::create_dir(desk.path("keys")).expect("a folder");
        Self { desk }
    }

    fn gnupg(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("GNUPGHOME", self.desk.path("keys")).current_dir(self.desk.path(""));
        command
    }

    fn gpg(&self, line: &str) {
        let output = self.gnupg("gpg").args(["--batch", "--quiet", "--passphrase", ""]).args(line.split(' ')).output();
        let output = output.expect("gnupg is installed");
        assert!(output.status.success(), "gpg {line}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// Makes a key, and a keyring of its name.
    fn make_key(&self, name: &str) {
        // It is old enough to have expired.
        self.gpg(&format!("--faked-system-time 20200101T000000 --quick-gen-key {name} ed25519 sign never"));
        self.gpg(&format!("--output {name}.gpg --export {name}"));
    }

    fn fingerprint(&self, key: &str) -> String {
        let output = self.gnupg("gpg").args(["--batch", "--list-keys", "--with-colons", key]).output();
        let text = String::from_utf8(output.expect("gnupg is installed").stdout).expect("it is ASCII");
        let line = text.lines().find(|line| line.starts_with("fpr")).expect("there is the key");
        line.trim_matches(':').rsplit(':').next().expect("it has one").to_owned()
    }

    /// A commit that these keys sign is packed.
    fn sign(&self, reference: &str, keys: &[&str]) -> String {
        let keys: Vec<_> = keys.iter().map(|key| format!("--gpg-sign={}", self.fingerprint(key))).collect();
        let home = format!("--gpg-homedir={}", self.desk.path("keys").display());
        let more: Vec<&str> = keys.iter().chain([&home]).map(String::as_str).collect();
        self.commit(reference, &more)
    }

    fn commit(&self, reference: &str, more: &[&str]) -> String {
        let all = [&["--owner-uid=0", "--owner-gid=0"], more].concat();
        let commit = self.desk.commit("source", reference, "./tree", &all);
        self.desk.run(&format!("pack ostree:source --ref {reference} -o os.sealift"));
        commit
    }

    /// The target refuses the bundle, and is as it was.
    fn is_refused(&self, destination: &str, why: &str) {
        let before = self.desk.snapshot("target");
        for more in ["", " --dry-run"] {
            let said =
                self.desk.refused(&format!("unpack os.sealift ostree:target --allow-unsigned {destination}{more}"));
            assert!(said.contains(why), "{why}: {said}");
            self.desk.is_as(&before, "target", why);
        }
        self.desk.fsck("target");
    }

    fn is_taken(&self, destination: &str, name: &str, commit: &str) {
        self.desk.run(&format!("unpack os.sealift ostree:target --allow-unsigned {destination}"));
        let file = fs::read_to_string(self.desk.path("target/refs").join(name)).expect("there is the ref");
        assert_eq!(file.trim(), commit);
        self.desk.fsck("target");
    }

    /// What libostree does with the same commit and keys.
    fn does_libostree_take(&self, commit: &str) -> bool {
        let args = ["pull-local", "--remote=origin", "--gpg-verify", "source", commit];
        self.desk.init("judge", "archive");
        self.desk.ostree("judge", &["remote", "add", "origin", "https://example.org"]);
        let keyring = self.desk.path("target/origin.trustedkeys.gpg");
        if keyring.exists() {
            fs::copy(keyring, self.desk.path("judge/origin.trustedkeys.gpg")).expect("there is room");
        }
        let taken = self.desk.try_ostree("judge", &args).is_ok();
        fs::remove_dir_all(self.desk.path("judge")).expect("it can be removed");
        taken
    }
}

fn make_tree(desk: &Desk) {
    fs::create_dir(desk.path("tree")).expect("a folder");
    write(&desk.path("tree/file"), 0o644, &noise(1, 10_000));
}

#[test]
fn signatures() {
    let signed = Signed::new();
    let desk = &signed.desk;
    make_tree(desk);
    for key in ["right", "wrong"] {
        signed.make_key(key);
    }
    desk.init("source", "archive");
    desk.init("target", "bare-user-only");
    let first = signed.sign("os", &["right"]);
    signed.is_refused("--remote origin", "the repository has no such remote");
    desk.ostree("target", &["remote", "add", "origin", "https://example.org"]);
    let keyring = desk.path("target/origin.trustedkeys.gpg");
    let trust = |name: &str| fs::copy(desk.path(name), &keyring).expect("there is room");

    signed.is_refused("--remote origin", "no key of the remote's has signed it");
    assert!(!signed.does_libostree_take(&first));
    trust("wrong.gpg");
    signed.is_refused("--remote origin", "no key of the remote's has signed it");
    assert!(!signed.does_libostree_take(&first));
    fs::remove_file(&keyring).expect("it is there");
    desk.ostree("target", &["remote", "gpg-import", "--keyring=right.gpg", "origin"]);
    signed.is_taken("--remote origin", "remotes/origin/os", &first);
    assert!(signed.does_libostree_take(&first));

    let unsigned = signed.commit("os", &[]);
    signed.is_refused("--remote origin", "it has none");
    assert!(!signed.does_libostree_take(&unsigned));
    let other = signed.sign("os", &["wrong"]);
    signed.is_refused("--remote origin", "no key of the remote's has signed it");
    assert!(!signed.does_libostree_take(&other));
    let both = signed.sign("os", &["wrong", "right"]);
    signed.is_taken("--remote origin", "remotes/origin/os", &both);
    assert!(signed.does_libostree_take(&both));

    // A signature of another commit, and one that is damaged.
    let transplanted = signed.commit("os", &[]);
    let beside = |commit: &str| desk.path(&format!("source/objects/{}/{}.commitmeta", &commit[..2], &commit[2..]));
    let good = fs::read(beside(&first)).expect("it is signed");
    fs::write(beside(&transplanted), &good).expect("there is room");
    desk.run("pack ostree:source -o os.sealift");
    signed.is_refused("--remote origin", "no key of the remote's has signed it");
    assert!(!signed.does_libostree_take(&transplanted));
    desk.ostree("source", &["refs", "--force", "--create=os", &first]);
    let mut damaged = good.clone();
    let middle = good.len() / 2;
    damaged[middle] ^= 1;
    fs::write(beside(&first), damaged).expect("there is room");
    desk.run("pack ostree:source -o os.sealift");
    signed.is_refused("--remote origin", "no key of the remote's has signed it");
    assert!(!signed.does_libostree_take(&first));

    // Keys that count for all remotes count for those that have none of their own.
    fs::write(beside(&first), good).expect("there is room");
    desk.run("pack ostree:source -o os.sealift");
    fs::create_dir(desk.path("shared")).expect("a folder");
    fs::rename(desk.path("right.gpg"), desk.path("shared/right.gpg")).expect("it can be moved");
    trust("wrong.gpg");
    signed.is_refused("--remote origin", "no key of the remote's has signed it");
    assert!(!signed.does_libostree_take(&first));
    fs::remove_file(&keyring).expect("it can be removed");
    signed.is_taken("--remote origin", "remotes/origin/os", &first);
    assert!(signed.does_libostree_take(&first));

    desk.ostree("source", &["refs", "--force", "--create=os", &transplanted]);
    desk.run("pack ostree:source -o os.sealift");
    desk.ostree("target", &["config", "set", "remote \"origin\".gpg-verify", "false"]);
    signed.is_taken("--remote origin", "remotes/origin/os", &transplanted);
    desk.ostree("target", &["config", "set", "remote \"origin\".sign-verify", "ed25519"]);
    signed.is_refused("--remote origin", "sign-verify=ed25519");
    signed.is_taken("", "heads/os", &transplanted);
}

/// Whom the remote trusted once it may trust no more.
#[test]
fn keys_that_ended() {
    let signed = Signed::new();
    let desk = &signed.desk;
    make_tree(desk);
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
        signed.is_refused("--remote origin", "no key of the remote's has signed it");
        fs::copy(desk.path(&format!("{key}.gpg")), &keyring).expect("there is room");
        assert!(signed.does_libostree_take(&commit), "{key}");
        signed.is_taken("--remote origin", "remotes/origin/os", &commit);
    }
}

#[test]
fn bindings() {
    let signed = Signed::new();
    let desk = &signed.desk;
    make_tree(desk);
    desk.ostree("source", &["init", "--mode=archive", "--collection-id=org.example.Os"]);
    desk.init("target", "archive");
    for (remote, collection) in [("same", "org.example.Os"), ("other", "org.example.Other")] {
        let collection = format!("--collection-id={collection}");
        desk.ostree("target", &["remote", "add", "--no-gpg-verify", &collection, remote, "https://example.org"]);
    }
    let bound = signed.commit("os", &[]);
    signed.is_taken("", "heads/os", &bound);
    signed.is_taken("--remote same", "remotes/same/os", &bound);
    signed.is_refused("--remote other", "it is of the collection org.example.Os, and org.example.Other is asked for");
    signed.is_taken("--mirror", "mirrors/org.example.Os/os", &bound);

    // The commit of one ref under the name of another.
    desk.ostree("source", &["refs", "--create=other", "os"]);
    desk.run("pack ostree:source --ref other -o os.sealift");
    for destination in ["", "--remote same", "--mirror"] {
        signed.is_refused(destination, "it is bound to os");
    }
    // Bound to no ref, it may have any name; but not of a collection.
    let free = signed.commit("free", &["--no-bindings"]);
    signed.is_taken("", "heads/free", &free);
    signed.is_refused("--remote same", "it is of the collection none, and org.example.Os is asked for");
    signed.is_refused("--mirror", "it is of the collection none, and org.example.Os is asked for");
    // A mirror's collection is the bundle's word, which the commit has to agree with.
    desk.ostree("source", &["config", "set", "core.collection-id", "org.example.Other"]);
    desk.run("pack ostree:source --ref os -o os.sealift");
    signed.is_refused("--mirror", "it is of the collection org.example.Os, and org.example.Other is asked for");
}

/// Several refs in one bundle: all, or those that are asked for; none if one is refused.
#[test]
fn several() {
    let signed = Signed::new();
    let desk = &signed.desk;
    make_tree(desk);
    desk.init("source", "bare-user");
    let mut commits = Vec::new();
    for (number, reference) in ["os/a", "os/b", "c"].iter().enumerate() {
        write(&desk.path(&format!("tree/of-{number}")), 0o644, &noise(number, 3000));
        commits.push(signed.commit(reference, &["--add-detached-metadata-string=note=beside"]));
    }
    desk.run("pack ostree:source -o all.sealift");
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

    // One that is bound to another name keeps all of them out.
    desk.ostree("source", &["refs", "--create=alias", "c"]);
    desk.run("pack ostree:source -o os.sealift");
    desk.init("fresh", "archive");
    let before = desk.snapshot("fresh");
    desk.refused("unpack os.sealift ostree:fresh --allow-unsigned");
    desk.is_as(&before, "fresh", "one ref is refused");
    desk.run("unpack os.sealift ostree:fresh --allow-unsigned --ref c");
    desk.fsck("fresh");
}

/// A name that is a file cannot be a directory, and is not to be found out when other refs are written.
#[test]
fn names_in_the_way() {
    let signed = Signed::new();
    let desk = &signed.desk;
    make_tree(desk);
    desk.init("source", "archive");
    for reference in ["a", "os/main", "z"] {
        signed.commit(reference, &["--no-bindings"]);
    }
    desk.run("pack ostree:source -o os.sealift");
    for there in ["os", "z/main"] {
        desk.init("target", "archive");
        desk.commit("target", there, "./tree", &[]);
        signed.is_refused("", "beside what is, or would be, \"refs/heads/");
        fs::remove_dir_all(desk.path("target")).expect("it can be removed");
    }
    desk.run("pack os=ostree:source --ref a -o a.sealift");
    desk.init("target", "archive");
    desk.import("a.sealift", "target");
    assert_eq!(desk.ostree("target", &["refs"]).trim(), "os");
    desk.init("second", "archive");
    signed.desk.commit("second", "os", "./tree", &["--no-bindings"]);
    desk.run("pack ostree:source ostree:second -o os.sealift");
    fs::remove_dir_all(desk.path("target")).expect("it can be removed");
    desk.init("target", "archive");
    signed.is_refused("", "would be, \"refs/heads/os\"");
}
