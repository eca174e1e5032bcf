//! Where the keys of a remote are found: libostree's program accepts and refuses the same commits as sealift.

use std::fs;
use std::os::unix::fs::symlink;

use crate::commitmeta::commitmeta;
use crate::signed::Signed;

#[test]
fn key_paths() {
    let signed = Signed::new();
    let desk = &signed.desk;
    for key in ["right", "wrong"] {
        signed.make_key(key);
        signed.gpg(&format!("--armor --output {key}.asc --export {key}"));
    }
    signed.gpg("--armor --output both.asc --export");
    desk.init("source", "archive");
    desk.init("target", "archive");
    let commit = signed.sign("os", &["right"]);
    desk.ostree("target", &["remote", "add", "origin", "https://example.org"]);

    let read = |name: &str| fs::read_to_string(desk.path(name)).expect("it is ASCII");
    let (right, wrong) = (read("right.asc"), read("wrong.asc"));
    let sum = right.lines().find(|line| line.starts_with('=')).expect("gpg writes a checksum").to_owned();
    for folder in ["mixed", "links", "nested/folder", "none"] {
        fs::create_dir_all(desk.path(folder)).expect("a folder");
    }
    for (name, text) in [
        ("two.asc", format!("{wrong}{right}")),
        ("remark.asc", format!("these are keys\n{right}")),
        ("lines.asc", right.replace('\n', " \r\n")),
        ("headers.asc", right.replacen('\n', "\nVersion: 1\nComment: of the desk\n", 1)),
        ("no-sum.asc", right.replace(&format!("{sum}\n"), "")),
        ("wrong-sum.asc", right.replace(&sum, "=AAAA")),
        // Cut within the key: what lacks only its end, GnuPG 2.4 takes.
        ("damaged.asc", right[..80].to_owned()),
        ("empty", String::new()),
        ("junk", "junk\n".into()),
        ("mixed/junk", "junk\n".into()),
        ("mixed/no-suffix", right.clone()),
        ("nested/folder/right.asc", right.clone()),
    ] {
        fs::write(desk.path(name), text).expect("there is room");
    }
    symlink("../right.asc", desk.path("links/right.asc")).expect("a link");
    symlink("right.asc", desk.path("to-file")).expect("a link");
    symlink("mixed", desk.path("to-folder")).expect("a link");

    let path = |name: &str| desk.path(name).display().to_string();
    let list = |separator: &str| ["wrong.asc", "right.gpg"].map(path).join(separator);
    let is_unread = "cannot read gpgkeypath";
    let alone = |names: &[&str], why| names.iter().map(|name| (path(name), why)).collect::<Vec<_>>();
    let taken =
        ["right.gpg", "right.asc", "both.asc", "two.asc", "remark.asc", "lines.asc", "headers.asc", "no-sum.asc"];
    let without = ["wrong.gpg", "wrong.asc", "none", "links", "nested"];
    let others = [
        (list(";"), None),
        (list(","), None),
        (format!("{};", path("right.asc")), None),
        ("right.asc".into(), None),
        (format!("{};;{}", path("right.asc"), path("wrong.asc")), Some(is_unread)),
        (format!("{},{};", path("right.asc"), path("wrong.asc")), Some("semicolons and commas")),
    ];
    let cases = [
        alone(&taken, None),
        alone(&["mixed", "to-file"], None),
        alone(&without, Some("no key of the remote signed it")),
        alone(&["wrong-sum.asc", "damaged.asc", "empty", "junk", "keys/pubring.kbx"], Some("no keys found in")),
        alone(&["missing", "to-folder"], Some(is_unread)),
        others.to_vec(),
    ]
    .concat();
    for (paths, why) in &cases {
        desk.ostree("target", &["config", "set", "remote \"origin\".gpgkeypath", paths]);
        assert_eq!(signed.does_libostree_take(&commit), why.is_none(), "{paths}");
        match why {
            None => signed.is_taken("--remote origin", "remotes/origin/os", &commit),
            Some(why) => signed.is_refused("--remote origin", why),
        }
    }
}

