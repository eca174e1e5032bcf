//! Several bundles on a stick: the newest that the device accepts is installed, and the reasons against the others are reported.

use std::fs;
use std::process::Stdio;

use sealift_desk::Desk;

const TAKE: &str = "unpack stick target --update --delete --trust signers";

/// Creates a target of version 7, and a folder for bundles.
fn device() -> Desk {
    let desk = crate::new_desk();
    fs::create_dir(desk.path("stick")).unwrap();
    pack(&desk, 7, "");
    desk.good("unpack stick/7.sealift target --trust signers");
    desk
}

/// Packs a version into the stick; `more` are options.
fn pack(desk: &Desk, version: u32, more: &str) {
    desk.write("os/hello", format!("hello {version}"));
    let to = if more.contains("--base") { format!("delta-{version}") } else { version.to_string() };
    desk.good(&format!(
        "pack os -o stick/{to}.sealift --name os --bundle-version {version} --key release --trust signers -q {more}"
    ));
}

fn has(desk: &Desk) -> String {
    desk.text("target/hello")
}

#[test]
fn the_newest_is_taken_and_the_others_are_named() {
    let desk = device();
    pack(&desk, 8, "");
    pack(&desk, 9, "");
    desk.good("pack os -o stick/app.sealift --name app --bundle-version 2026 --key release -q");
    desk.good("key generate -o stranger -q");
    desk.good("pack os -o stick/big.sealift --name os --bundle-version 99 --key stranger -q");
    desk.good("pack os -o stick/unsigned.sealift --name os --bundle-version 98 -q");
    desk.write("stick/note.txt", "no bundle");
    desk.write("stick/page.sealift", "no bundle");
    let said = desk.good(TAKE);
    assert_eq!(has(&desk), "hello 9", "{said}");
    for why in [
        "passed over stick/app.sealift: its name is app, not os",
        "passed over stick/big.sealift: \"os\" needs the signature of 1 trusted key",
        "passed over stick/unsigned.sealift: \"os\" needs the signature of 1 trusted key",
        "passed over stick/page.sealift: ",
        "passed over stick/8.sealift: stick/9.sealift is newer, version 9",
        "target: updated from stick/9.sealift",
    ] {
        assert!(said.contains(why), "{why} is not in: {said}");
    }
    assert!(!said.contains("note.txt"), "{said}");
    let json = desk.good(&format!("{TAKE} --json"));
    assert!(json.contains(r#"{"passed_over":{"bundle":"stick/app.sealift","kind":"other-name","message":"#), "{json}");
    // Bundles can also be given as files.
    pack(&desk, 10, "");
    pack(&desk, 11, "");
    desk.good("unpack stick/10.sealift stick/11.sealift stick/8.sealift target --update --trust signers");
    assert_eq!(has(&desk), "hello 11");
}

/// Two sticks are plugged in at once: the unit of the second waits until the first has been read.
#[test]
fn a_second_stick_waits_for_the_first() {
    let desk = device();
    pack(&desk, 8, "");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/examples/device/sealift-stick");
    let first = fs::File::open(script).unwrap();
    first.lock().unwrap();
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_sealift")).parent().unwrap();
    let mut second = desk.command_of("sh");
    second.env("PATH", format!("{}:{}", program.display(), std::env::var("PATH").unwrap()));
    desk.write("targets", format!("os {} --update --delete\n", desk.path("target").display()));
    desk.set_mode("targets", 0o644);
    second.args([script, "stick", "targets", "--trust", "signers"]).stdout(Stdio::null());
    let mut second = second.spawn().unwrap();
    let waiting = format!("/proc/{}/fd/9", second.id());
    while fs::read_link(&waiting).is_err() {
        assert!(second.try_wait().unwrap().is_none(), "it did not wait");
        std::thread::yield_now();
    }
    assert_eq!(has(&desk), "hello 7");
    first.unlock().unwrap();
    assert!(second.wait().unwrap().success());
    assert_eq!(has(&desk), "hello 8");
}

/// Some file systems and cameras write every name in capital letters.
#[test]
fn a_bundle_is_found_whatever_the_case_of_its_name() {
    let desk = device();
    pack(&desk, 8, "");
    fs::rename(desk.path("stick/8.sealift"), desk.path("stick/OS-8.SEALIFT")).unwrap();
    let said = desk.good(TAKE);
    assert!(has(&desk) == "hello 8" && said.contains("target: updated from stick/OS-8.SEALIFT"), "{said}");
}

#[test]
fn a_delta_goes_before_the_full_bundle_where_its_base_is() {
    let desk = device();
    pack(&desk, 8, "");
    pack(&desk, 9, "");
    pack(&desk, 9, "--base stick/8.sealift");
    // The target holds version 7, so the delta does not fit.
    let said = desk.good(TAKE);
    assert!(said.contains("passed over stick/delta-9.sealift") && said.contains("from stick/9.sealift"), "{said}");
    assert_eq!(has(&desk), "hello 9");
    pack(&desk, 10, "");
    pack(&desk, 10, "--base stick/9.sealift");
    let said = desk.says(TAKE, "from stick/delta-10.sealift");
    assert!(said.contains("passed over stick/10.sealift: stick/delta-10.sealift is the same version"), "{said}");
    assert_eq!(has(&desk), "hello 10");
}

#[test]
fn what_turns_out_damaged_gives_way_to_the_next() {
    let desk = device();
    pack(&desk, 8, "");
    pack(&desk, 9, "");
    let mut bytes = desk.read("stick/9.sealift");
    *bytes.last_mut().unwrap() ^= 1;
    desk.write("stick/9.sealift", bytes);
    desk.says(TAKE, "passed over stick/9.sealift: ");
    assert_eq!(has(&desk), "hello 8");
}

#[test]
fn nothing_to_take_says_so() {
    let desk = device();
    fs::remove_file(desk.path("stick/7.sealift")).unwrap();
    desk.refused(TAKE, 2, "stick: no *.sealift files here");
    desk.good("pack os -o stick/a.sealift --name os --bundle-version 9");
    desk.refused(TAKE, 3, "stick: no bundle that this device can install");
    assert_eq!(has(&desk), "hello 7");
    // If nothing says which name is meant, it is not guessed.
    desk.write("all", desk.text("signers").replacen("os ", "* ", 1));
    desk.good("pack os -o stick/os.sealift --name os --bundle-version 9 --key release");
    desk.good("pack os -o stick/app.sealift --name app --bundle-version 9 --key release");
    desk.refused("unpack stick new --trust all", 2, "choose one with --name");
    desk.good("unpack stick new --trust all --name app");
}

#[test]
fn each_of_several_bundles_is_verified() {
    let desk = device();
    pack(&desk, 8, "");
    let line = "verify stick/8.sealift stick/bad.sealift stick/unsigned.sealift stick/7.sealift --trust signers";
    desk.good("pack os -o stick/unsigned.sealift --name os --bundle-version 9");
    fs::copy(desk.path("stick/8.sealift"), desk.path("stick/bad.sealift")).unwrap();
    let refused = "verify stick/unsigned.sealift nowhere stick/8.sealift --trust signers";
    let (status, said) = desk.run(refused);
    assert!(
        status == Some(3) && said.contains("nowhere") && said.contains("stick/8.sealift: sound"),
        "{status:?}: {said}"
    );
    let mut bytes = desk.read("stick/bad.sealift");
    *bytes.last_mut().unwrap() ^= 1;
    desk.write("stick/bad.sealift", bytes);
    let said = desk.refused(line, 1, "stick/8.sealift: sound");
    assert!(said.contains("sealift: stick/bad.sealift: "), "{said}");
    desk.good("verify stick/8.sealift stick/8.sealift --trust signers");
}

#[test]
fn words_of_other_programs_are_answered_with_ours() {
    let desk = crate::new_desk();
    for (line, ours) in [
        ("extract os.sealift", "sealift unpack"),
        ("list os.sealift", "sealift ls"),
        ("check os.sealift", "sealift verify"),
        ("fsck target", "sealift audit"),
        ("keygen", "sealift key generate"),
        ("apply os.sealift target", "sealift unpack --update"),
        ("tf os.sealift", "sealift ls"),
        ("create os", "sealift pack"),
        ("c os", "sealift pack"),
        ("pack os -o b --version 7", "--bundle-version"),
        ("pack os -o b --version=7", "--bundle-version"),
        ("pack os -o b --sign release", "'--key'"),
        ("verify os.sealift --pubkey release.pub", "'--trust'"),
    ] {
        desk.refused(line, 2, &format!("tip: {}", if ours.starts_with("sea") { "'" } else { "" }));
        desk.refused(line, 2, ours);
    }
    // For a misspelt word, a similar one is suggested.
    desk.refused("verfy os.sealift", 2, "'verify'");
}

/// A stick with one full bundle and one delta serves both old and new devices.
#[test]
fn a_delta_is_taken_over_a_base_that_lies_beside_it() {
    let desk = device();
    pack(&desk, 8, "--base stick/7.sealift");
    desk.says("unpack stick fresh --trust signers", "fresh: unpacked from stick/delta-8.sealift");
    assert_eq!(desk.text("fresh/hello"), "hello 8");
    // A device that has the base needs nothing else from the stick.
    fs::write(desk.path("stick/7.sealift"), "damaged").unwrap();
    desk.good(TAKE);
    assert_eq!(has(&desk), "hello 8");
    desk.refused("unpack stick other --trust signers", 4, "it does not exist");
}

/// Damaged copies of a base do not hide a sound one. A copy that is not signed by a trusted key is not even tried.
#[test]
fn a_sound_base_is_found_among_its_copies() {
    let desk = crate::new_desk();
    fs::create_dir(desk.path("stick")).unwrap();
    desk.write("os/kept", "of every version");
    pack(&desk, 7, "");
    let damage = |name: &str| {
        let mut bytes = desk.read(name);
        *bytes.last_mut().unwrap() ^= 1;
        desk.write(name, bytes);
    };
    desk.good("pack os -o stick/0.sealift --name os --bundle-version 7 -q");
    damage("stick/0.sealift");
    pack(&desk, 8, "--base stick/7.sealift");
    let said = desk.good("unpack stick fresh --trust signers");
    assert!(said.contains("passed over stick/0.sealift") && !said.contains("passed over stick/delta-8"), "{said}");
    assert_eq!(desk.text("fresh/hello"), "hello 8");

    fs::copy(desk.path("stick/7.sealift"), desk.path("stick/1.sealift")).unwrap();
    damage("stick/1.sealift");
    let said = desk.says("unpack stick other --trust signers", "passed over stick/delta-8.sealift: stick/1.sealift: ");
    assert!(said.contains("other: unpacked from stick/delta-8.sealift"), "{said}");
    assert_eq!(said.matches("delta-8").count(), 2, "{said}");
    fs::remove_file(desk.path("stick/7.sealift")).unwrap();
    let (status, said) = desk.run("unpack stick third --trust signers");
    assert!(status == Some(1) && !desk.path("third").exists(), "{status:?} {said}");
}
