//! One update from a web server: by a channel with a delta, by the missing chunks of a full bundle, and by casync; without delay, and over a slow line.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use xtask::shell::renew;

use super::job::{Job, Usage, run_all};
use super::line;
use super::places::Places;
use super::report::{Report, float, grouped, seconds};
use super::web::{Sent, Web};
use super::{desktop, ebuilds, slots};
use crate::tree;

const PACK: &str = "sealift pack --force TREE_OF -o SCRATCH/follow/TO.sealift --name os --bundle-version VERSION --key SCRATCH/key --progress none";
const SMALL_CHUNKS: &str = "--chunk-size 64KiB";
const APART: &str = "--apart-from SCRATCH/follow/old.sealift";
/// Channels: one has both versions and a delta, the others only the new version.
const PUBLISH: [&str; 5] = [
    "sealift publish SCRATCH/follow/old.sealift SCRATCH/www/delta --key SCRATCH/key --progress none",
    "sealift publish SCRATCH/follow/new.sealift SCRATCH/www/delta --key SCRATCH/key --deltas last:1 --progress none",
    "sealift publish SCRATCH/follow/new.sealift SCRATCH/www/full --key SCRATCH/key --progress none",
    "sealift publish SCRATCH/follow/apart.sealift SCRATCH/www/apart --key SCRATCH/key --progress none",
    "sealift publish SCRATCH/follow/small.sealift SCRATCH/www/small --key SCRATCH/key --progress none",
];
const MAKE: &str = "casync make --store=SCRATCH/www/store.castr SCRATCH/www/new.caidx TREE_OF";
const FIRST: &str = "sealift unpack SCRATCH/follow/old.sealift SCRATCH/device --trust SCRATCH/allowed_signers --state SCRATCH/device-state --progress none";
const TAKE: &str = "sealift unpack ADDRESS/CHANNEL/ SCRATCH/device --update --delete --trust SCRATCH/allowed_signers --state SCRATCH/device-state --progress none";
const EXTRACT: &str =
    "casync extract --store=ADDRESS/store.castr --seed=SCRATCH/device ADDRESS/new.caidx SCRATCH/extracted";
/// Contents alone: casync need not keep what rsync compares.
const CHECK: &str = "rsync -rlcni --delete TREE_OF/ MADE/";

/// One way to the new version.
struct Way {
    name: &'static str,
    line: &'static str,
    channel: &'static str,
    made: &'static str,
}

const WAYS: [Way; 5] = [
    Way { name: "a delta", line: TAKE, channel: "delta", made: "SCRATCH/device" },
    Way { name: "missing chunks", line: TAKE, channel: "full", made: "SCRATCH/device" },
    Way { name: "missing chunks, what is new apart", line: TAKE, channel: "apart", made: "SCRATCH/device" },
    Way { name: "missing chunks, packed with 64 KiB", line: TAKE, channel: "small", made: "SCRATCH/device" },
    Way { name: "casync", line: EXTRACT, channel: "", made: "SCRATCH/extracted" },
];

/// What one way took.
struct Taken {
    usage: Usage,
    sent: Sent,
}

pub(super) fn add(report: &mut Report, web: &Web, is_small: bool, places: &Places) -> Result<()> {
    let (old, new) = trees(is_small, places)?;
    renew(&places.path("SCRATCH/follow"))?;
    let packed = [
        (&old, "old", "1", ""),
        (&new, "new", "2", ""),
        (&new, "apart", "2", APART),
        (&new, "small", "2", SMALL_CHUNKS),
    ];
    for (tree, to, version, more) in packed {
        let line = PACK.replace("TO", to).replace("VERSION", version).replace("TREE_OF", &tree.display().to_string());
        Job::new(&format!("{line} {more}"), places).run()?;
    }
    run_all(&PUBLISH, places)?;
    Job::new(&MAKE.replace("TREE_OF", &new.display().to_string()), places).run()?;

    let slow = line::to(web.port)?;
    let mut found = Vec::new();
    for way in &WAYS {
        let take = |port: u16| take(way, port, &new, web, places);
        let (direct, slow) = (take(web.port)?, take(slow)?);
        println!(
            "   {}: {} bytes, {} requests, {} s; {} s over the line",
            way.name,
            grouped(direct.sent.bytes),
            direct.sent.requests,
            seconds(direct.usage.wall),
            seconds(slow.usage.wall)
        );
        found.push((way, direct, slow));
    }
    judge(report, &found, &new)?;
    places.remove(&["SCRATCH/follow", "SCRATCH/www", "SCRATCH/device", "SCRATCH/device-state", "SCRATCH/extracted"])?;
    fs::create_dir(places.path("SCRATCH/www"))?;
    if is_small { places.remove(&["SCRATCH/follow-old", "SCRATCH/follow-new"]) } else { Ok(()) }
}

