//! What is not done twice, and deltas that other processes make.

use std::process::{Command, Stdio};

use sealift_desk::{Desk, noise};

use crate::{has, new_desk, pack, publish};

const LIST: &str = "channel/channel.sealift-list";
const NOTES: &str = "channel/.sealift-channel-notes";

/// Packs versions that have nothing in common, so well that deltas of the default level are larger.
pub(crate) fn pack_unlike(desk: &Desk, versions: std::ops::RangeInclusive<u32>) {
    for version in versions {
        let numbers = noise(version, 80_000);
        let numbers = numbers.chunks_exact(2).map(|two| u32::from(u16::from_le_bytes([two[0], two[1]]) % 3000));
        let word = |number: u32| format!("{:06x} ", (number + 3000 * version).wrapping_mul(2_654_435_761) >> 8);
        desk.write(&format!("os-{version}/text-{version}"), numbers.map(word).collect::<String>());
        let pack = "--level 19 --name os --key release -q";
        desk.good(&format!("pack os-{version} -o os-{version}.sealift --bundle-version {version} {pack}"));
    }
}

/// Returns the names of bundles in the channel.
fn bundles(desk: &Desk) -> Vec<String> {
    let mut names = desk.names("channel");
    names.retain(|name| name.starts_with("os-"));
    names
}

/// Returns the commands of a plan.
fn plan(desk: &Desk, more: &str) -> Vec<serde_json::Value> {
    let out = desk.out(&format!("publish {more} channel --plan --quiet"));
    out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Returns a `PATH` with the program.
fn path() -> String {
    let program = std::path::PathBuf::from(sealift_desk::program());
    format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap())
}

/// Runs commands, `processes` at a time, as any batch engine does.
fn run_all(desk: &Desk, plan: &[serde_json::Value], processes: usize) {
    let line = |delta: &serde_json::Value| {
        let words = delta["argv"].as_array().unwrap().iter().map(|word| word.as_str().unwrap());
        words.map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ")
    };
    desk.write("commands", plan.iter().map(line).collect::<Vec<_>>().join("\n"));
    let mut xargs = desk.command_of("xargs");
    xargs.env("PATH", path()).args([
        "-a",
        "commands",
        "-d",
        "\n",
        "-I{}",
        "-P",
        &processes.to_string(),
        "sh",
        "-c",
        "{}",
    ]);
    sealift_desk::out(&mut xargs);
}

#[test]
fn a_delta_that_is_not_smaller_is_made_once() {
    let desk = new_desk();
    pack_unlike(&desk, 1..=2);
    let publish = "publish os-1.sealift os-2.sealift channel --key release --deltas last:3 --json";
    let json = desk.json(publish);
    assert_eq!(json["not_smaller"], serde_json::json!(["os-2-from-1.sealift"]), "{json}");
    assert_eq!(bundles(&desk), ["os-1.sealift", "os-2.sealift"]);
    let json = desk.json(publish);
    assert_eq!((&json["unchanged"], &json["not_smaller"]), (&true.into(), &serde_json::json!([])), "{json}");
    // Another level may succeed, and without its notes it begins again.
    assert_eq!(desk.json(&format!("{publish} --level 4"))["not_smaller"], serde_json::json!(["os-2-from-1.sealift"]));
    std::fs::remove_file(desk.path(NOTES)).unwrap();
    assert_eq!(desk.json(publish)["not_smaller"], serde_json::json!(["os-2-from-1.sealift"]));
    // Of bundles that are gone, nothing is kept in mind.
    pack_unlike(&desk, 3..=3);
    desk.good("publish os-3.sealift channel --key release --keep last:1");
    assert!(!desk.path(NOTES).exists());
}

#[test]
fn files_of_killed_runs_are_removed_and_others_stay() {
    let desk = new_desk();
    publish(&desk, 1..=2, "--deltas last:3");
    // As a run leaves it that is killed before --keep removes, and one that is killed before it lists.
    let (list, old) = (desk.read(LIST), desk.read("channel/os-1.sealift"));
    desk.good("publish channel --key release --keep last:1");
    assert_eq!(bundles(&desk), ["os-2.sealift"]);
    desk.write("channel/os-1.sealift", &old);
    desk.write("channel/os-9.sealift", "half");
    desk.write("channel/.os-9.sealift.1.sealift-partial", "half");
    desk.write("channel/os-mine.sealift", "not of publish");
    desk.write(NOTES, "unlisted os-1.sealift\nunlisted os-9.sealift\nunlisted os-2.sealift\n");
    let json = desk.json("publish os-2.sealift channel --key release --json");
    assert_eq!(json["removed"], serde_json::json!(["os-1.sealift", "os-9.sealift"]), "{json}");
    assert_eq!(bundles(&desk), ["os-2.sealift", "os-mine.sealift"]);
    assert!(!desk.names("channel").iter().any(|name| name.contains("partial") || name.contains("notes")));
    assert_ne!(desk.read(LIST), list);
}

