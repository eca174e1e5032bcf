//! `-o`: existing files are not replaced without being asked to, and output in the packed tree is not packed.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::process::Command;

use sealift_desk::{noise, outcome, said, told};

const RELEASE: &str = "--name os --bundle-version 7 --key release";

#[test]
fn what_is_there_stays_without_force() {
    let desk = crate::new_desk();
    desk.good(&format!("pack os -o os.sealift {RELEASE}"));
    let before = desk.read("os.sealift");
    desk.refused("pack os -o os.sealift", 2, "os.sealift already exists: use --force to replace it");
    desk.refused(
        "pack os -o os.sealift --json",
        2,
        r#"{"error":{"kind":"exists","message":"os.sealift already exists"#,
    );
    desk.refused("request os -o os.sealift", 2, "already exists");
    assert_eq!(desk.read("os.sealift"), before);
    // A signed bundle is replaced by a signed one with other content: there is nothing to warn about.
    desk.write("os/hello", "changed");
    assert!(!desk.good(&format!("pack os -o os.sealift {RELEASE} --force")).contains("warning"));
    let said = desk.good("pack os -o os.sealift --force --quiet");
    assert!(said.contains("warning: replacing os.sealift, a signed bundle (os version 7), with an unsigned one"));
    // An unsigned bundle is replaced without a warning.
    assert_eq!(desk.good("pack os -o os.sealift --force --quiet"), "");
    // Refused runs leave no files.
    assert!(!desk.names("").iter().any(|name| name.contains("partial")));
}

