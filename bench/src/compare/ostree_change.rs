//! Imports the next commit into a repository that has the previous one: time by the size of the change.

use std::fs::File;
use std::io::Write as _;

use anyhow::{Context, Result};
use serde_json::Value;

use super::job::{Job, Usage, median, number};
use super::places::Places;
use super::report::{Report, float, grouped, seconds};
use crate::tree;

const COMMIT: &str = "ostree --repo=SCRATCH/ostree commit --branch=linux --tree=dir=SCRATCH/changed --owner-uid=0 --owner-gid=0 --no-xattrs";
const PACK: &str = "sealift pack --force ostree:SCRATCH/ostree --ref linux -o SCRATCH/ostree.sealift --name linux --bundle-version N --key SCRATCH/key --progress none";
const TAKE: &str = "sealift unpack SCRATCH/ostree.sealift ostree:SCRATCH/to --trust SCRATCH/allowed_signers --state SCRATCH/ostree-state --json --progress none";
const BASE: &str = "ostree --repo=SCRATCH/to pull-local SCRATCH/ostree linux";

/// One file in this many changes; 0 for none.
const STEPS: [usize; 5] = [0, 1000, 100, 10, 1];

pub(crate) fn add(report: &mut Report, runs: usize, places: &Places) -> Result<()> {
    let run = |line: &str| Job::new(line, places).run();
    run("ostree --repo=SCRATCH/ostree init --mode=bare-user")?;
    let mut text = String::from(
        "Into bare-user, in memory; the repository has the commit before.\n\n\
         | files that change | seconds | user | system | read of the bundle | objects written |\n| --: | --: | --: | --: | --: | --: |\n",
    );
    for (version, step) in (1..).zip(STEPS) {
        places.remove(&["SCRATCH/changed"])?;
        run("cp -a TREE SCRATCH/changed")?;
        run(COMMIT)?;
        let mut usages: Vec<Usage> = Vec::new();
        let files = tree::files(&places.path("SCRATCH/changed"))?;
        // The base is packed before there is another commit, since it would contain that one as well.
        places.remove(&["SCRATCH/base"])?;
        run("ostree --repo=SCRATCH/to init --mode=bare-user")?;
        run(BASE)?;
        run("mv SCRATCH/to SCRATCH/base")?;
        let mut count = 0;
        for file in files.iter().step_by(step.max(1)).filter(|_| step > 0) {
            writeln!(File::options().append(true).open(file)?, "One line more.")
                .with_context(|| format!("cannot write to {}", file.display()))?;
            count += 1;
        }
        run(COMMIT)?;
        run(&PACK.replace('N', &version.to_string()))?;
        let mut summary = Value::Null;
        for number in 0..=runs {
            // The device must not know the repository that it takes this one for.
            places.remove(&["SCRATCH/to", "SCRATCH/ostree-state"])?;
            run("cp -a SCRATCH/base SCRATCH/to")?;
            tree::read_all(&places.path("SCRATCH/ostree.sealift"))?;
            let job = Job::new(TAKE, places);
            match number {
                0 => summary = job.json()?,
                _ => usages.push(job.run()?),
            }
        }
        run("ostree --repo=SCRATCH/to fsck --quiet")?;
        let middle = median(&usages);
        println!("   {count} files: {:.3} s", middle.wall.as_secs_f64());
        let number = |key: &str| number(&summary, key);
        text.push_str(&format!(
            "| {} | {} | {} | {} | {:.1} MB | {} |\n",
            grouped(count),
            seconds(middle.wall),
            seconds(middle.user),
            seconds(middle.system),
            float(number("stored_bytes")?) / 1e6,
            grouped(number("files")? + number("metadata")? + number("commits")?),
        ));
        places.remove(&["SCRATCH/ostree.sealift"])?;
    }
    places.remove(&["SCRATCH/changed", "SCRATCH/base", "SCRATCH/to", "SCRATCH/ostree"])?;
    text.push_str(&format!("\n- `{TAKE}`"));
    report.section("From one commit of an OSTree repository to the next", &text);
    Ok(())
}