#[test]
fn a_delta_of_a_killed_run_is_taken() {
    let desk = new_desk();
    publish(&desk, 1..=1, "");
    pack(&desk, 2, "");
    let list = desk.read(LIST);
    let publish = "publish os-2.sealift channel --key release --deltas last:3 --json";
    desk.good(publish);
    let delta = desk.read("channel/os-2-from-1.sealift");
    // The list as it was before: the delta is there, and not listed.
    desk.write(LIST, &list);
    let inode = |desk: &Desk| {
        std::os::unix::fs::MetadataExt::ino(&desk.path("channel/os-2-from-1.sealift").metadata().unwrap())
    };
    let before = inode(&desk);
    let json = desk.json(publish);
    assert_eq!(json["deltas"], serde_json::json!(["os-2-from-1.sealift"]), "{json}");
    assert_eq!((inode(&desk), desk.read("channel/os-2-from-1.sealift")), (before, delta.clone()));
    // If it is damaged, it is made again.
    desk.write(LIST, &list);
    let mut damaged = delta;
    *damaged.last_mut().unwrap() ^= 1;
    desk.write("channel/os-2-from-1.sealift", &damaged);
    desk.good(publish);
    assert_ne!(desk.read("channel/os-2-from-1.sealift"), damaged);
    desk.good("verify channel/os-2-from-1.sealift --trust signers");
}

#[test]
fn a_plan_is_made_by_other_processes_and_committed() {
    if !sealift_desk::has(&["xargs"]) {
        return sealift_desk::skipped("needs xargs: runs the commands of a plan");
    }
    let desk = new_desk();
    publish(&desk, 1..=1, "");
    // A base with an order, which its delta keeps, among others.
    desk.write("order", "version\nlarge\n");
    pack(&desk, 2, "--order order");
    desk.good("publish os-2.sealift channel --key release");
    publish(&desk, 3..=3, "");
    pack(&desk, 4, "");
    let list = desk.read(LIST);
    let planned = plan(&desk, "os-4.sealift --deltas last:9 --level 5");
    assert_eq!(planned.len(), 3, "{planned:?}");
    assert_eq!(planned[0]["inputs"], serde_json::json!(["channel/os-1.sealift", "channel/os-4.sealift"]));
    assert_eq!(planned[0]["output"], "channel/os-4-from-1.sealift");
    // Nothing of it is listed, and devices see the version before.
    assert_eq!(desk.read(LIST), list);
    desk.good("unpack channel target --trust signers");
    assert_eq!(has(&desk, "target"), "version 3");
    run_all(&desk, &planned[..2], 2);
    run_all(&desk, &planned[..2], 1);
    // Planning again plans what is still lacking; another run in between takes nothing away.
    let again = plan(&desk, "--deltas last:9 --level 5");
    assert_eq!(again, planned[2..]);
    desk.good("publish channel --key release");
    let said = desk.good("publish channel --key release --commit");
    for what in
        ["added    os-4.sealift", "delta    os-4-from-2.sealift", "missing  os-4-from-3.sealift: it is not there"]
    {
        assert!(said.contains(what), "{what}: {said}");
    }
    desk.good("unpack channel target --trust signers --update");
    assert_eq!(has(&desk, "target"), "version 4");
    for from in 1..=2 {
        desk.good(&format!("verify channel/os-4-from-{from}.sealift --trust signers"));
    }
    // What comes late is taken by the next.
    run_all(&desk, &planned, 3);
    let json = desk.json("publish channel --key release --commit --json");
    assert_eq!(
        (&json["deltas"], &json["missing"]),
        (&serde_json::json!(["os-4-from-3.sealift"]), &serde_json::json!([]))
    );
    assert!(!desk.path(NOTES).exists());
    assert!(plan(&desk, "--deltas last:9").is_empty());
    desk.refused("publish channel --key release --commit", 2, "has no plan");
    // A batch engine may repeat a command even then.
    run_all(&desk, &planned, 1);
    desk.refused("publish channel --make os-4-from-0.sealift", 2, "is not in this channel's plan");
    // The same deltas as publish makes itself: only signatures came later.
    desk.good(
        "publish os-1.sealift os-2.sealift os-3.sealift os-4.sealift other --key release --deltas last:9 --level 5",
    );
    for from in 1..=3 {
        let root = |of: &str| desk.json(&format!("info {of}/os-4-from-{from}.sealift --json"))["root_digest"].clone();
        assert_eq!(root("channel"), root("other"));
    }
}

