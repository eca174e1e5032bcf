//! What a thousand devices fetch from one channel, if as many of them have each of the twenty versions before the newest. A device of each version really
//! fetches it.

use std::fs;

use anyhow::Result;

use super::job::Job;
use super::places::Places;
use super::publishing::NEWEST;
use super::report::{Report, float, grouped};
use super::web::{Sent, Web};

const DEVICES: u64 = 1000;
/// How many versions are held.
const HELD: u64 = 20;
/// US dollars a gigabyte, and for a request by https: Amazon CloudFront's list price for the United States, Mexico and Canada, up to 10 TB a month.
const OF_GIGABYTE: f64 = 0.085;
const OF_REQUEST: f64 = 0.0100 / 10_000.0;
const PRICE: &str = "Amazon CloudFront's list price, as its page aws.amazon.com/cloudfront/pricing states it: in the United States, Mexico and Canada, the first 10 TB of a month, 0.085 USD a GB and 0.0100 USD for 10,000 requests by https";

const PUBLISH: &str = "sealift publish SCRATCH/days/VERSION.sealift SCRATCH/www/CHANNEL --key SCRATCH/key --deltas last:7 --progress none";
const FIRST: &str = "sealift unpack SCRATCH/days/VERSION.sealift SCRATCH/device --trust SCRATCH/allowed_signers --state SCRATCH/device-state --durability none --progress none";
const TAKE: &str = "sealift unpack http://127.0.0.1:PORT/CHANNEL/ SCRATCH/device --update --delete --trust SCRATCH/allowed_signers --state SCRATCH/device-state --durability none --json --progress none";

/// What the device of a version fetches.
struct Fetched {
    version: u64,
    /// How many bundles and deltas it installs.
    steps: usize,
    by_deltas: Sent,
    by_chunks: Sent,
}

pub(super) fn add(report: &mut Report, web: &Web, places: &Places) -> Result<()> {
    let publish = |version: u64, channel: &str| {
        let line = PUBLISH.replace("VERSION", &version.to_string()).replace("CHANNEL", channel);
        Job::new(&line, places).run()
    };
    for version in NEWEST - HELD..=NEWEST {
        publish(version, "followed")?;
    }
    publish(NEWEST, "alone")?;
    let mut found = Vec::new();
    for version in NEWEST - HELD..NEWEST {
        let fetch = |channel: &str| fetch(version, channel, web, places);
        let ((steps, by_deltas), (_, by_chunks)) = (fetch("followed")?, fetch("alone")?);
        println!("   version {version}: {} bytes, or {}", grouped(by_deltas.bytes), grouped(by_chunks.bytes));
        found.push(Fetched { version, steps, by_deltas, by_chunks });
    }
    let full = fs::metadata(places.path(&format!("SCRATCH/days/{NEWEST}.sealift")))?.len();
    report.section("A thousand devices that follow one channel", &text(&found, full));
    places.remove(&["SCRATCH/device", "SCRATCH/device-state"])
}

/// Returns how many bundles a device with this version installs from a channel, and what the server sends.
fn fetch(version: u64, channel: &str, web: &Web, places: &Places) -> Result<(usize, Sent)> {
    places.remove(&["SCRATCH/device", "SCRATCH/device-state"])?;
    Job::new(&FIRST.replace("VERSION", &version.to_string()), places).run()?;
    web.sent()?;
    let line = TAKE.replace("PORT", &web.port.to_string()).replace("CHANNEL", channel);
    let said = Job::new(&line, places).output()?;
    Ok((said.lines().count(), web.sent()?))
}

fn text(found: &[Fetched], full: u64) -> String {
    let mut text = format!(
        "The channel has the newest {} days of the tree, published one after the other with `--deltas last:7`; \"without deltas\" is a channel that has only the newest bundle. One device each.\n\n\
         | versions behind | installs | bytes | requests | without deltas: bytes | requests |\n| --: | --: | --: | --: | --: | --: |\n",
        HELD + 1
    );
    let (mut by_deltas, mut by_chunks) = (Sent::default(), Sent::default());
    let devices = DEVICES / HELD;
    for fetched in found {
        text.push_str(&format!(
            "| {} | {} | {} | {} | {} | {} |\n",
            NEWEST - fetched.version,
            fetched.steps,
            grouped(fetched.by_deltas.bytes),
            fetched.by_deltas.requests,
            grouped(fetched.by_chunks.bytes),
            fetched.by_chunks.requests,
        ));
        for (sum, sent) in [(&mut by_deltas, fetched.by_deltas), (&mut by_chunks, fetched.by_chunks)] {
            sum.bytes += devices * sent.bytes;
            sum.requests += devices * sent.requests;
        }
    }
    text.push_str(&format!(
        "\n{DEVICES} devices, {devices} of each version:\n\n| | bytes | requests | USD |\n| --- | --: | --: | --: |\n"
    ));
    let whole = Sent { bytes: DEVICES * full, requests: DEVICES };
    for (what, sum) in [("by deltas", by_deltas), ("without deltas", by_chunks), ("the whole bundle each", whole)] {
        let money = float(sum.bytes) / 1e9 * OF_GIGABYTE + float(sum.requests) * OF_REQUEST;
        text.push_str(&format!("| {what} | {} | {} | {money:.4} |\n", grouped(sum.bytes), grouped(sum.requests)));
    }
    text.push_str(&format!("\nThe price is {PRICE}.\n\n- `{PUBLISH}`\n- `{TAKE}`\n"));
    text
}
