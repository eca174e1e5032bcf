//! Changes to this device's trust: `trust add`, `trust revoke` and `trust export`.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::process::{Output, Stdio};

use sealift::trust::{GivenKey, TrustOptions, TrustPaths, Withdrawn, add_signer, export_signers, revoke_key};

use crate::keyring::{Keyring, options};

impl Keyring {
    /// Runs `sealift trust` with the files of this folder.
    fn edit(&self, arguments: &[&str], input: &[u8]) -> Output {
        let mut run = self.command("trust");
        let mut run = run.args(arguments).stdin(Stdio::piped()).spawn().expect("it runs");
        let _ = run.stdin.take().expect("a pipe").write_all(input); // not all arguments read it
        run.wait_with_output().expect("it ends")
    }

    fn edited(&self, arguments: &[&str]) -> String {
        let done = self.edit(arguments, b"");
        assert!(done.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).expect("text")
    }

    /// Returns the message of a run that must end with exit status 2.
    fn refused(&self, arguments: &[&str]) -> String {
        let done = self.edit(arguments, b"");
        assert_eq!(done.status.code(), Some(2), "{arguments:?}");
        let said = String::from_utf8(done.stderr).expect("text");
        said.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    fn fingerprint(&self, key: &str) -> String {
        self.public_key(key).id().to_string()
    }
}

/// Makes keys that are not trusted yet.
fn desk(keys: &[&str]) -> Keyring {
    let desk = Keyring::new();
    for key in keys {
        desk.make_ssh_key(key, &["-t", "ed25519"]);
    }
    desk
}

#[test]
fn openssh_reads_what_is_written() {
    let desk = desk(&["one", "two"]);
    desk.edited(&["add", "os,app-*", "one.pub", "--trust", "signers"]);
    desk.write("message", "hello");
    desk.ssh_keygen(&["-q", "-Y", "sign", "-n", "sealift", "-f", "one", "message"]);
    let verifies = |more: &[&str]| {
        let usual = ["-Y", "verify", "-f", "signers", "-I", "os", "-n", "sealift", "-s", "message.sig"];
        let message = fs::File::open(desk.path("message")).expect("it was written");
        desk.run_with("ssh-keygen", &[&usual, more].concat(), message.into())
    };
    assert!(verifies(&[]));
    assert!(desk.run("ssh-keygen", &["-Y", "find-principals", "-f", "signers", "-s", "message.sig"]));
    assert!(!desk.run("ssh-keygen", &["-Y", "verify", "-f", "signers", "-I", "os", "-n", "git", "-s", "message.sig"]));

    let lists = ["--trust", "signers", "--revoked", "revoked"];
    desk.edited(&[&["revoke", "two.pub"], &lists[..]].concat());
    assert!(verifies(&["-r", "revoked"]), "another key was revoked");
    let said = desk.edited(&[&["revoke", "one.pub"], &lists[..]].concat());
    assert!(said.contains("line 1 of the allowed signers no longer counts"), "{said}");
    assert!(!verifies(&["-r", "revoked"]));
    assert!(!desk.run("ssh-keygen", &["-Q", "-f", "revoked", "one.pub"]));
    assert_eq!(desk.text("revoked"), desk.text("two.pub") + &desk.text("one.pub"));
}

#[test]
fn a_bundle_is_taken_until_its_key_is_revoked() {
    let desk = desk(&["one"]);
    let bundle = desk.signed(1, &["one"]);
    let given = GivenKey::read(&desk.path("one.pub")).expect("a public key");
    let usual = TrustOptions::default();
    assert!(desk.judge(&options(), &bundle).is_err());
    let added = add_signer(&usual, &desk.places(), "os", &given).expect("it is added");
    assert_eq!((added.path, added.line), (desk.path("config/allowed_signers"), 1));
    desk.judge(&options(), &bundle).expect("it is trusted now");
    let by_id = Withdrawn::Id(given.key.id());
    let revoked = revoke_key(&usual, &desk.places(), &by_id).expect("the allowed signers have the key");
    assert_eq!((revoked.path, revoked.lines), (desk.path("config/revoked"), vec![1]));
    assert!(desk.judge(&options(), &bundle).is_err());
    assert!(export_signers(&usual, &desk.places(), None).expect("they can be read").is_empty());
}

#[test]
fn what_stood_in_a_file_stays() {
    let desk = desk(&["one", "two", "three"]);
    // With lines for other purposes, unusual spaces, and a last line without its line feed.
    let before = format!("# ours\r\n\n\tme  namespaces=\"git\"   {}# the end", desk.text("one.pub"));
    let real = desk.written("real", &before);
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).expect("it is ours");
    symlink("real", desk.path("signers")).expect("a link");
    desk.write(".real.new", "what a killed run left");
    desk.edited(&["add", "os", "one.pub", "--trust", "signers"]);
    let line = format!("os namespaces=\"sealift\" {}", desk.text("one.pub"));
    assert_eq!(desk.text("real"), format!("{before}\n{line}"));
    let metadata = fs::symlink_metadata(desk.path("signers")).expect("it is there");
    assert!(metadata.is_symlink(), "a link stays one");
    assert_eq!(fs::metadata(&real).expect("it is there").permissions().mode() & 0o777, 0o640);