#[test]
fn what_is_not_what_was_planned_is_not_listed() {
    let desk = new_desk();
    publish(&desk, 1..=4, "");
    pack(&desk, 5, "");
    let planned = plan(&desk, "os-5.sealift --deltas last:9");
    assert_eq!(planned.len(), 4);
    run_all(&desk, &planned, 2);
    // Damaged; of another base; of another identity; and one is not a bundle.
    let mut damaged = desk.read("channel/os-5-from-1.sealift");
    *damaged.last_mut().unwrap() ^= 1;
    desk.write("channel/os-5-from-1.sealift", damaged);
    desk.write("channel/os-5-from-2.sealift", desk.read("channel/os-5-from-4.sealift"));
    pack(&desk, 5, "--base os-3.sealift --annotate a=b");
    std::fs::rename(desk.path("os-5.sealift"), desk.path("channel/os-5-from-3.sealift")).unwrap();
    let json = desk.json("publish channel --key release --commit --json");
    assert_eq!(json["deltas"], serde_json::json!(["os-5-from-4.sealift"]), "{json}");
    let missing = json["missing"].as_array().unwrap();
    for (missing, why) in missing.iter().zip([
        "do not match their digest",
        "would not install what os-5.sealift does",
        "would not install",
    ]) {
        assert!(missing["message"].as_str().unwrap().contains(why), "{why}: {json}");
    }
    assert_eq!(missing.len(), 3);
    // They are gone, and can be made again.
    assert!(!desk.path("channel/os-5-from-1.sealift").exists());
    run_all(&desk, &planned, 2);
    let json = desk.json("publish channel --key release --commit --json");
    assert_eq!((json["deltas"].as_array().unwrap().len(), json["missing"].as_array().unwrap().len()), (3, 0), "{json}");
    desk.good("verify channel/os-5-from-1.sealift --trust signers");
}

#[test]
fn a_plan_of_deltas_that_are_not_smaller_ends() {
    let desk = new_desk();
    pack_unlike(&desk, 1..=2);
    let planned = plan(&desk, "os-1.sealift os-2.sealift --deltas last:3");
    run_all(&desk, &planned, 1);
    let json = desk.json("publish channel --key release --commit --json");
    assert_eq!(
        (&json["added"], &json["files"]),
        (&serde_json::json!(["os-1.sealift", "os-2.sealift"]), &2.into()),
        "{json}"
    );
    assert_eq!(json["not_smaller"], serde_json::json!(["os-2-from-1.sealift"]));
    assert_eq!(bundles(&desk), ["os-1.sealift", "os-2.sealift"]);
    assert!(plan(&desk, "--deltas last:3").is_empty());
}

/// Killed at any moment, a command leaves nothing that is listed, and can be run again beside another.
#[test]
fn a_killed_command_is_run_again() {
    let desk = new_desk();
    publish(&desk, 1..=1, "");
    pack(&desk, 2, "");
    let planned = plan(&desk, "os-2.sealift --deltas last:3");
    let make = "publish channel --make os-2-from-1.sealift";
    for step in 0..8 {
        let mut command: Command = desk.command(make);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        sealift_desk::kill_after(std::time::Duration::from_millis(step * 15), &mut command);
    }
    run_all(&desk, &[planned.clone(), planned.clone()].concat(), 2);
    let json = desk.json("publish channel --key release --commit --json");
    assert_eq!(json["deltas"], serde_json::json!(["os-2-from-1.sealift"]), "{json}");
    assert!(!desk.names("channel").iter().any(|name| name.contains("partial")), "{:?}", desk.names("channel"));
    desk.good("verify channel/os-2-from-1.sealift --trust signers");
}

#[test]
fn options_that_a_plan_cannot_have_are_refused() {
    let desk = new_desk();
    publish(&desk, 1..=1, "");
    for line in [
        "publish channel --plan",
        "publish channel --plan --deltas last:1 --commit --key release",
        "publish channel --plan --deltas last:1 --keep last:1",
        "publish channel --commit",
        "publish channel --commit --key release --deltas last:2",
        "publish channel --make ../os-1.sealift",
        "publish os-1.sealift channel --make os-1.sealift",
        "publish nothing --plan --deltas last:1",
    ] {
        desk.refused(line, 2, "");
    }
}

/// The job array for Slurm makes one delta a task.
#[test]
fn a_task_of_a_job_array_makes_its_delta() {
    if !sealift_desk::has(&["jq"]) {
        return sealift_desk::skipped("needs jq: reads the plan");
    }
    let desk = new_desk();
    publish(&desk, 1..=2, "");
    pack(&desk, 3, "");
    desk.write("plan", desk.out("publish os-3.sealift channel --deltas last:3 --plan -q --jobs 1"));
    let task = |number: u32| {
        let mut task = desk.command_of("sh");
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/examples/publish/deltas.sbatch");
        task.env("PATH", path()).env("SLURM_ARRAY_TASK_ID", number.to_string()).args([script, "plan"]);
        sealift_desk::told(&mut task)
    };
    assert_eq!(task(2).0, Some(0));
    assert_eq!(bundles(&desk), ["os-1.sealift", "os-2.sealift", "os-3-from-2.sealift", "os-3.sealift"]);
    assert_ne!(task(3).0, Some(0), "there are only two");
}
