//! How progress is shown while an operation runs.

use std::sync::Arc;

use clap::Args;
use sealift::Progress;

use super::log;
use super::progress_display::{Outcome, ProgressDisplay};
use super::show::{Mode, Show};

/// The option of verbs that take a while.
#[derive(Args, Clone, Copy, Debug)]
#[command(next_help_heading = "Output")]
pub(crate) struct ProgressArgs {
    /// How to show progress: auto (the default), bar, json or none; see `sealift --help`
    #[arg(
        long,
        value_name = "HOW",
        value_enum,
        default_value = "auto",
        hide_default_value = true,
        hide_possible_values = true
    )]
    progress: Mode,
}

impl ProgressArgs {
    /// Runs an operation while its progress is shown and signals cancel it. `starting` is the label before its first phase.
    pub(crate) fn watch<T, E>(
        self,
        show: Show,
        starting: &'static str,
        run: impl FnOnce(&Arc<Progress>) -> Result<T, E>,
    ) -> Result<T, E> {
        let progress = Arc::new(Progress::default());
        let mode = match self.progress {
            Mode::Auto | Mode::Bar if show.quiet => Mode::None,
            Mode::Auto if log::is_on() => Mode::None,
            mode => mode,
        };
        let display = ProgressDisplay::start(mode, starting, &progress);
        let result = run(&progress);
        display.finish(Outcome::of(&result));
        result
    }
}