    let piped = desk.edit(&["add", "os", "-", "--trust", "signers"], desk.text("two.pub").as_bytes());
    assert!(piped.status.success());
    desk.edited(&["add", "app", desk.text("three.pub").trim(), "--trust", "signers", "--quiet"]);
    assert!(desk.text("real").starts_with(&format!("{before}\n{line}os ")));
    let mut left = fs::read_dir(desk.path(".")).expect("a folder").filter_map(Result::ok);
    assert!(!left.any(|entry| entry.file_name().to_string_lossy().ends_with(".new")));

    let exported = desk.edited(&["export", "os", "--trust", "signers"]);
    assert_eq!(exported, format!("{line}os namespaces=\"sealift\" {}", desk.text("two.pub")));
    let all = desk.edited(&["export", "--trust", "signers"]);
    assert_eq!(all, format!("{exported}app namespaces=\"sealift\" {}", desk.text("three.pub")));
}

#[test]
fn what_would_change_nothing_changes_nothing_and_too_much_is_refused() {
    let desk = desk(&["one", "two"]);
    let lists = ["--trust", "signers", "--revoked", "revoked"];
    let refused = |arguments: &[&str]| desk.refused(&[arguments, &lists[..]].concat());
    desk.edited(&["add", "os,app-*", "one.pub", "--trust", "signers"]);
    desk.edited(&[&["revoke", "two.pub"], &lists[..]].concat());
    let before = [desk.text("signers"), desk.text("revoked")];
    let again = |arguments: &[&str]| desk.edited(&[arguments, &lists[..]].concat());
    for names in ["os,app-*", "os", "app-x"] {
        let said = again(&["add", names, "one.pub"]);
        assert!(said.starts_with("signers: already has line 1\n"), "{said}");
    }
    assert!(again(&["add", "os", "one.pub", "--json"]).contains("\"line\":1,\"principals\":\"os\""));
    assert!(again(&["add", "os", "one.pub", "--json"]).ends_with("\"unchanged\":true}\n"));
    assert!(again(&["revoke", "two.pub"]).contains(" is already revoked\n"));
    assert!(again(&["revoke", &desk.fingerprint("two"), "--json"]).ends_with("\"unchanged\":true}\n"));
    let said = refused(&["add", "os", "one"]);
    assert!(said.contains("one is a private key: give the public key, as in one.pub"), "{said}");
    assert!(refused(&["revoke", "one"]).contains("is a private key"));
    assert!(refused(&["add", "os", "two.pub"]).contains("is revoked by revoked"));
    let unknown = refused(&["revoke", "SHA256:n4bQgYhMfWWaL+qgxVrQFaO/TxsrC4Is0V1sFbDwCgg"]);
    assert!(unknown.contains("give the public key"), "{unknown}");
    for names in ["", "o s", "os namespaces=\"*\"", "#os", "\"os\"", "os,", "!os", "os\nx"] {
        let said = refused(&["add", names, "two.pub"]);
        assert!(said.contains("is neither a name") || said.contains("only excludes"), "{names:?}: {said}");
    }
    desk.write("both", desk.text("one.pub") + &desk.text("two.pub"));
    for file in ["both", "message", "none", "SHA256:abc"] {
        desk.write("message", "hello");
        refused(&["revoke", file]);
        refused(&["add", "os", file]);
    }
    assert_eq!(before, [desk.text("signers"), desk.text("revoked")]);

    // A line that ends some day is not what is asked for.
    let timed = desk.text("signers").replace("namespaces=", "valid-before=\"20990101\",namespaces=");
    desk.write("timed", &timed);
    let said = desk.refused(&["add", "os", "one.pub", "--trust", "timed"]);
    assert!(said.contains("line 1 of timed already allows this key to sign \"os\", for a limited time"), "{said}");
    assert_eq!(desk.text("timed"), timed);

    // A malformed file is not changed, and refused or reading runs do not create missing files that options name.
    let broken = desk.written("broken", "os\n");
    assert!(desk.refused(&["add", "os", "one.pub", "--trust", "broken"]).contains("line 1 of the allowed signers"));
    assert_eq!(fs::read(broken).expect("it is there"), b"os\n");
    desk.refused(&["add", "os", "one.pub", "--trust", "new", "--revoked", "absent"]);
    desk.refused(&["export", "--trust", "new"]);
    fs::create_dir(desk.path("folder")).expect("a folder");
    assert!(desk.refused(&["add", "os", "one.pub", "--trust", "folder"]).contains("is not a regular file"));
    assert!(!desk.path("new").exists() && !desk.path("absent").exists());
}

