//! Power loss while files are sealed: the host kills this machine, starts it again, and repeats the run.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::Stdio;

use sealift_desk::noise;

use super::unpack::{ANYBODY, assert_sealed};
use crate::disk::{Disk, command};

const FILES: u64 = 800;

/// Begins to unpack, and reports when files are sealed.
pub(crate) fn cut(desk: &Disk) {
    if !desk.path("many.sealift").exists() {
        for number in 0..FILES {
            let folder = Path::new("/tmp/many").join((number % 10).to_string());
            fs::create_dir_all(&folder).expect("a folder");
            let len = usize::try_from(number % 7).expect("it is small") * 1500;
            fs::write(folder.join(number.to_string()), noise(number, len)).expect("a file");
        }
        desk.good("pack /tmp/many -o many.sealift --name many --bundle-version 1 --level 1 --quiet");
        rustix::fs::sync();
    }
    let line = format!("unpack many.sealift many --seal require --progress json {ANYBODY}");
    let mut unpacking = command(&line)
        .current_dir(desk.root())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let lines = BufReader::new(unpacking.stderr.take().expect("it is piped")).lines();
    for line in lines.map_while(Result::ok) {
        match line.contains(r#""phase":"sealing""#) {
            true => println!("vm: sealing"),
            false if line.contains(r#""phase""#) => {}
            false => println!("{line}"),
        }
    }
    assert!(unpacking.wait().expect("it ends").success());
    println!("vm: sealed");
}

/// Examines the state after the power loss, and completes it.
pub(crate) fn resume(desk: &Disk) {
    let target = desk.path("many");
    let was_there = target.exists();
    let said = desk.good(&format!("unpack many.sealift many --seal require {ANYBODY} --json"));
    println!("vm: {} {}", if was_there { "was complete:" } else { "completed:" }, said.trim_end());
    assert_sealed(&target, true);
    assert!(desk.good(&format!("audit many {ANYBODY}")).contains("asking the kernel"));
    // The next cut starts over.
    fs::remove_dir_all(&target).expect("removed");
    fs::remove_dir_all(desk.path(".many.sealift-state")).expect("removed");
}
