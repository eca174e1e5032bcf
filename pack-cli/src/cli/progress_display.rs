//! Shows an operation's progress while it runs.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io::{IsTerminal as _, Write as _};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use parking_lot::Mutex;
use sealift::{Phase, Progress, Snapshot};
use serde::Serialize;

use super::human::{self, Bytes, Grouped};
use super::interrupt;
use super::show::Mode;

/// A thread that polls the progress and shows it.
pub(crate) struct ProgressDisplay {
    end: Option<(Sender<Outcome>, JoinHandle<()>)>,
}

/// How an operation ended.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Outcome {
    Done,
    Failed,
    Cancelled,
}

impl Outcome {
    pub(crate) fn of<T, E>(result: &Result<T, E>) -> Self {
        match result {
            Ok(_) => Self::Done,
            Err(_) if interrupt::pending() => Self::Cancelled,
            Err(_) => Self::Failed,
        }
    }
}

impl ProgressDisplay {
    /// Starts the thread. `starting` is the label before the first phase.
    pub(crate) fn start(mode: Mode, starting: &'static str, progress: &Arc<Progress>) -> Self {
        interrupt::enter(progress);
        let view: Box<dyn View + Send> = match mode {
            Mode::Auto | Mode::Bar if std::io::stderr().is_terminal() => Box::new(Bar::new(starting)),
            Mode::Bar => Box::new(Lines { starting, last: Instant::now(), first_written: false }),
            Mode::Json => Box::new(Json { last: None, first_written: false }),
            Mode::Auto | Mode::None => return Self { end: None },
        };
        let (sender, receiver) = mpsc::channel();
        let progress = Arc::clone(progress);
        let thread = std::thread::spawn(move || show(view, &progress, &receiver));
        Self { end: Some((sender, thread)) }
    }

    /// Removes the view.
    pub(crate) fn finish(self, outcome: Outcome) {
        interrupt::leave();
        if let Some((sender, thread)) = self.end {
            // A view that panicked no longer receives.
            let _ = sender.send(outcome);
            // The panic of a view was printed; the operation is unaffected.
            let _ = thread.join();
        }
    }
}

/// The lock for writing to the terminal while an operation runs.
static TERMINAL: Mutex<()> = Mutex::new(());

/// Hides the bar while a message or question is shown during an operation; meanwhile a signal ends the process.
pub(crate) fn aside<T>(run: impl FnOnce() -> T) -> T {
    let _held = TERMINAL.lock();
    interrupt::aside(run)
}

/// How often the progress is polled.
const POLL: Duration = Duration::from_millis(80);

fn show(mut view: Box<dyn View + Send>, progress: &Progress, end: &mpsc::Receiver<Outcome>) {
    let start = Instant::now();
    loop {
        let held = TERMINAL.lock();
        let now = look(&mut *view, progress, start);
        view.show(now, start.elapsed());
        drop(held);
        match end.recv_timeout(POLL) {
            Err(RecvTimeoutError::Timeout) => {}
            // If the operation panicked, there is no outcome.
            ended => {
                let now = look(&mut *view, progress, start);
                return view.finish(now, start.elapsed(), ended.unwrap_or(Outcome::Failed));
            }
        }
    }
}

/// Tells the view which phases have ended and which moments have passed, and returns the current state.
fn look(view: &mut dyn View, progress: &Progress, start: Instant) -> Snapshot {
    let mut moments = progress.moments();
    let now = moments.pop().unwrap_or_else(|| progress.snapshot());
    moments.into_iter().for_each(|end| view.end_phase(end, start.elapsed()));
    now
}

trait View {
    /// Handles the end of a phase, which may not have been shown, or the moment when all files that are read first have been written.
    fn end_phase(&mut self, _end: Snapshot, _elapsed: Duration) {}
    fn show(&mut self, now: Snapshot, elapsed: Duration);
    fn finish(&mut self, now: Snapshot, elapsed: Duration, outcome: Outcome);
}

