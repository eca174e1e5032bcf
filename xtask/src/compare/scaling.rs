//! Ten times the files: do time and memory grow with them, and no faster?

use std::time::Duration;

use anyhow::Result;

use super::contenders::{Contender, PACK_SMALL_FILES, UNPACK_SMALL_FILES};
use super::job::{Job, Usage};
use super::places::{Places, remove};
use super::report::{Report, Verdict, grouped, seconds};
use super::tree;

/// How much more a file may cost among ten times as many.
const TOLERANCE: f64 = 1.25;

/// What one file costs on average, or one more file.
struct Costs {
    name: &'static str,
    /// For each count of files: seconds a file, peak bytes.
    points: Vec<(u32, f64, f64)>,
}

pub(crate) fn add(report: &mut Report, counts: &[u32], runs: usize, places: &Places) -> Result<()> {
    let mut all = [&PACK_SMALL_FILES, &UNPACK_SMALL_FILES].map(|one| Costs { name: one.name, points: Vec::new() });
    let mut text = String::from(
        "| files | command | seconds | µs a file | user | system | peak MiB |\n| --: | --- | --: | --: | --: | --: | --: |\n",
    );
    for &count in counts {
        let files = places.path("SCRATCH/files");
        tree::write_small_files(&files, count)?;
        for (contender, costs) in [&PACK_SMALL_FILES, &UNPACK_SMALL_FILES].into_iter().zip(&mut all) {
            let (usage, peak_bytes) = median(contender, runs, places)?;
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
        for word in ["SCRATCH/files", "SCRATCH/files.sealift", "SCRATCH/new"] {
            remove(&places.path(word))?;
        }
    }
    for costs in &all {
        costs.judge().into_iter().for_each(|verdict| report.verdict(verdict));
    }
    for contender in [&PACK_SMALL_FILES, &UNPACK_SMALL_FILES] {
        text.push_str(&format!("\n- `{}`", contender.line));
    }
    report.section("Small files, ten times as many each time", &text);
    Ok(())
}

/// Returns the run of median time, and the highest peak.
fn median(contender: &Contender, runs: usize, places: &Places) -> Result<(Usage, u64)> {
    let mut usages = Vec::new();
    for _ in 0..runs {
        contender.makes.map_or(Ok(()), |word| remove(&places.path(word)))?;
        tree::read_all(&places.path("SCRATCH/files"))?;
        usages.push(Job::new(contender.line, places).run()?);
    }
    let peak_bytes = usages.iter().map(|usage| usage.peak_bytes).max().unwrap_or_default();
    usages.sort_unstable_by_key(|usage: &Usage| -> Duration { usage.wall });
    Ok((usages[(usages.len() - 1) / 2], peak_bytes))
}

impl Costs {
    /// Holds the last step against the one before.
    fn judge(&self) -> Vec<Verdict> {
        let [.., middle, last] = self.points.as_slice() else {
            return Vec::new();
        };
        let time = last.1 / middle.1;
        let memory = last.2 / middle.2;
        let counts = format!("{} to {} files", grouped(last.0.into()), grouped(middle.0.into()));
        let more = f64::from(last.0) / f64::from(middle.0);
        vec![
            Verdict {
                what: format!("{}: time a file, {counts}", self.name),
                figure: format!("{time:.2}"),
                wanted: format!("at most {TOLERANCE:.2}"),
                is_reached: time <= TOLERANCE,
            },
            Verdict {
                what: format!("{}: memory, {counts}", self.name),
                figure: format!("{memory:.1} times"),
                wanted: format!("at most {more:.0} times"),
                is_reached: memory <= more,
            },
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reached(points: [(u32, f64, f64); 3]) -> Vec<bool> {
        let costs = Costs { name: "pack", points: points.into() };
        costs.judge().iter().map(|verdict| verdict.is_reached).collect()
    }

    #[test]
    fn linear_growth_is_reached() {
        assert_eq!(reached([(10, 2.0, 110.0), (100, 1.0, 200.0), (1000, 1.0, 1100.0)]), [true, true]);
    }

    #[test]
    fn quadratic_growth_is_not() {
        assert_eq!(reached([(10, 1.0, 1e3), (100, 10.0, 1e5), (1000, 100.0, 1e7)]), [false, false]);
    }
}
