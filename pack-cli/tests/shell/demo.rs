//! examples/demo.sh, which compares the program with tar and zstd.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::Command;

use sealift_desk::{Desk, told};

fn demo(desk: &Desk) -> Command {
    fs::create_dir(desk.path("scratch")).unwrap();
    // A shell cannot trap signals that were ignored when it started, as SIGINT is for background jobs.
    let mut command = desk.command_of("env");
    command.args(["--default-signal=INT", concat!(env!("CARGO_MANIFEST_DIR"), "/examples/demo.sh")]);
    command.env("SEALIFT", env!("CARGO_BIN_EXE_sealift")).env("TMPDIR", desk.path("scratch")).arg("os");
    command
}

#[test]
fn it_compares_and_leaves_nothing() {
    let desk = crate::new_desk();
    desk.write("os/large", vec![7; 300_000]);
    fs::hard_link(desk.path("os/large"), desk.path("os/it's a link")).unwrap();
    std::os::unix::fs::symlink("large", desk.path("os/symlink")).unwrap();
    let (status, said) = told(&mut demo(&desk));
    assert_eq!(status, Some(0), "{said}");
    for part in ["identical: 5 entries", "TRUSTED", "sealift verify --deep", "tar and zstd", "a second"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert_eq!(fs::read_dir(desk.path("scratch")).unwrap().count(), 0);
}

#[test]
fn it_cleans_up_when_it_is_stopped() {
    let desk = crate::new_desk();
    // Takes seconds to compress, whatever the load of the machine.
    let large: Vec<u8> =
        (0_u32..6_000_000).flat_map(|number| number.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
    desk.write("os/large", large);
    let mut demo = demo(&desk).env("LEVEL", "22").spawn().unwrap();
    let mut stdout = BufReader::new(demo.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("sealift pack") {
        line.clear();
        assert!(stdout.read_line(&mut line).unwrap() > 0, "it ended");
    }
    assert!(Command::new("kill").args(["-INT", &demo.id().to_string()]).status().unwrap().success());
    stdout.read_to_string(&mut line).unwrap();
    let done = demo.wait_with_output().unwrap();
    assert_eq!(done.status.code(), Some(130), "{line}{}", String::from_utf8_lossy(&done.stderr));
    assert_eq!(fs::read_dir(desk.path("scratch")).unwrap().count(), 0);
}
