//! Between OSTree repositories: a bundle beside `ostree create-usb` and `ostree pull-local`, with the system calls of each.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use xtask::shell::output;

use super::job::{Job, Usage, median};
use super::places::Places;
use super::report::{Report, float, seconds};

const COLLECTION: &str = "org.example.Tree";

/// The two steps of a transfer, and the targets for their figures.
struct Way {
    name: &'static str,
    mode: &'static str,
    /// Where the medium and the repository are.
    place: &'static str,
    /// The command that creates the medium, and the one that imports it into `TO`.
    steps: [&'static str; 2],
}

const OURS: [&str; 2] = [
    "sealift pack --force ostree:SCRATCH/ostree --ref linux -o MEDIUM/ostree.sealift --name linux --bundle-version 1 --key SCRATCH/key --progress none",
    "sealift unpack MEDIUM/ostree.sealift ostree:TO --trust SCRATCH/allowed_signers --state SCRATCH/ostree-state --progress none",
];
const USB: [&str; 2] = [
    "ostree --repo=SCRATCH/ostree create-usb MEDIUM org.example.Tree linux",
    "ostree --repo=TO pull-local MEDIUM/.ostree/repo COMMIT",
];

const WAYS: [Way; 6] = [
    Way { name: "sealift, to bare-user", mode: "bare-user", place: "SCRATCH", steps: OURS },
    Way { name: "create-usb and pull-local, to bare-user", mode: "bare-user", place: "SCRATCH", steps: USB },
    Way { name: "sealift, to archive", mode: "archive", place: "SCRATCH", steps: OURS },
    Way { name: "create-usb and pull-local, to archive", mode: "archive", place: "SCRATCH", steps: USB },
    Way { name: "sealift, to bare-user on the disk", mode: "bare-user", place: "DISK", steps: OURS },
    Way { name: "create-usb and pull-local, to bare-user on the disk", mode: "bare-user", place: "DISK", steps: USB },
];

/// The costs of the two steps, by run.
#[derive(Default)]
struct Samples {
    make: Vec<Usage>,
    take: Vec<Usage>,
}

pub(crate) fn add(report: &mut Report, runs: usize, places: &Places) -> Result<()> {
    let run = |line: &str| Job::new(line, places).run();
    run(&format!("ostree --repo=SCRATCH/ostree init --mode=bare-user --collection-id={COLLECTION}"))?;
    println!("   committing the tree");
    run("ostree --repo=SCRATCH/ostree commit --branch=linux --tree=dir=TREE --owner-uid=0 --owner-gid=0 --no-xattrs")?;
    let commit = Job::new("ostree --repo=SCRATCH/ostree rev-parse linux", places).output()?.trim().to_owned();
    let line = |text: &str, medium: &str, to: &str| {
        text.replace("MEDIUM", medium).replace("TO", to).replace("COMMIT", &commit)
    };

    let mut all: Vec<Samples> = WAYS.iter().map(|_| Samples::default()).collect();
    for number in 1..=runs {
        for (way_number, (way, samples)) in WAYS.iter().zip(&mut all).enumerate() {
            // Removing files from ext4 slows down later runs: there, each run uses names of its own, and all are removed at the end.
            let [medium, to] = ["medium", "to"].map(|name| format!("{}/{name}-{way_number}-{number}", way.place));
            fs::create_dir(places.path(&medium))?;
            run(&format!("ostree --repo={to} init --mode={}", way.mode))?;
            run("sync -f DISK")?;
            let [make, take] = way.steps.map(|step| line(step, &medium, &to));
            let (make, take) = (run(&make)?, run(&take)?);
            println!(
                "   {number}/{runs} {}: {:.3} s and {:.3} s",
                way.name,
                make.wall.as_secs_f64(),
                take.wall.as_secs_f64()
            );
            samples.make.push(make);
            samples.take.push(take);
            if number == 1 {
                let fsck = format!("ostree --repo={to} fsck {}", if way.steps == OURS { "" } else { "--quiet" });
                run(&fsck).with_context(|| format!("{}: the repository is not sound", way.name))?;
            }
            if way.place == "SCRATCH" {
                places.remove(&[&medium, &to])?;
            }
        }
    }
    let mut text = table(&all);
    text.push_str(&calls_of(places, &line)?);
    judge(report, &all);
    for step in OURS.iter().chain(&USB) {
        text.push_str(&format!("\n- `{}`", line(step, "SCRATCH/medium", "SCRATCH/to")));
    }
    report.section("From one OSTree repository to another", &text);
    places.remove(&["SCRATCH/medium", "SCRATCH/to", "SCRATCH/ostree"])?;
    Ok(())
}

/// Returns the seconds of wall time and of CPU for both steps.
fn whole(samples: &Samples) -> (f64, f64) {
    let (make, take) = (median(&samples.make), median(&samples.take));
    ((make.wall + take.wall).as_secs_f64(), (make.cpu() + take.cpu()).as_secs_f64())
}

fn judge(report: &mut Report, all: &[Samples]) {
    let [ours, usb, archive, usb_archive, ours_disk, usb_disk] = all else { return };
    let mut verdict = |what: &str, figure: f64, least: f64| report.at_least(what, figure, least, 1, " times");
    for (place, ours, usb) in [("", ours, usb), (" on the disk", ours_disk, usb_disk)] {
        let what = format!("OSTree, to bare-user{place}: faster than create-usb and pull-local");
        verdict(&what, whole(usb).0 / whole(ours).0, 6.0);
        verdict(&format!("OSTree, to bare-user{place}: less CPU than they"), whole(usb).1 / whole(ours).1, 3.0);
    }
    let create_usb = median(&usb_archive.make).wall.as_secs_f64();
    verdict("OSTree, to archive: faster than create-usb alone", create_usb / whole(archive).0, 3.0);
}

fn table(all: &[Samples]) -> String {
    let mut text =
        "| | make, s | take, s | both, s | each run | CPU, s |\n| --- | --: | --: | --: | --- | --: |\n".to_owned();
    for (way, samples) in WAYS.iter().zip(all) {
        let (make, take) = (median(&samples.make), median(&samples.take));
        let each: Vec<_> = samples.make.iter().zip(&samples.take).map(|(a, b)| seconds(a.wall + b.wall)).collect();
        text.push_str(&format!(
            "| {} | {} | {} | {} | {} | {} |\n",
            way.name,
            seconds(make.wall),
            seconds(take.wall),
            seconds(make.wall + take.wall),
            each.join(" "),
            seconds(make.cpu() + take.cpu()),
        ));
    }
    text
}

/// Counts system calls per object with strace, in runs whose time is not measured.
fn calls_of(places: &Places, line: &dyn Fn(&str, &str, &str) -> String) -> Result<String> {
    let mut text = "\n| `strace -c -f` | calls | an object |\n| --- | --: | --: |\n".to_owned();
    let objects =
        output(Command::new("find").arg(places.path("SCRATCH/ostree/objects")).args(["-type", "f"]))?.lines().count();
    ensure!(objects > 0, "the repository has no objects");
    let [make, take] = OURS;
    fs::create_dir(places.path("SCRATCH/medium"))?;
    Job::new(&line(make, "SCRATCH/medium", ""), places).run()?;
    for (name, step) in [("sealift unpack, to bare-user", take), ("ostree create-usb", USB[0])] {
        places.remove(&["SCRATCH/to"])?;
        Job::new("ostree --repo=SCRATCH/to init --mode=bare-user", places).run()?;
        Job::new(&format!("strace -c -f -o SCRATCH/calls {}", line(step, "SCRATCH/medium", "SCRATCH/to")), places)
            .run()?;
        let table = fs::read_to_string(places.path("SCRATCH/calls"))?;
        let total = table.lines().last().context("strace wrote no table")?;
        let calls: u64 = total.split_whitespace().nth(3).context("a total has four columns")?.parse()?;
        let each = float(calls) / float(u64::try_from(objects)?);
        text.push_str(&format!("| {name} | {calls} | {each:.1} |\n"));
    }
    Ok(text)
}
