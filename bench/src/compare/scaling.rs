//! Ten times the files: time and memory must grow no faster.

use anyhow::Result;

use super::contenders::{Contender, PACK_SMALL_FILES, UNPACK_SMALL_FILES};
use super::job::{Job, Usage, median};
use super::places::Places;
use super::report::{Report, grouped, seconds};
use crate::tree;

/// How much more one file may cost if there are ten times as many.
const TOLERANCE: f64 = 1.25;

/// The cost of a file on average, or of one more file.
struct Costs {
    name: &'static str,
    /// For each number of files: seconds per file, peak bytes.
    points: Vec<(u32, f64, f64)>,
}

pub(crate) fn add(report: &mut Report, skip_large: bool, runs: usize, places: &Places) -> Result<()> {
    let counts = if skip_large { [1_000, 10_000, 100_000] } else { [10_000, 100_000, 1_000_000] };
    let mut all = [&PACK_SMALL_FILES, &UNPACK_SMALL_FILES].map(|one| Costs { name: one.name, points: Vec::new() });
    let mut text = String::from(
        "| files | command | seconds | µs a file | user | system | peak MiB |\n| --: | --- | --: | --: | --: | --: | --: |\n",
    );
    for count in counts {
        let files = places.path("SCRATCH/files");
        tree::write_small_files(&files, count)?;
        for (contender, costs) in [&PACK_SMALL_FILES, &UNPACK_SMALL_FILES].into_iter().zip(&mut all) {
            let (usage, peak_bytes) = measure(contender, runs, places)?;
            println!("   {count} files, {}: {:.3} s", contender.name, usage.wall.as_secs_f64());
            let each = usage.wall.as_secs_f64() / f64::from(count);
            let peak = super::report::float(peak_bytes);
            costs.points.push((count, each, peak));
            text.push_str(&format!(
                "| {} | {} | {} | {:.2} | {} | {} | {:.0} |\n",
                grouped(count.into()),
                contender.name,
                seconds(usage.wall),
                each * 1e6,
                seconds(usage.user),
                seconds(usage.system),
                peak / 1024.0 / 1024.0,
            ));
        }
        places.remove(&["SCRATCH/files", "SCRATCH/files.sealift", "SCRATCH/new"])?;
    }
    all.iter().for_each(|costs| costs.judge(report));
    for contender in [&PACK_SMALL_FILES, &UNPACK_SMALL_FILES] {
        text.push_str(&format!("\n- `{}`", contender.line));
    }
    report.section("Small files, ten times as many each time", &text);
    Ok(())
}

/// Returns the run of median time, and the highest peak.
fn measure(contender: &Contender, runs: usize, places: &Places) -> Result<(Usage, u64)> {
    let mut usages = Vec::new();
    for _ in 0..runs {
        places.remove(contender.makes.as_slice())?;
        tree::read_all(&places.path("SCRATCH/files"))?;
        usages.push(Job::new(contender.line, places).run()?);
    }
    let peak_bytes = usages.iter().map(|usage| usage.peak_bytes).max().unwrap_or_default();
    Ok((median(&usages), peak_bytes))
}

impl Costs {
    /// Compares the last number of files with the one before.
    fn judge(&self, report: &mut Report) {
        let [.., middle, last] = self.points.as_slice() else { return };
        let time = last.1 / middle.1;
        let memory = last.2 / middle.2;
        let counts = format!("{} to {} files", grouped(last.0.into()), grouped(middle.0.into()));
        let more = f64::from(last.0) / f64::from(middle.0);
        report.at_most(format!("{}: time a file, {counts}", self.name), time, TOLERANCE, 2, "");
        report.at_most(format!("{}: memory, {counts}", self.name), memory, more, 1, " times");
    }
}
