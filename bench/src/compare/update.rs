//! From one version of a tree to the next: an update by the full bundle and by a delta bundle, beside a fresh unpacking and beside rsync; an update
//! without changes; and resuming an unpacking that was killed half-way.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::job::{Job, Usage, median, number};
use super::places::Places;
use super::report::{Report, each, float, grouped, seconds};
use crate::tree;

const PACK: &str =
    "sealift pack --force FROM -o TO --name tree --level 3 --bundle-version N --key SCRATCH/key --progress none";
const FRESH: &str =
    "sealift unpack SCRATCH/next.sealift TO --trust SCRATCH/allowed_signers --state SCRATCH/next-state --progress none";
const FIRST: &str = "sealift unpack SCRATCH/previous.sealift TO --trust SCRATCH/allowed_signers --state SCRATCH/previous-state --progress none";
const UPDATE: &str = "sealift unpack SCRATCH/next.sealift TO --update --delete --trust SCRATCH/allowed_signers --state SCRATCH/next-state --progress none";
const PACK_DELTA: &str = "sealift pack --force TREE -o SCRATCH/delta.sealift --base SCRATCH/previous.sealift --name tree --level 3 --bundle-version 2 --key SCRATCH/key --trust SCRATCH/allowed_signers --progress none";
const DELTA: &str = "sealift unpack SCRATCH/delta.sealift TO --delete --trust SCRATCH/allowed_signers --state SCRATCH/delta-state --progress none";
const RSYNC: &str = "rsync -a --delete TREE/ TO/ && sync -f TO";
const CHECK: &str = "rsync -aHAXnci --modify-window=-1 --delete TREE/ TO/";

/// The costs of each, by run.
#[derive(Default)]
struct Samples {
    fresh: Vec<Usage>,
    update: Vec<Usage>,
    nothing: Vec<Usage>,
    delta: Vec<Usage>,
    rsync: Vec<Usage>,
    resumed: Vec<Usage>,
}

pub(crate) fn add(report: &mut Report, runs: usize, places: &Places) -> Result<()> {
    let previous = tree::unpack_previous_kernel(&places.path("SCRATCH/previous"))?;
    let job = |line: &str, to: &str| Job::new(&line.replace("TO", to), places);
    let previous_word = previous.display().to_string();
    let pack = |from: &str, to: &str, version: &str| {
        Job::new(&PACK.replace("FROM", from).replace("TO", to).replace(" N ", &format!(" {version} ")), places).run()
    };
    pack(&previous_word, "SCRATCH/previous.sealift", "1")?;
    pack("TREE", "SCRATCH/next.sealift", "2")?;
    Job::new(PACK_DELTA, places).run()?;

    let mut samples = Samples::default();
    for number in 1..=runs {
        // Removing files from ext4 slows down later runs: each run uses names of its own, and all are removed at the end.
        let to = |name: &str| format!("DISK/{name}{number}");
        let timed = |line: &str, name: &str| -> Result<Usage> {
            tree::read_all(&places.path("SCRATCH/next.sealift"))?;
            Job::new("sync -f DISK", places).run()?;
            let usage = job(line, &to(name)).run()?;
            println!("   {number}/{runs} {name}: {:.3} s", usage.wall.as_secs_f64());
            Ok(usage)
        };
        samples.fresh.push(timed(FRESH, "fresh")?);
        job(FIRST, &to("update")).run()?;
        samples.update.push(timed(UPDATE, "update")?);
        samples.nothing.push(timed(UPDATE, "update")?);
        job(CHECK, &to("update")).finds_nothing("the update")?;

        job(FIRST, &to("delta")).run()?;
        samples.delta.push(timed(DELTA, "delta")?);
        job(CHECK, &to("delta")).finds_nothing("the delta")?;

        Job::new(&format!("cp -a {previous_word} {}", to("rsync")), places).run()?;
        tree::read_all(&places.tree)?;
        samples.rsync.push(timed(RSYNC, "rsync")?);

        // The speed of the medium varies: the run is killed after half of the shortest time, so that it cannot end before.
        let half = samples.fresh.iter().map(|usage| usage.wall).min().context("it was run")? / 2;
        kill_after(&job(FRESH, &to("resumed")), half)?;
        ensure!(
            !places.path(&to("resumed")).exists(),
            "the run that was to be killed half-way had ended: run this again"
        );
        samples.resumed.push(timed(FRESH, "resumed")?);
        job(CHECK, &to("resumed")).finds_nothing("going on")?;
    }
    job(FIRST, "DISK/traced").run()?;
    let (written, changed, files) = written_bytes(&UPDATE.replace("TO", "DISK/traced"), places)?;
    judge(report, &samples, written, changed, files);
    Ok(())
}

