//! Publishers that are killed, and several at once.

use std::process::Stdio;
use std::time::Duration;

use crate::{has, new_desk, pack, publish};

#[test]
fn a_killed_publisher_shows_nothing_half_done() {
    let desk = new_desk();
    publish(&desk, 1..=1, "--deltas last:2");
    pack(&desk, 2, "");
    for step in 0..12 {
        let mut command = desk.command("publish os-2.sealift channel --key release --deltas last:2");
        command.stdout(Stdio::null()).stderr(Stdio::null());
        sealift_desk::kill_after(Duration::from_millis(step * 12), &mut command);
        // Whatever the moment, a device finds one of the two versions whole.
        desk.good(&format!("unpack channel target-{step} --trust signers --state state-{step}"));
        let found = has(&desk, &format!("target-{step}"));
        assert!(["version 1", "version 2"].contains(&found.as_str()), "{found}");
    }
    desk.good("publish os-2.sealift channel --key release --deltas last:2");
    let mut names = desk.names("channel");
    names.retain(|name| name.starts_with("os-"));
    assert_eq!(names, ["os-1.sealift", "os-2-from-1.sealift", "os-2.sealift"]);
}

#[test]
fn a_second_publisher_is_told_of_the_first() {
    let desk = new_desk();
    publish(&desk, 1..=1, "");
    let lock = std::fs::File::open(desk.path("channel/.sealift-channel-lock")).unwrap();
    lock.lock().unwrap();
    desk.refused("publish os-1.sealift channel --key release", 2, "channel");
}

/// Killed while it writes and while it removes: the next run, whatever it publishes, leaves what the list names and nothing else.
#[test]
fn what_a_killed_publisher_leaves_is_removed_by_the_next() {
    let desk = new_desk();
    publish(&desk, 1..=3, "--deltas last:2");
    pack(&desk, 4, "");
    let (mut is_done, mut step) = (false, 0);
    while !is_done {
        let mut command = desk.command("publish os-4.sealift channel --key release --deltas last:3 --keep last:1");
        command.stdout(Stdio::null()).stderr(Stdio::null());
        sealift_desk::kill_after(Duration::from_millis(step * 4), &mut command);
        let json = desk.json("publish os-3.sealift channel --key release --json");
        let mut names = desk.names("channel");
        names.retain(|name| name.starts_with("os-") || name.contains("partial"));
        assert_eq!(json["files"], names.len(), "{names:?}: {json}");
        is_done = json["version"] == 4 || step > 200;
        step += 1;
    }
    desk.good("publish os-4.sealift channel --key release --deltas last:3 --keep last:1");
    let mut names = desk.names("channel");
    names.retain(|name| name.starts_with("os-"));
    assert_eq!(names, ["os-4.sealift"]);
}
