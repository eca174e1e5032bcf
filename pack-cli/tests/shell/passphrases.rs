//! Passphrases: from a terminal, a file, and a program that asks.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use sealift_desk::{Desk, told};

use crate::terminal::Terminal;

/// Creates a key `locked`, whose passphrase is `correct horse`, and an unsigned bundle.
fn locked() -> Desk {
    let desk = crate::new_desk();
    desk.write("passphrase", "correct horse\n");
    desk.good("key generate -o locked --passphrase-file passphrase");
    desk.good("pack os -o os.sealift --name os --bundle-version 7");
    desk
}

const PROMPT: &str = "Passphrase for locked: ";
const SIGN: &str = "sign os.sealift --name os --bundle-version 7 --key locked";

#[test]
fn a_terminal_echoes_again_after_ctrl_c() {
    let desk = locked();
    let line = format!("trap : INT; sealift {SIGN}; echo status $?; stty -a");
    let mut terminal = Terminal::start(&desk, &line);
    terminal.until(PROMPT, 1).types("cor\x03");
    let (_, said) = terminal.end();
    assert!(said.contains("status 130"), "{said}");
    for word in [" echo ", " icanon ", "isig "] {
        assert!(said.contains(word), "{word} is off: {said}");
    }
    desk.says("info os.sealift --trust signers", "UNSIGNED");
}

#[test]
fn a_terminal_echoes_again_after_quitting() {
    let desk = locked();
    let line = format!("trap : QUIT; sealift {SIGN}; echo status $?; stty -a");
    let mut terminal = Terminal::start(&desk, &line);
    terminal.until(PROMPT, 1).types("cor\x1c");
    let (_, said) = terminal.end();
    assert!(said.contains("status 131") && said.contains(" echo "), "{said}");
}

#[test]
fn an_end_of_input_is_no_passphrase() {
    let desk = locked();
    let mut terminal = Terminal::start(&desk, &format!("sealift {SIGN}"));
    terminal.until(PROMPT, 1).types("\x04");
    let (status, said) = terminal.end();
    assert!(status == Some(2) && said.contains("no passphrase given for locked"), "{said}");
}

#[test]
fn a_wrong_passphrase_is_asked_again() {
    let desk = locked();
    let mut terminal = Terminal::start(&desk, &format!("sealift {SIGN}"));
    terminal.until(PROMPT, 1).types("wrong\r");
    terminal.until("wrong passphrase", 1).until(PROMPT, 2).types("correct horse\r");
    let (status, said) = terminal.end();
    assert_eq!(status, Some(0), "{said}");
    assert!(!said.contains("correct horse"), "{said}");

    let mut terminal = Terminal::start(&desk, "sealift sign os.sealift --key locked");
    for time in 1..=3 {
        terminal.until(PROMPT, time).types("wrong\r");
    }
    let (status, said) = terminal.end();
    assert_eq!((status, said.matches("wrong passphrase").count()), (Some(2), 3), "{said}");
}

#[test]
fn a_file_gives_a_passphrase() {
    let desk = locked();
    desk.good(&format!("{SIGN} --passphrase-file passphrase"));
    desk.good("pack os -o new.sealift --name os --bundle-version 8 --key locked --passphrase-file passphrase");
    desk.write("other", "battery staple\n");
    desk.refused("sign os.sealift --key locked --passphrase-file other", 2, "locked: wrong passphrase");
    desk.refused("sign os.sealift --key locked --passphrase-file nowhere", 2, "cannot read nowhere");
    // A pipe can only be read once.
    let line =
        "sealift pack os -o two.sealift --name os --bundle-version 9 --key locked --passphrase-file <(cat passphrase)";
    let (status, said) = told(&mut desk.shell(line));
    assert_eq!(status, Some(0), "{said}");
}

#[test]
fn a_program_asks_where_there_is_no_terminal() {
    let desk = locked();
    desk.write("ask", "#!/bin/sh\necho \"$1\" > asked\necho correct horse\n");
    fs::set_permissions(desk.path("ask"), fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = desk.command(SIGN);
    command.env("SSH_ASKPASS", desk.path("ask")).env("SSH_ASKPASS_REQUIRE", "force");
    let (status, said) = told(&mut command);
    assert_eq!(status, Some(0), "{said}");
    assert_eq!(desk.text("asked"), "Passphrase for locked: \n");

    desk.write("ask", "#!/bin/sh\nexit 1\n");
    let mut command = desk.command("sign os.sealift --key locked");
    command.env("SSH_ASKPASS", desk.path("ask")).env("SSH_ASKPASS_REQUIRE", "force");
    let (status, said) = told(&mut command);
    assert!(status == Some(2) && said.contains("use --passphrase-file"), "{said}");
}