/// Several jobs write the same file with --force: it may appear while one of them is packing.
#[test]
fn force_replaces_what_appears_meanwhile() {
    let desk = crate::new_desk();
    let done = Command::new("mkfifo").arg(desk.path("pipe")).status().unwrap();
    assert!(done.success());
    let mut pack = desk.command("pack tar:pipe -o os.sealift --name os --bundle-version 7 --force --quiet");
    let pack = pack.spawn().unwrap();
    let pipe = fs::File::create(desk.path("pipe")).unwrap(); // waits until it is read
    desk.good("pack os -o os.sealift --quiet");
    tar::Builder::new(pipe).into_inner().unwrap();
    assert_eq!(outcome(&pack.wait_with_output().unwrap()), (Some(0), String::new()));
    assert!(desk.good("info os.sealift --json").contains(r#""version":7"#));
}

#[test]
fn a_pipe_gets_the_bytes_of_a_file() {
    let desk = crate::new_desk();
    let fixed = |line: &str| {
        let done = desk.command(line).output().unwrap();
        assert_eq!(done.status.code(), Some(0), "{}", said(&done));
        done.stdout
    };
    let how = format!("{RELEASE} --clamp-mtime --quiet");
    fixed(&format!("pack os -o file.sealift {how}"));
    assert!(fixed(&format!("pack os -o - {how}")) == desk.read("file.sealift"));
    desk.write("os/large", [7; 100_000]);
    let how = how.replace("--bundle-version 7", "--bundle-version 8 --base file.sealift --trust signers");
    fixed(&format!("pack os -o delta.sealift {how}"));
    assert!(fixed(&format!("pack os -o - {how}")) == desk.read("delta.sealift"));
}

/// A job is cancelled, or a terminal is closed.
#[test]
fn a_hangup_leaves_no_partial_output() {
    let desk = crate::new_desk();
    desk.write("os/large", noise(1, 30_000_000));
    let partials = || desk.names("").iter().filter(|name| name.ends_with("partial")).count();
    for (signal, status) in [("TERM", 143), ("HUP", 129)] {
        let pack = desk.command("pack os -o os.sealift --level 19 --quiet").spawn().unwrap();
        while partials() == 0 {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        let sent = Command::new("kill").args([&format!("-{signal}"), &pack.id().to_string()]).status().unwrap();
        assert!(sent.success());
        let (found, said) = outcome(&pack.wait_with_output().unwrap());
        assert!(found == Some(status) && said.contains("no partial output was left"), "{signal}: {found:?}: {said}");
        assert_eq!(partials(), 0, "{signal}");
    }
}

#[test]
fn content_is_not_written_to_a_closed_standard_output() {
    let desk = crate::new_desk();
    desk.good(&format!("pack os -o os.sealift {RELEASE}"));
    desk.write("a.order", "hello");
    desk.good("pack os -o ordered.sealift --order a.order");
    for line in [
        "pack os -o - --name os",
        "sign os.sealift -o - --key release",
        "request os -o -",
        "root os.sealift",
        "cat os.sealift hello --trust signers",
        "order export ordered.sealift",
        "unpack os.sealift tar:- --trust signers",
    ] {
        let (status, said) = told(&mut desk.shell(&format!("sealift {line} >&-")));
        assert!(status == Some(2) && said.contains("standard output is closed"), "{line}: {status:?}: {said}");
        // Whoever wants to lose the content may.
        let (status, said) = told(&mut desk.shell(&format!("sealift {line} > /dev/null")));
        assert_eq!(status, Some(0), "{line}: {said}");
    }
}

#[test]
fn a_dry_run_ends_as_the_run_would_and_replaces_nothing() {
    let desk = crate::new_desk();
    desk.good(&format!("pack os -o os.sealift {RELEASE}"));
    let before = desk.read("os.sealift");
    let exists = "os.sealift already exists: use --force to replace it";
    desk.refused(&format!("pack os -o os.sealift {RELEASE} --dry-run"), 2, exists);
    desk.good(&format!("pack os -o os.sealift {RELEASE} --dry-run --force"));
    assert_eq!(desk.read("os.sealift"), before);
    desk.refused("pack os -o nowhere/os.sealift --dry-run", 2, "cannot write to nowhere: No such file");
    desk.good("pack os -o - --name os --dry-run");
}

#[test]
fn a_link_that_leads_nowhere_is_there() {
    let desk = crate::new_desk();
    std::os::unix::fs::symlink("nowhere", desk.path("b.sealift")).unwrap();
    desk.refused("pack os -o b.sealift", 2, "b.sealift already exists");
}

#[test]
fn a_bundle_in_the_packed_tree_is_not_packed() {
    let desk = crate::new_desk();
    desk.good("pack os -o os/os-7.sealift");
    desk.says("pack os -o os/os-8.sealift --quiet", "warning: excluded os-7.sealift in the output directory");
    desk.says("pack os -o os/os-8.sealift --force --quiet", "excluded os-7.sealift and 1 more bundle");
    assert_eq!(desk.good("ls os/os-8.sealift"), "hello\n");
    // Also under another name of the same folder.
    std::os::unix::fs::symlink("os", desk.path("link")).unwrap();
    desk.good("pack os -o link/os-9.sealift");
    assert_eq!(desk.good("ls os/os-9.sealift"), "hello\n");
    // If the bundle is written elsewhere, the whole tree is packed.
    desk.good("pack os -o all.sealift");
    assert_eq!(desk.good("ls all.sealift"), "hello\nos-7.sealift\nos-8.sealift\nos-9.sealift\n");
}

#[test]
fn a_terminal_gets_no_bundle() {
    let desk = crate::new_desk();
    for line in ["pack os -o - --name os", "request os -o -", "root os.sealift"] {
        let line = format!("{} {line}", env!("CARGO_BIN_EXE_sealift"));
        let (status, said) = told(desk.command_of("script").args(["-qec", &line, "/dev/null"]));
        assert!(
            status == Some(2) && said.contains("refusing to write binary data to a terminal"),
            "{line}: {status:?}: {said}"
        );
    }
}

#[test]
fn what_is_signed_says_what_it_is() {
    let desk = crate::new_desk();
    desk.refused("pack os -o b --key release", 2, "a signed bundle needs --name NAME and --bundle-version N");
    desk.refused("pack os -o b --key release --name os", 2, "a signed bundle needs --bundle-version N");
    desk.refused("pack os -o b --key release --bundle-version 7", 2, "a signed bundle needs --name NAME");
    desk.refused(&format!("pack os -o b {RELEASE} --key release"), 2, "is given twice");
    // SOURCE_DATE_EPOCH does not count as a version.
    let said = desk.good("pack os -o trial.sealift --json");
    assert!(said.contains(r#""name":"trial","version":0,"#), "{said}");

    desk.refused("sign trial.sealift --key release", 2, "with --name trial --bundle-version 0, or pack it again");
    desk.refused(
        "sign trial.sealift --key release --name os --bundle-version 7",
        2,
        "trial.sealift is trial version 0, which signing does not change",
    );
    desk.good("pack os -o os.sealift --name os --bundle-version 7");
    desk.good("sign os.sealift --key release --name os --bundle-version 7");
    // Later signers need not repeat name and version.
    desk.good("key generate -o second");
    desk.good("sign os.sealift --key second");
    desk.refused("sign os.sealift --key second --key second", 2, "is given twice");
}

#[test]
fn a_delta_is_above_its_base() {
    let desk = crate::new_desk();
    desk.good(&format!("pack os -o 7.sealift {RELEASE}"));
    desk.good("unpack 7.sealift seven --trust signers");
    desk.write("os/hello", "changed");
    for version in ["6", "7"] {
        for base in ["7.sealift", "seven"] {
            desk.refused(
                &format!("pack os -o d.sealift --name os --bundle-version {version} --base {base} --trust signers"),
                2,
                &format!("the base is version 7 of os, and this would be version {version}"),
            );
        }
    }
    desk.good("pack os -o d.sealift --name os --bundle-version 8 --base 7.sealift --trust signers");
}

/// A nightly job packs whatever is there.
#[test]
fn a_base_that_already_has_everything_ends_well() {
    let desk = crate::new_desk();
    desk.good(&format!("pack os -o 7.sealift {RELEASE}"));
    desk.good("unpack 7.sealift seven --trust signers");
    desk.good("request seven -o seven.request");
    for base in ["--base 7.sealift --trust signers", "--base seven", "--for seven.request"] {
        let line = format!("pack os -o d.sealift --name os --bundle-version 8 --key release {base}");
        let said = desk.good(&line);
        assert!(said.starts_with("d.sealift: not written, since nothing has changed since os version 7 ("), "{said}");
        for more in ["--json", "--json --dry-run"] {
            let said = desk.good(&format!("{line} {more}"));
            let dry = more.contains("dry");
            let start = format!(r#"{{"dry_run":{dry},"unchanged":true,"name":"os","version":8,"#);
            assert!(said.starts_with(&start), "{said}");
        }
        assert_eq!(desk.command(&line.replace("d.sealift", "-")).output().unwrap().stdout, b"");
        assert!(!desk.path("d.sealift").exists());
    }
    desk.write("os/hello", "changed");
    let line = "pack os -o d.sealift --name os --bundle-version 8 --key release --base seven --json";
    assert!(desk.good(line).starts_with(r#"{"dry_run":false,"unchanged":false,"name":"os","version":8,"#));
}

#[test]
fn a_delta_is_for_the_devices_of_its_base() {
    let desk = crate::new_desk();
    desk.good(&format!("pack os -o 7.sealift {RELEASE} --compatible b --compatible a"));
    desk.good("unpack 7.sealift seven --trust signers --compatible a");
    desk.good("pack os -o other.sealift --name os --bundle-version 7 --compatible c --key release --owner 7:7");
    desk.write("os/hello", "changed");
    let tags = |more: &str| {
        desk.good(&format!(
            "pack os -o d.sealift --name os --bundle-version 8 --key release --trust signers --force {more}"
        ));
        let info = desk.good("info d.sealift --json --trust signers");
        let (_, tags) = info.split_once(r#""compatible":"#).unwrap();
        tags.split_once(']').unwrap().0.to_owned() + "]"
    };
    for base in ["--base 7.sealift", "--base seven"] {
        assert_eq!(tags(base), r#"["a","b"]"#, "{base}");
        assert_eq!(tags(&format!("{base} --compatible c")), r#"["c"]"#, "{base}");
        assert_eq!(tags(&format!("{base} --any-device")), "[]", "{base}");
    }
    assert_eq!(tags(""), "[]");
    let two = "pack os -o x.sealift --name os --bundle-version 8 --trust signers --base 7.sealift --base other.sealift";
    desk.refused(two, 2, "the bases are for different devices");
    desk.good(&format!("{two} --any-device"));
}

#[test]
fn a_date_ahead_of_the_clock_is_said_before_it_is_signed() {
    let desk = crate::new_desk();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let at = |line: &str, ahead: u64| {
        let (status, said) = told(desk.command(line).env("SOURCE_DATE_EPOCH", (now + ahead).to_string()));
        assert_eq!(status, Some(0), "{line}: {said}");
        said
    };
    let ahead = "ahead of this machine's clock";
    assert!(!at(&format!("pack os -o soon.sealift {RELEASE}"), 80_000).contains(ahead));
    let said = at(&format!("pack os -o late.sealift {RELEASE}"), 3 * 86_400 + 60);
    assert!(said.contains("warning: the bundle is dated ") && said.contains("3 days ahead of this"), "{said}");
    assert!(!at("pack os -o later.sealift --name os --bundle-version 8", 500 * 86_400).contains(ahead), "unsigned");
    for line in ["sign later.sealift --key release --name os --bundle-version 8 -q", "root later.sealift"] {
        let said = String::from_utf8_lossy(&desk.command(line).output().unwrap().stderr).into_owned();
        assert!(said.contains("1 year ahead of this machine's clock"), "{line}: {said}");
    }
}

/// As docs/json.md says, `%` and two digits stand for a byte that JSON cannot hold, or that would change what is shown.
#[test]
fn json_has_names_that_can_be_read_back() {
    let desk = crate::new_desk();
    let annotation = "--annotate note=a\u{202e}b";
    desk.good(&format!("pack os -o os.sealift {RELEASE} {annotation}"));
    assert!(desk.good("info os.sealift --trust signers --json").contains(r#""note":"a%E2%80%AEb""#));
    let name = std::ffi::OsStr::from_bytes(b"t\xff\nx");
    let run = |before: &[&str], after: &[&str]| {
        let (status, said) = told(desk.command(before[0]).args(&before[1..]).arg(name).args(after));
        assert_eq!(status, Some(0), "{said}");
        said
    };
    run(&["unpack", "os.sealift"], &["--trust", "signers", "-q"]);
    for verb in ["audit", "status"] {
        let said = run(&[verb], &["--trust", "signers", "--json"]);
        assert!(said.contains(r#""target":"t%FF%0Ax""#), "{said}");
    }
}

#[test]
fn what_has_expired_is_not_packed() {
    let desk = crate::new_desk();
    desk.refused("pack os -o b.sealift --expires 2020-01-01", 2, "--expires 2020-01-01T00:00:00Z is in the past");
    // A date in digits is the date that valid-before would take, not a number of seconds.
    desk.refused("pack os -o b.sealift --expires 20200101", 2, "--expires 2020-01-01T00:00:00Z is in the past");
    desk.refused("pack os -o b.sealift --expires 202001311259", 2, "--expires 2020-01-31T12:59:00Z is in the past");
    desk.refused("pack os -o b.sealift --expires 20201301", 2, "\"20201301\" is not a time such as");
    // To rebuild an old bundle, its creation time is given.
    let mut again = desk.command("pack os -o b.sealift --expires 2020-01-01");
    assert!(again.env("SOURCE_DATE_EPOCH", "1500000000").output().unwrap().status.success());
}

#[test]
fn a_signed_copy_goes_where_it_is_wanted() {
    let desk = crate::new_desk();
    let named = "--name os --bundle-version 7";
    desk.good(&format!("pack os -o plain.sealift {named}"));
    let plain = desk.read("plain.sealift");
    desk.good("key generate -o other");

    let said = desk.good(&format!("sign plain.sealift -o signed.sealift {named} --key release"));
    assert!(said.starts_with("signed.sealift: has 1 signature"), "{said}");
    assert_eq!(desk.read("plain.sealift"), plain, "it stays");
    let signed = desk.read("signed.sealift");
    desk.good("verify signed.sealift --deep --trust signers");

    // From a pipe, and into one: an Ed25519 signature is the same each time.
    let done = desk.shell(&format!("cat plain.sealift | sealift sign - -o - {named} --key release")).output().unwrap();
    assert_eq!(done.status.code(), Some(0), "{done:?}");
    assert!(done.stdout == signed && String::from_utf8_lossy(&done.stderr).starts_with("-: has 1 signature"));
    // If the signatures exceed the room, the copy is longer.
    let keys = "--key other --key other2 --key other3 --key other4 --key other5 --key other6 --key other7";
    for number in 2..8 {
        desk.good(&format!("key generate -o other{number}"));
    }
    desk.good(&format!("sign signed.sealift -o - {keys} --json")); // not a terminal
    desk.good(&format!("sign signed.sealift -o more.sealift {keys}"));
    desk.good("verify more.sealift --deep --trust signers");

    // Existing files stay, and so do bundles that cannot be signed.
    desk.refused(
        "sign plain.sealift -o signed.sealift --key release --name os --bundle-version 7",
        2,
        "already exists",
    );
    desk.refused("sign plain.sealift -o x --key release", 2, "plain.sealift is not signed yet");
    desk.refused("sign plain.sealift --key release --force", 2, "--output <FILE>");
    for (cut, why) in [("head -c -1", "truncated"), ("cat - signers", "continues after the end")] {
        let line = format!("cat plain.sealift | {cut} | sealift sign - -o x {named} --key release");
        let (status, said) = told(&mut desk.shell(&line));
        assert!(status == Some(1) && said.contains(why), "{line}: {said}");
        assert!(!desk.path("x").exists());
    }
    let (status, said) = told(&mut desk.shell("cat plain.sealift | sealift sign - --key release"));
    assert!(status == Some(2) && said.contains("give -o FILE"), "{said}");
}

#[test]
fn what_readers_refuse_is_not_packed_unasked() {
    let desk = crate::new_desk();
    // An archive with one file that is 5000 names deep.
    let path = ["deeper"; 4999].join("/") + "/file";
    let mut archive = tar::Builder::new(fs::File::create(desk.path("deep.tar")).unwrap());
    let mut header = tar::Header::new_gnu();
    header.set_size(2);
    header.set_mode(0o644);
    archive.append_data(&mut header, path, &b"x\n"[..]).unwrap();
    archive.finish().unwrap();
    let refused = "deeper/deeper/deeper/deeper/deeper/deeper/deeper/deeper/deep... is 5000 levels deep, which exceeds the readers' default limit of 4096: \
                   to pack it anyway, use --limit depth=5000; readers need the same option";
    for more in ["", " --dry-run"] {
        desk.refused(&format!("pack tar:deep.tar -o deep.sealift{more}"), 2, refused);
        assert!(!desk.path("deep.sealift").exists());
    }
    desk.good("pack tar:deep.tar -o deep.sealift --limit depth=5000");
    desk.refused("ls deep.sealift", 2, "which exceeds the limit of 4096: to accept it, use --limit depth=5000");
    assert!(desk.good("ls deep.sealift --limit depth=5000").ends_with("/file\n"));

    // More bytes than usual, which take no space since they are holes; and more names.
    for number in 0..3 {
        fs::File::create(desk.path(&format!("os/hole-{number}"))).unwrap().set_len((1 << 41) + number).unwrap();
    }
    desk.refused(
        "pack os -o b.sealift",
        2,
        "the files have 6597069766664 bytes in total (hole-2 is the largest), which exceeds the readers' default limit of 4398046511104: \
         to pack it anyway, use --limit size=6597069766664",
    );
    desk.refused(
        "pack os -o b.sealift --limit size=8T,entries=3",
        2,
        "there are 4 entries, which exceeds the readers' default limit of 3: to pack it anyway, use --limit entries=4",
    );
    assert!(!desk.path("b.sealift").exists());
}

/// A report of the page is matched with a device by these digests: no command may have others, and a further signature changes none.
#[test]
fn every_line_about_a_bundle_has_the_same_digests() {
    let desk = crate::new_desk();
    let digests = |line: &str| {
        let said = desk.good(line);
        let start = said.find(r#""root_digest":""#).unwrap_or_else(|| panic!("{line}: {said}"));
        let digests = &said[start..start + 2 * 64 + 34];
        assert!(digests.contains(r#"","index_digest":""#) && digests.ends_with('"'), "{line}: {digests}");
        digests.to_owned()
    };
    let packed = digests(&format!("pack os -o os.sealift {RELEASE} --composefs --json"));
    desk.good("key generate -o other");
    desk.good("sign os.sealift --key other");
    for line in [
        "info os.sealift --trust signers --json",
        "verify os.sealift --trust signers --json",
        "unpack os.sealift target --trust signers --json --dry-run",
        "unpack os.sealift target --trust signers --json",
        "status target --trust signers --json",
        "audit target --trust signers --json",
        "unpack os.sealift composefs:store --trust signers --json",
        "status composefs:store --trust signers --json",
        "audit composefs:store --trust signers --json",
    ] {
        assert_eq!(digests(line), packed, "{line}");
    }
}