/// Returns the label of a phase.
fn label(phase: Phase, starting: &'static str) -> &'static str {
    match phase {
        _ if interrupt::pending() => "Stopping",
        Phase::Listing => "Listing",
        Phase::Packing => "Packing",
        Phase::Encoding => "Encoding",
        Phase::Finishing => "Finishing",
        Phase::Verifying => "Verifying",
        Phase::Hashing => "Hashing",
        Phase::Copying => "Copying",
        Phase::Unpacking => "Unpacking",
        Phase::Moving => "Moving",
        Phase::Sealing => "Sealing",
        Phase::Syncing => "Syncing",
        _ => starting,
    }
}

/// One JSON object per line: docs/progress.md.
struct Json {
    last: Option<(Phase, Instant)>,
    /// Whether a line has reported that the files read first are written.
    first_written: bool,
}

#[derive(Serialize)]
struct Line {
    v: u8,
    phase: &'static str,
    bytes: u64,
    bytes_total: u64,
    files: u64,
    files_total: u64,
    files_kept: u64,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    first_written: bool,
    seconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<Outcome>,
}

impl Line {
    /// Changes when a field changes its meaning, not when one is added.
    const VERSION: u8 = 1;

    fn write(now: Snapshot, elapsed: Duration, outcome: Option<Outcome>) {
        let Snapshot { phase, bytes, bytes_total, files, files_total, files_kept, first_written, .. } = now;
        let (v, phase, seconds) = (Self::VERSION, phase.word(), human::seconds(elapsed));
        let line =
            Self { v, phase, bytes, bytes_total, files, files_total, files_kept, first_written, seconds, outcome };
        // If standard error is closed, only the progress is lost.
        let _ = writeln!(std::io::stderr(), "{}", serde_json::to_string(&line).unwrap_or_default());
    }
}

/// Together with the polling interval, less than the promised half second.
const LINE_INTERVAL: Duration = Duration::from_millis(400);

impl Json {
    /// Writes the first line of a phase, unless already written.
    fn begin(&mut self, now: Snapshot, elapsed: Duration) {
        if self.last.is_none_or(|(phase, _)| phase != now.phase) {
            let mut first = now;
            (first.bytes, first.files, first.first_written) = (0, 0, self.first_written);
            self.write(first, elapsed);
        }
    }

    fn write(&mut self, now: Snapshot, elapsed: Duration) {
        Line::write(now, elapsed, None);
        (self.last, self.first_written) = (Some((now.phase, Instant::now())), now.first_written);
    }
}

impl View for Json {
    fn end_phase(&mut self, end: Snapshot, elapsed: Duration) {
        self.begin(end, elapsed);
        self.write(end, elapsed);
    }

    fn show(&mut self, now: Snapshot, elapsed: Duration) {
        self.begin(now, elapsed);
        if self.last.is_some_and(|(_, at)| at.elapsed() >= LINE_INTERVAL) {
            self.write(now, elapsed);
        }
    }

    fn finish(&mut self, now: Snapshot, elapsed: Duration, outcome: Outcome) {
        self.begin(now, elapsed);
        Line::write(now, elapsed, Some(outcome));
    }
}

/// A plain line every few seconds, for logs.
struct Lines {
    starting: &'static str,
    last: Instant,
    /// Whether a line has reported that the files read first are written.
    first_written: bool,
}

impl View for Lines {
    fn end_phase(&mut self, end: Snapshot, elapsed: Duration) {
        if end.first_written && !std::mem::replace(&mut self.first_written, true) {
            let _ = writeln!(std::io::stderr(), "The files needed first are written, {}", human::duration(elapsed));
        }
    }

    fn show(&mut self, now: Snapshot, elapsed: Duration) {
        if self.last.elapsed() < Duration::from_secs(5) {
            return;
        }
        self.last = Instant::now();
        let mut line = format!("{}, {}", label(now.phase, self.starting), human::duration(elapsed));
        if now.bytes_total > 0 {
            let percent = human::percentage(now.bytes, now.bytes_total);
            let _ = write!(line, ": {} of {} ({percent})", Bytes(now.bytes), Bytes(now.bytes_total));
        }
        let _ = writeln!(std::io::stderr(), "{line}");
    }

    fn finish(&mut self, _: Snapshot, _: Duration, _: Outcome) {}
}

/// A bar on the terminal, removed when the operation ends.
struct Bar {
    starting: &'static str,
    bar: ProgressBar,
    phase: Option<Phase>,
    known: bool,
    pace: Pace,
}

/// How fast a phase goes on, by what was seen of it in the last seconds: what was done before it was first seen took an unknown time.
#[derive(Debug, Default)]
struct Pace {
    seen: VecDeque<(Duration, u64)>,
}

impl Pace {
    /// The least time after which a rate is known.
    const LEAST: Duration = Duration::from_millis(500);
    /// The time that a rate is the mean of.
    const SPAN: Duration = Duration::from_secs(15);

    /// Takes the bytes that are done at a moment.
    fn note(&mut self, at: Duration, bytes: u64) {
        self.seen.push_back((at, bytes));
        while self.seen.get(1).is_some_and(|(second, _)| at.saturating_sub(*second) >= Self::SPAN) {
            self.seen.pop_front();
        }
    }

    /// Returns the bytes per second; `None` while they are unknown.
    fn rate(&self) -> Option<u64> {
        let ((from, before), (to, after)) = (self.seen.front()?, self.seen.back()?);
        let span = to.saturating_sub(*from);
        (span >= Self::LEAST).then(|| human::per_second(after.saturating_sub(*before), span))
    }

    /// Returns the rate, and how long `left` bytes take, as the end of a line.
    fn line(&self, left: u64) -> String {
        let Some(rate) = self.rate() else { return String::new() };
        let time = match left.div_ceil(rate.max(1)).max(1) {
            _ if rate == 0 => String::new(),
            seconds @ 0..60 => format!("{seconds} s left"),
            seconds @ 60..3600 => format!("{} min left", seconds.div_ceil(60)),
            seconds => format!("{} h left", seconds.div_ceil(3600)),
        };
        format!("{:>9} {time:>10}", format!("{}/s", Bytes(rate)))
    }
}

impl Bar {
    fn new(starting: &'static str) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(12));
        Self { starting, bar, phase: None, known: false, pace: Pace::default() }
    }

    /// Begins a phase, with a rate of its own.
    fn begin(&mut self, now: Snapshot) {
        (self.phase, self.known, self.pace) = (Some(now.phase), now.bytes_total > 0, Pace::default());
        self.bar.finish_and_clear();
        let target = ProgressDrawTarget::stderr_with_hz(12);
        self.bar = if self.known {
            ProgressBar::with_draw_target(Some(now.bytes_total), target).with_style(known_style())
        } else {
            ProgressBar::with_draw_target(None, target).with_style(unknown_style())
        };
    }
}

impl View for Bar {
    fn show(&mut self, now: Snapshot, elapsed: Duration) {
        if elapsed < Duration::from_millis(250) {
            return; // avoids flicker for short phases
        }
        if self.phase != Some(now.phase) || self.known != (now.bytes_total > 0) {
            self.begin(now);
        }
        let label = label(now.phase, self.starting);
        if self.known && now.bytes < self.bar.position() {
            return; // the next phase is about to begin
        }
        if self.known {
            self.pace.note(elapsed, now.bytes);
            self.bar.set_position(now.bytes);
            self.bar.set_message(label);
            self.bar.set_prefix(self.pace.line(now.bytes_total.saturating_sub(now.bytes)));
        } else {
            let files = if now.files > 0 { format!("{} files  ", Grouped(now.files)) } else { String::new() };
            self.bar.set_message(format!("{label:<10} {files}{}", human::duration(self.bar.elapsed())));
        }
        self.bar.tick();
    }

    fn finish(&mut self, _: Snapshot, _: Duration, _: Outcome) {
        self.bar.finish_and_clear();
    }
}

fn known_style() -> ProgressStyle {
    let template = "{msg:<10} {wide_bar} {share} {prefix:>20}";
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    style.progress_chars(if speaks_utf8() { "━╸─" } else { "=>-" }).with_key(
        "share",
        |state: &ProgressState, out: &mut dyn std::fmt::Write| {
            let _ = write!(out, "{:>7} of {}", Bytes(state.pos()).to_string(), Bytes(state.len().unwrap_or(0)));
        },
    )
}

fn unknown_style() -> ProgressStyle {
    let style = ProgressStyle::with_template("{spinner} {msg}").unwrap_or_else(|_| ProgressStyle::default_spinner());
    style.tick_chars(if speaks_utf8() { "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏ " } else { "|/-\\ " })
}

/// Returns whether the locale says that the terminal shows UTF-8.
pub(crate) fn speaks_utf8() -> bool {
    let set = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let locale = set("LC_ALL").or_else(|| set("LC_CTYPE")).or_else(|| set("LANG")).unwrap_or_default();
    let locale = locale.to_ascii_lowercase();
    locale.contains("utf-8") || locale.contains("utf8")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_done_before_a_phase_was_seen_is_no_rate() {
        let mut pace = Pace::default();
        let at = Duration::from_millis;
        pace.note(at(250), 1_360_000_000);
        pace.note(at(251), 1_360_000_100);
        assert_eq!((pace.rate(), pace.line(1)), (None, String::new()));
        pace.note(at(1250), 1_380_000_000);
        assert_eq!(pace.line(100_000_000), "20.0 MB/s   5 s left");
        // The mean of the last seconds, in which it may have slowed down.
        for second in 2..40 {
            pace.note(at(1250 + second * 1000), 1_400_000_000 + second * 1_000_000);
        }
        assert_eq!(pace.rate(), Some(1_000_000));
        pace.note(at(60_000), 1_439_000_000);
        assert_eq!((pace.rate(), pace.line(5)), (Some(0), format!("0 bytes/s{:11}", "")));
    }
}
