//! A whole commit in one file: a bundle beside a static delta from scratch. Each way runs once, since they take minutes.

use std::fs;

use anyhow::{Result, ensure};

use super::job::{Job, Usage};
use super::places::Places;
use super::report::{Report, float, grouped, seconds};

/// The command that creates the file, and the one that imports it into the repository `TO`.
struct Way {
    name: &'static str,
    make: &'static str,
    take: &'static str,
    file: &'static str,
}

const TAKE: &str = "sealift unpack SCRATCH/whole.sealift ostree:TO --trust SCRATCH/allowed_signers --state SCRATCH/whole-state --progress none";

const WAYS: [Way; 4] = [
    Way {
        name: "static delta",
        make: "ostree --repo=SCRATCH/ostree static-delta generate --empty --inline --min-fallback-size=0 --filename=SCRATCH/whole.delta linux",
        take: "ostree --repo=TO static-delta apply-offline SCRATCH/whole.delta",
        file: "SCRATCH/whole.delta",
    },
    Way {
        name: "sealift, level 3",
        make: "sealift pack --force ostree:SCRATCH/ostree --ref linux -o SCRATCH/whole.sealift --name linux --bundle-version 1 --level 3 --key SCRATCH/key --progress none",
        take: TAKE,
        file: "SCRATCH/whole.sealift",
    },
    Way {
        name: "sealift, level 19",
        make: "sealift pack --force ostree:SCRATCH/ostree --ref linux -o SCRATCH/whole.sealift --name linux --bundle-version 1 --level 19 --key SCRATCH/key --progress none",
        take: TAKE,
        file: "SCRATCH/whole.sealift",
    },
    Way {
        name: "sealift, level 19, chunks of 16 MiB",
        make: "sealift pack --force ostree:SCRATCH/ostree --ref linux -o SCRATCH/whole.sealift --name linux --bundle-version 1 --level 19 --chunk-size 16MiB --key SCRATCH/key --progress none",
        take: TAKE,
        file: "SCRATCH/whole.sealift",
    },
];

struct Sample {
    make: Usage,
    take: Usage,
    bytes: u64,
}

pub(crate) fn add(report: &mut Report, places: &Places) -> Result<()> {
    let run = |line: &str| Job::new(line, places).run();
    run("ostree --repo=SCRATCH/ostree init --mode=bare-user")?;
    run("ostree --repo=SCRATCH/ostree commit --branch=linux --tree=dir=TREE --owner-uid=0 --owner-gid=0 --no-xattrs")?;
    let mut samples = Vec::new();
    for way in &WAYS {
        places.remove(&[way.file, "SCRATCH/to", "SCRATCH/whole-state"])?;
        run("ostree --repo=SCRATCH/to init --mode=bare-user")?;
        let make = run(way.make)?;
        let take = run(&way.take.replace("TO", "SCRATCH/to"))?;
        let bytes = fs::metadata(places.path(way.file))?.len();
        println!("   {}: {:.1} s and {:.1} s", way.name, make.wall.as_secs_f64(), take.wall.as_secs_f64());
        run("ostree --repo=SCRATCH/to fsck --quiet")?;
        samples.push(Sample { make, take, bytes });
    }
    places.remove(&["SCRATCH/ostree", "SCRATCH/to", "SCRATCH/whole.delta", "SCRATCH/whole.sealift"])?;
    judge(report, &samples)?;
    let mut text =
        String::from("| | make, s | CPU, s | take, s | CPU, s | bytes |\n| --- | --: | --: | --: | --: | --: |\n");
    for (way, Sample { make, take, bytes }) in WAYS.iter().zip(&samples) {
        let [make_wall, make_cpu, take_wall, take_cpu] = [make.wall, make.cpu(), take.wall, take.cpu()].map(seconds);
        let bytes = grouped(*bytes);
        text.push_str(&format!("| {} | {make_wall} | {make_cpu} | {take_wall} | {take_cpu} | {bytes} |\n", way.name));
    }
    for way in &WAYS {
        text.push_str(&format!("\n- `{}`", way.make));
    }
    report.section("A whole commit in one file, beside a static delta from nothing", &text);
    Ok(())
}

fn judge(report: &mut Report, samples: &[Sample]) -> Result<()> {
    let [delta, quick, small, smallest] = samples else { return Ok(()) };
    ensure!(delta.bytes > 0, "the static delta is empty");
    let times = |ours: &Sample| delta.make.wall.as_secs_f64() / ours.make.wall.as_secs_f64();
    let share = |ours: &Sample| float(ours.bytes) / float(delta.bytes);
    report.at_least("OSTree, level 3: faster to make than a static delta", times(quick), 50.0, 0, " times");
    report.verdict(
        "OSTree, level 19, chunks of 2 MiB or of 16: faster to make, and bytes to its bytes",
        format!("{:.1} times, {:.2}; {:.1} times, {:.2}", times(small), share(small), times(smallest), share(smallest)),
        "at least 4 times, at most 1.30; or 2 times, 1.12".to_owned(),
        (times(small) >= 4.0 && share(small) <= 1.3) || (times(smallest) >= 2.0 && share(smallest) <= 1.12),
    );
    Ok(())
}
