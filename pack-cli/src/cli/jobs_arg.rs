//! `--jobs`: the number of threads.

use clap::Args;

/// The number of threads.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct JobsArg {
    /// Number of threads [default: the available CPUs]
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
}

impl JobsArg {
    /// Returns the number given.
    pub(crate) fn given(self) -> Option<u16> {
        self.jobs
    }

    /// Returns the number given, or that of the available CPUs.
    pub(crate) fn count(self) -> usize {
        self.jobs.map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), usize::from)
    }
}