/// Keys that a path names count in addition to those of the remote's keyring; the shared keyrings count only if the remote has none.
#[test]
fn key_paths_and_keyrings() {
    let signed = Signed::new();
    let desk = &signed.desk;
    ["right", "wrong"].into_iter().for_each(|key| signed.make_key(key));
    signed.gpg("--armor --output armored.gpg --export right");
    desk.init("source", "archive");
    desk.init("target", "archive");
    let commit = signed.sign("os", &["right"]);
    desk.ostree("target", &["remote", "add", "origin", "https://example.org"]);
    fs::create_dir(desk.path("shared")).expect("a folder");
    fs::write(desk.path("empty"), "").expect("there is room");
    fs::write(desk.path("junk"), "junk\n").expect("there is room");
    let keyring = desk.path("target/origin.trustedkeys.gpg");
    let (none, own) =
        (|| (), |name: &'static str| fs::copy(desk.path(name), &keyring).map(|_| ()).expect("there is room"));
    let shared = |name: &str| desk.path("shared").join(name);
    let share = |from: &str, name: &str| fs::copy(desk.path(from), shared(name)).map(|_| ()).expect("there is room");
    let link = || symlink("../right.gpg", shared("link.gpg")).expect("a link");
    let cases: [(&str, &dyn Fn(), bool); 16] = [
        ("right.gpg", &|| own("junk"), false),
        ("right.gpg", &|| own("armored.gpg"), false),
        ("right.gpg", &|| own("empty"), true),
        ("right.gpg", &|| own("keys/pubring.kbx"), true),
        ("right.gpg", &|| share("junk", "any.gpg"), false),
        ("right.gpg", &|| own("wrong.gpg"), true),
        ("wrong.gpg", &|| own("right.gpg"), true),
        ("wrong.gpg", &|| own("armored.gpg"), false),
        ("wrong.gpg", &|| own("keys/pubring.kbx"), true),
        ("wrong.gpg", &none, false),
        ("wrong.gpg", &|| share("right.gpg", "any.gpg"), true),
        ("wrong.gpg", &|| (own("empty"), share("right.gpg", "any.gpg")).1, false),
        ("wrong.gpg", &|| share("right.gpg", "any.asc"), false),
        ("wrong.gpg", &|| share("right.gpg", "trustdb.gpg"), false),
        ("wrong.gpg", &|| share("armored.gpg", "any.gpg"), false),
        ("wrong.gpg", &link, false),
    ];
    for (number, (path, prepare, is_good)) in cases.iter().enumerate() {
        let path = desk.path(path).display().to_string();
        desk.ostree("target", &["config", "set", "remote \"origin\".gpgkeypath", &path]);
        let _ = fs::remove_file(&keyring);
        fs::remove_dir_all(desk.path("shared")).and_then(|()| fs::create_dir(desk.path("shared"))).expect("it is ours");
        prepare();
        assert_eq!(signed.does_libostree_take(&commit), *is_good, "{number}");
        if *is_good {
            signed.is_taken("--remote origin", "remotes/origin/os", &commit);
        } else {
            signed.is_refused("--remote origin", "no key of the remote signed it");
        }
    }
}

/// Several signatures are judged together, and so are invalid ones.
#[test]
fn lists_of_signatures() {
    let signed = Signed::new();
    let desk = &signed.desk;
    ["right", "wrong"].into_iter().for_each(|key| signed.make_key(key));
    desk.init("source", "archive");
    desk.init("target", "archive");
    desk.ostree("target", &["remote", "add", "origin", "https://example.org"]);
    fs::copy(desk.path("right.gpg"), desk.path("target/origin.trustedkeys.gpg")).expect("there is room");
    let commit = signed.commit("os", &[]);
    let object = format!("source/objects/{}/{}.commit", &commit[..2], &commit[2..]);
    fs::write(desk.path("another"), "another").expect("there is room");
    for (name, key, of) in [("right", "right", &*object), ("wrong", "wrong", &object), ("other", "right", "another")] {
        signed.gpg(&format!("--local-user {key} --output {name}.sig --detach-sign {of}"));
    }
    let read = |name: &str| fs::read(desk.path(name)).expect("gpg wrote it");
    let [right, wrong, other] = ["right.sig", "wrong.sig", "other.sig"].map(read);
    let both = [&wrong[..], &right].concat();
    let lists: [(&[&[u8]], bool); 12] = [
        (&[&right], true),
        (&[&wrong], false),
        (&[&other], false),
        (&[&right, &wrong], true),
        (&[&wrong, &right], true),
        (&[&both], true),
        (&[&right, &other], true),
        (&[&other, &right], false),
        (&[&right, b"junk"], false),
        (&[b"junk", &right], false),
        (&[b"", &right], true),
        (&[b""], false),
    ];
    for (number, (list, is_good)) in lists.iter().enumerate() {
        let beside = commitmeta("ostree.gpgsigs", b"aay", list);
        fs::write(desk.path(&format!("{object}meta")), beside).expect("there is room");
        desk.run("pack --force ostree:source -o os.sealift");
        assert_eq!(signed.does_libostree_take(&commit), *is_good, "{number}");
        if *is_good {
            signed.is_taken("--remote origin", "remotes/origin/os", &commit);
        } else {
            signed.is_refused("--remote origin", "no key of the remote signed it");
        }
    }
}