fn judge(report: &mut Report, samples: &Samples, written: u64, changed: u64, files: u64) {
    let wall = |usages: &[Usage]| median(usages).wall.as_secs_f64();
    let (fresh, update) = (wall(&samples.fresh), wall(&samples.update));
    let mut verdict = |what: &str, figure: f64, limit: f64, unit: &str| report.at_most(what, figure, limit, 2, unit);
    verdict("update: seconds, to a fresh unpacking", update / fresh, 0.25, "");
    verdict("update by a delta bundle: seconds, to a fresh unpacking", wall(&samples.delta) / fresh, 0.25, "");
    verdict("update: seconds, to rsync -a --delete", update / wall(&samples.rsync), 1.0, "");
    verdict("update: bytes written, to those of the files that changed", float(written) / float(changed), 1.05, "");
    verdict("update, nothing to do: time", wall(&samples.nothing), 0.3, " s");
    verdict("unpack, killed half-way and run again: seconds, to a whole run", wall(&samples.resumed) / fresh, 0.6, "");

    let mut text = format!(
        "To the disk, everything written when it ends. {} files of {} bytes changed, all others have another time.\n\n\
         | | seconds | each run | user | system | peak MiB |\n| --- | --: | --- | --: | --: | --: |\n",
        grouped(files),
        grouped(changed)
    );
    let rows = [
        ("a fresh unpacking", &samples.fresh),
        ("update", &samples.update),
        ("update, nothing to do", &samples.nothing),
        ("update by a delta bundle", &samples.delta),
        ("rsync -a --delete", &samples.rsync),
        ("killed half-way, the second run", &samples.resumed),
    ];
    for (name, usages) in rows {
        let middle = median(usages);
        text.push_str(&format!(
            "| {name} | {} | {} | {} | {} | {:.0} |\n",
            seconds(middle.wall),
            each(usages),
            seconds(middle.user),
            seconds(middle.system),
            float(middle.peak_bytes) / 1024.0 / 1024.0,
        ));
    }
    text.push_str(&format!("\nThe update wrote {} bytes, by strace.\n", grouped(written)));
    for line in [FRESH, UPDATE, DELTA, RSYNC] {
        text.push_str(&format!("\n- `{}`", line.replace("TO", "DISK/new")));
    }
    report.section("Update from one Debian version to the next", &text);
}

fn kill_after(job: &Job, time: Duration) -> Result<()> {
    let mut child = job.command()?.stdout(Stdio::null()).spawn()?;
    std::thread::sleep(time);
    child.kill()?;
    child.wait()?;
    Ok(())
}

/// Runs an update under strace. Returns the bytes that it wrote, the bytes of the files that it created, and their number.
fn written_bytes(line: &str, places: &Places) -> Result<(u64, u64, u64)> {
    let trace: PathBuf = places.path("SCRATCH/strace");
    let line = format!("strace -f -e trace=write,pwrite64,copy_file_range -o SCRATCH/strace {line} --json");
    let summary = Job::new(&line, places).json()?;
    let mut written = 0;
    for line in BufReader::new(File::open(trace)?).lines() {
        written += line?.rsplit_once(" = ").and_then(|(_, result)| result.parse::<u64>().ok()).unwrap_or(0);
    }
    Ok((written, number(&summary, "logical_bytes")?, number(&summary, "files")?))
}
