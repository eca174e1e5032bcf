//! `--adopt` on a terminal: it shows what would be replaced and deleted, and asks.

use std::fs;

use sealift_desk::{Desk, told};

use crate::terminal::Terminal;

const ADOPT: &str = "unpack os.sealift home --update --delete --adopt --trust signers --progress none";
const PROGRAM: &str = env!("CARGO_BIN_EXE_sealift");
const QUESTION: &str = "Continue? [y/N] ";

/// Creates a user's files, one of which has a name that the bundle has.
fn desk() -> Desk {
    let desk = crate::new_desk();
    desk.good("pack os -o os.sealift --name os --bundle-version 7 --key release");
    fs::create_dir_all(desk.path("home/photos")).unwrap();
    for number in 0..7 {
        desk.write(&format!("home/photos/{number}.jpg"), "a photo");
    }
    desk.write("home/hello", "mine");
    desk
}

/// Starts the command, and types `keys` after the question.
fn answer(desk: &Desk, keys: &str) -> (Option<i32>, String) {
    let mut terminal = Terminal::start(desk, &format!("sealift {ADOPT}"));
    terminal.until(QUESTION, 1);
    // Nothing happens before the answer.
    assert_untouched(desk);
    terminal.types(keys);
    terminal.end()
}

fn assert_untouched(desk: &Desk) {
    assert_eq!(desk.read("home/hello"), b"mine");
    assert_eq!(fs::read_dir(desk.path("home/photos")).unwrap().count(), 7);
    assert!(!desk.names("").iter().any(|name| name.starts_with(".home")));
    assert!(!desk.path("state").exists());
}

#[test]
fn yes_takes_it_over() {
    for yes in ["y\r", "Yes\r", " YES \r"] {
        let desk = desk();
        let (status, said) = answer(&desk, yes);
        assert_eq!(status, Some(0), "{said}");
        for line in [
            "home was not unpacked by sealift. Taking it over would",
            "  replace 1 file",
            "  delete 7 files and 1 directory: photos/",
            ", ...",
            "took over: replaced 1 file",
            "deleted 7 files and 1 directory",
        ] {
            assert!(said.contains(line), "{line}: {said}");
        }
        assert_eq!(desk.read("home/hello"), b"hello");
        assert!(!desk.path("home/photos").exists());
        // From then on it is a target, and there is no question.
        desk.good(&format!("{ADOPT} --quiet"));
    }
}

#[test]
fn all_else_leaves_it_as_it_is() {
    for other in ["n\r", "\r", "no\r", "yess\r", "\x04"] {
        let desk = desk();
        let (status, said) = answer(&desk, other);
        assert!(status == Some(2) && said.contains("home was left unchanged"), "{other:?}: {status:?}: {said}");
        assert_untouched(&desk);
    }
}

#[test]
fn ctrl_c_leaves_it_as_it_is() {
    let desk = desk();
    let (status, said) = answer(&desk, "ye\x03");
    assert_eq!(status, Some(130), "{said}");
    assert_untouched(&desk);
}

/// Whatever standard input, output and error are: the person sits at the terminal.
#[test]
fn pipes_and_files_hide_no_question() {
    for line in [
        "cat os.sealift | sealift unpack - home --update --delete --adopt --trust signers",
        &format!("sealift {ADOPT} 2>log"),
        &format!("sealift {ADOPT} < /dev/null > log 2>&1"),
    ] {
        for (keys, status) in [("n\r", 2), ("y\r", 0)] {
            let desk = desk();
            let mut terminal = Terminal::start(&desk, line);
            terminal.until(QUESTION, 1);
            assert_untouched(&desk);
            let (ended, said) = {
                terminal.types(keys);
                terminal.end()
            };
            assert_eq!(ended, Some(status), "{line}: {said}");
            assert_eq!(desk.path("home/photos").exists(), status == 2);
        }
    }
}

#[test]
fn yes_asks_nobody() {
    let desk = desk();
    let (status, said) = Terminal::start(&desk, &format!("sealift {ADOPT} --yes")).end();
    assert!(status == Some(0) && !said.contains("[y/N]"), "{status:?}: {said}");
    assert!(!desk.path("home/photos").exists());
    desk.refused("unpack os.sealift home --update --yes --trust signers", 2, "--adopt");
}

#[test]
fn without_a_terminal_a_deletion_needs_yes() {
    // In a session of its own, as a service has.
    let alone = |desk: &Desk, line: &str| told(&mut desk.shell(&format!("setsid -w {PROGRAM} {line}")));
    let desk = desk();
    for line in [ADOPT.to_owned(), format!("{ADOPT} --json")] {
        let (status, said) = alone(&desk, &line);
        assert!(status == Some(2) && said.contains("--adopt --delete needs --yes"), "{line}: {status:?}: {said}");
        assert!(said.contains("replace 1 file and delete 7 files and 1 directory: photos/"), "{said}");
        assert_untouched(&desk);
    }
    // What only replaces loses nothing that the bundle does not have.
    let (status, said) = alone(&desk, &ADOPT.replace(" --delete", ""));
    assert!(status == Some(0) && said.contains("taking it over replaces 1 file"), "{status:?}: {said}");
    assert!(desk.path("home/photos").exists());
    let desk = self::desk();
    let (status, said) = alone(&desk, &format!("{ADOPT} --yes"));
    assert!(status == Some(0) && !said.contains(QUESTION.trim_end()), "{status:?}: {said}");
    assert!(!desk.path("home/photos").exists());
    // There is no question about something that is not done.
    let desk = self::desk();
    let (status, said) = Terminal::start(&desk, &format!("sealift {ADOPT} --dry-run")).end();
    assert!(status == Some(0) && !said.contains("[y/N]"), "{status:?}: {said}");
    assert_untouched(&desk);
}