#[test]
fn a_binary_list_stays_one() {
    let desk = desk(&["one", "two", "three", "four"]);
    desk.write("signers", "");
    desk.ssh_keygen(&["-q", "-k", "-f", "krl", "-z", "7", "one.pub"]);
    let before = fs::read(desk.path("krl")).expect("it was made");
    let lists = ["--trust", "signers", "--revoked", "krl"];
    desk.edited(&[&["revoke", "two.pub"], &lists[..]].concat());
    desk.edited(&[&["revoke", &desk.fingerprint("three")], &lists[..]].concat());
    assert!(fs::read(desk.path("krl")).expect("it is there").starts_with(&before));
    for (key, counts) in [("one", false), ("two", false), ("three", false), ("four", true)] {
        assert_eq!(desk.run("ssh-keygen", &["-Q", "-f", "krl", &format!("{key}.pub")]), counts, "{key}");
    }
    let before = fs::read(desk.path("krl")).expect("it is there");
    assert!(desk.edited(&[&["revoke", "three.pub"], &lists[..]].concat()).contains(" is already revoked"));
    assert_eq!(fs::read(desk.path("krl")).expect("it is there"), before);
}

#[test]
fn the_folder_that_decides_is_changed() {
    let desk = desk(&["one", "two"]);
    let [one, two] = ["one.pub", "two.pub"].map(|name| GivenKey::read(&desk.path(name)).expect("a public key"));
    let usual = TrustOptions::default();
    let places = TrustPaths {
        user_config: Some(desk.path("home/.config/sealift")),
        system_config: desk.path("etc/sealift"),
        state: None,
    };
    // No file exists: a user's first line goes into a file of their own.
    fs::create_dir_all(desk.path("etc")).expect("a folder");
    let added = add_signer(&usual, &places, "os", &one).expect("the folder is made");
    assert_eq!(added.path, desk.path("home/.config/sealift/allowed_signers"));
    let mode = |path: &str| fs::metadata(desk.path(path)).expect("it is there").permissions().mode() & 0o777;
    assert_eq!(mode("home/.config/sealift/allowed_signers"), 0o644);
    assert_eq!(mode("home/.config/sealift") & 0o022, 0, "nobody else may write there");
    // If the system has any of the files, a file of the user's own would make them ineffective, so the line goes there.
    fs::remove_dir_all(desk.path("home")).expect("it is ours");
    fs::create_dir_all(desk.path("etc/sealift")).expect("a folder");
    desk.write("etc/sealift/revoked", "");
    let added = add_signer(&usual, &places, "os", &one).expect("it is added");
    assert_eq!(added.path, desk.path("etc/sealift/allowed_signers"));
    let revoked = revoke_key(&usual, &places, &Withdrawn::Key(two)).expect("it is revoked");
    assert_eq!(revoked.path, desk.path("etc/sealift/revoked"));
    assert!(!desk.path("home").exists());
}

#[test]
fn runs_at_once_lose_nothing() {
    let desk = desk(&["one", "two", "three", "four"]);
    std::thread::scope(|scope| {
        for key in ["one.pub", "two.pub", "three.pub", "four.pub"] {
            let desk = &desk;
            scope.spawn(move || desk.edited(&["add", "os", key, "--trust", "signers"]));
        }
    });
    assert_eq!(desk.text("signers").lines().count(), 4);
}
