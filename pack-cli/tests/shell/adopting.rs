//! `--adopt` on a terminal: it shows what would be replaced and deleted, and asks.

use std::fs;

use crate::desk::{Desk, told};
use crate::terminal::Terminal;

const ADOPT: &str = "unpack os.sealift home --update --delete --adopt --trust signers --progress none";
const QUESTION: &str = "Continue? [y/N] ";

/// Creates a user's files, one of which has a name that the bundle has.
fn desk() -> Desk {
    let desk = Desk::new();
    desk.good("pack os -o os.sealift --name os --bundle-version 7 --key release");
    fs::create_dir_all(desk.path("home/photos")).unwrap();
    for number in 0..7 {
        desk.write(&format!("home/photos/{number}.jpg"), "a photo");
    }
    desk.write("home/hello", "mine");
    desk
}

/// Starts the command, and types `keys` after the question.
fn answer(desk: &Desk, keys: &str) -> (i32, String) {
    let mut terminal = Terminal::start(desk, &format!("sealift {ADOPT}"));
    terminal.until(QUESTION, 1);
    // Nothing happens before the answer.
    assert_untouched(desk);
    terminal.types(keys);
    terminal.end()
}

fn assert_untouched(desk: &Desk) {
    assert_eq!(fs::read(desk.path("home/hello")).unwrap(), b"mine");
    assert_eq!(fs::read_dir(desk.path("home/photos")).unwrap().count(), 7);
    let beside = fs::read_dir(desk.path("")).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(beside.filter(|name| name.starts_with(".home")).count(), 0);
    assert!(!desk.path("state").exists());
}

#[test]
fn yes_takes_it_over() {
    for yes in ["y\r", "Yes\r", " YES \r"] {
        let desk = desk();
        let (status, said) = answer(&desk, yes);
        assert_eq!(status, 0, "{said}");
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
        assert_eq!(fs::read(desk.path("home/hello")).unwrap(), b"hello");
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
        assert!(status == 2 && said.contains("home was left unchanged"), "{other:?}: {status}: {said}");
        assert_untouched(&desk);
    }
}

#[test]
fn ctrl_c_leaves_it_as_it_is() {
    let desk = desk();
    let (status, said) = answer(&desk, "ye\x03");
    assert_eq!(status, 130, "{said}");
    assert_untouched(&desk);
}

#[test]
fn without_a_terminal_the_option_is_the_consent() {
    for line in [format!("sealift {ADOPT} < /dev/null"), format!("echo n | sealift {ADOPT}")] {
        let desk = desk();
        let (status, said) = told(&desk.shell(&line).output().unwrap());
        assert!(status == 0 && !said.contains(QUESTION.trim_end()), "{line}: {status}: {said}");
        assert!(!desk.path("home/photos").exists());
    }
    // There is no question about something that is not done.
    let desk = desk();
    let (status, said) = Terminal::start(&desk, &format!("sealift {ADOPT} --dry-run")).end();
    assert!(status == 0 && !said.contains("[y/N]"), "{status}: {said}");
    assert_untouched(&desk);
}
