//! The power fails: what was written but not flushed may be lost, each block by itself. The old slot is untouched; the new one is complete, or nothing
//! recognizes it; and the next run completes it.
//!
//! A run is killed at a system call, and strace tells what it wrote until then. Of what it wrote after the last flush, each block of 4 KiB then gets its
//! old content back, or keeps the new one, by chance.

use std::collections::HashMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;

use sealift_desk::noise;

use crate::desk::{LEN, MIB, Slots, assert_has, image, start_of};

const BLOCK: usize = 4096;
/// How often the power fails, at least.
const CUTS: usize = 40;

/// A change of the slot, from the trace.
#[derive(Clone, Copy)]
enum Change {
    Write { at: usize, len: usize },
    Hole { at: usize, len: usize },
    Flush,
}

/// Returns the changes of a file in a trace that shows paths and no content.
fn changes(trace: &str, file: &str) -> Vec<Change> {
    let (mut changes, mut begun) = (Vec::new(), HashMap::new());
    for line in trace.lines() {
        let Some((thread, line)) = line.split_once(' ') else { continue };
        // A call that another thread's interrupts in the trace is in two lines.
        let line = match (line.trim_start().split_once(" resumed>"), line.split_once(" <unfinished")) {
            (Some((_, end)), _) => format!("{}{end}", begun.remove(thread).unwrap_or_default()),
            (None, Some((start, _))) => {
                begun.insert(thread, start.to_owned());
                continue;
            }
            (None, None) => line.to_owned(),
        };
        changes.extend(change(&line, file));
    }
    // What did not return may have been done.
    changes.extend(begun.values().filter_map(|line| change(line, file)));
    changes
}

fn change(line: &str, file: &str) -> Option<Change> {
    let (call, rest) = line.trim_start().split_once('(')?;
    if !rest.contains(&format!("{file}>")) || line.contains(" = -1 ") {
        return None;
    }
    let arguments: Vec<&str> = rest.split(')').next()?.split(", ").collect();
    let number = |at: usize| arguments.get(at)?.trim().parse::<usize>().ok();
    match call {
        "pwrite64" => Some(Change::Write { at: number(3)?, len: number(2)? }),
        "fallocate" => Some(Change::Hole { at: number(2)?, len: number(3)? }),
        "fdatasync" if line.ends_with("= 0") => Some(Change::Flush),
        _ => None,
    }
}

/// Loses what was not flushed: block by block, by chance.
fn lose(slots: &Slots, changes: &[Change], before: &[u8], seed: usize) {
    let flushed = changes.iter().rposition(|change| matches!(change, Change::Flush)).map_or(0, |at| at + 1);
    // The content that was durable: what was there before, and then each flushed change, in order. Zeros at the start come first, the head last.
    let mut durable = before.to_vec();
    let end = image(2);
    let mut is_begun = false;
    for change in &changes[..flushed] {
        match *change {
            Change::Write { at: 0, len } if !is_begun => {
                durable[..len].fill(0);
                is_begun = true;
            }
            Change::Write { at, len } => durable[at..at + len].copy_from_slice(&end[at..at + len]),
            Change::Hole { at, len } => durable[at..at + len].fill(0),
            Change::Flush => {}
        }
    }
    let file = File::options().write(true).open(slots.path("b")).unwrap();
    let chance = noise(seed, LEN.div_ceil(BLOCK));
    for change in &changes[flushed..] {
        let (Change::Write { at, len } | Change::Hole { at, len }) = *change else { continue };
        let blocks = (at / BLOCK)..(at + len).div_ceil(BLOCK).min(chance.len());
        for (block, _) in chance.iter().enumerate().filter(|(block, chance)| blocks.contains(block) && **chance < 128) {
            let range = block * BLOCK..LEN.min((block + 1) * BLOCK);
            file.write_all_at(&durable[range.clone()], range.start.try_into().unwrap()).unwrap();
        }
    }
}

#[test]
fn the_new_slot_is_whole_or_nothing_and_the_old_one_stays() {
    let slots = Slots::new();
    slots.does("unpack 1.sealift image:a");
    // Noise, so that each lost block can be told.
    let before = noise(99, LEN);
    let (mut cuts, mut whole) = (0, 0);
    let calls = [("pwrite64", 12), ("fdatasync", 5), ("fallocate", 2)];
    for (seed, (call, when)) in
        calls.iter().flat_map(|(call, times)| (1..=*times).map(move |when| (call, when))).cycle().enumerate()
    {
        if cuts == CUTS {
            break;
        }
        assert!(seed < 10 * CUTS, "only {cuts} runs could be cut");
        slots.write("b", &before);
        let inject = format!("inject={call}:signal=SIGKILL:when={when}");
        let options = ["-y", "-s", "0", "-o", "trace", "-e", "trace=pwrite64,fallocate,fdatasync", "-e", &inject];
        let line = "unpack 2.sealift image:b --jobs 1 --adopt";
        let Some(mut run) = slots.strace(&options, &format!("{line} --trust signers")) else { return };
        if run.output().unwrap().status.success() {
            fs::remove_file(slots.path("b")).unwrap();
            fs::remove_dir_all(slots.path("state")).unwrap();
            slots.does("unpack 1.sealift image:a --adopt");
            continue;
        }
        cuts += 1;
        lose(&slots, &changes(&slots.text("trace"), &slots.path("b").display().to_string()), &before, seed);
        assert_has(slots.path("a"), 1);
        let is_whole = start_of(slots.path("b"), LEN) == image(2);
        let is_nothing = start_of(slots.path("b"), BLOCK).iter().all(|byte| *byte == 0);
        let is_untouched = start_of(slots.path("b"), LEN) == before;
        // Until the first zeros are durable, the slot has what it had; afterwards its first block comes last.
        let is_beginning = start_of(slots.path("b"), LEN)[MIB..] == before[MIB..];
        assert!(is_whole || is_nothing || is_untouched || is_beginning, "{call} {when}: {seed}");
        whole += usize::from(is_whole);
        slots.does(line);
        assert_has(slots.path("b"), 2);
        slots.does("audit image:b");
        fs::remove_dir_all(slots.path("state")).unwrap();
        slots.does("unpack 1.sealift image:a --adopt");
    }
    assert!(whole > 0 && whole < cuts, "{whole} of {cuts}");
}