/// Returns the old and the new tree.
fn trees(is_small: bool, places: &Places) -> Result<(PathBuf, PathBuf)> {
    if !is_small {
        return desktop::roots_with(["slot-before", "slot-after"], &slots::PACKAGES);
    }
    let [old, new] = ["SCRATCH/follow-old", "SCRATCH/follow-new"].map(|word| places.path(word));
    for (tree, weeks) in [(&old, 0), (&new, 1)] {
        renew(tree)?;
        ebuilds::write(tree, ebuilds::FEW_CATEGORIES, &ebuilds::WEEKLY, weeks)?;
    }
    Ok((old, new))
}

/// Updates a device that has the old version, from the server at `port`.
fn take(way: &Way, port: u16, new: &Path, web: &Web, places: &Places) -> Result<Taken> {
    places.remove(&["SCRATCH/device", "SCRATCH/device-state", "SCRATCH/extracted"])?;
    Job::new(FIRST, places).run()?;
    web.sent()?;
    let address = format!("http://127.0.0.1:{port}");
    let usage = Job::new(&way.line.replace("ADDRESS", &address).replace("CHANNEL", way.channel), places).run()?;
    let sent = web.sent()?;
    let check = CHECK.replace("TREE_OF", &new.display().to_string()).replace("MADE", way.made);
    Job::new(&check, places).finds_nothing(way.name)?;
    Ok(Taken { usage, sent })
}

fn judge(report: &mut Report, found: &[(&Way, Taken, Taken)], new: &Path) -> Result<()> {
    let (peer, ours) = found.split_last().context("there are ways")?;
    let (_, casync, _) = peer;
    for ((way, direct, slow), most) in ours.iter().zip([0.5, 1.2, 1.2, 1.2]) {
        let ratio = |own: u64, other: u64| float(own) / float(other);
        let bytes = ratio(direct.sent.bytes, casync.sent.bytes);
        report.at_most(format!("channel, update by {}: bytes, to casync", way.name), bytes, most, 3, "");
        let requests = ratio(direct.sent.requests, casync.sent.requests);
        report.at_most(format!("channel, update by {}: requests, to casync", way.name), requests, 0.125, 4, "");
        let time = slow.usage.wall.as_secs_f64() / (float(slow.sent.bytes) / line::RATE);
        report.at_most(
            format!("channel, update by {}, over a slow line: seconds, to those of the bytes", way.name),
            time,
            1.1,
            2,
            "",
        );
    }
    let extent = tree::extent(new)?;
    let mut text = format!(
        "To a tree of {} files and {} bytes, from nginx on this machine; \"over a line\" through a proxy that lets 20 Mbit/s pass in all, {} ms after they were asked for and after a connection is opened.\n\n\
         | by | bytes | requests | seconds | peak, MiB | over a line: bytes | requests | seconds | the bytes' time, s |\n| --- | --: | --: | --: | --: | --: | --: | --: | --: |\n",
        grouped(extent.files),
        grouped(extent.bytes),
        line::DELAY.as_millis()
    );
    for (way, direct, slow) in found {
        text.push_str(&format!(
            "| {} | {} | {} | {} | {:.0} | {} | {} | {} | {:.2} |\n",
            way.name,
            grouped(direct.sent.bytes),
            grouped(direct.sent.requests),
            seconds(direct.usage.wall),
            float(direct.usage.peak_bytes) / 1024.0 / 1024.0,
            grouped(slow.sent.bytes),
            grouped(slow.sent.requests),
            seconds(slow.usage.wall),
            float(slow.sent.bytes) / line::RATE,
        ));
    }
    text.push_str(&format!(
        "\nBytes are those of answers, with their headers.\n\n- `{TAKE}`\n- `{EXTRACT}`\n- `{MAKE}`\n"
    ));
    report.section("An update from a web server, beside casync", &text);
    Ok(())
}
