//! The time at which expiry and the validity of keys are judged.

use core::fmt;

use super::time::Utc;

/// *Now*, and its source.
///
/// A device may have no clock, or one that starts at 1970; but *now* is never
/// earlier than the newest bundle that it accepted, or than the build of the
/// tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    seconds: i64,
    source: NowSource,
}

/// The source of *now*.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NowSource {
    /// Given by the caller, as with `--time`.
    Given,
    /// The machine's clock.
    Clock,
    /// The newest `created` among the bundles that were accepted.
    NewestBundle,
    /// The time at which the tool was built.
    Build,
}

impl Now {
    /// Returns a time that overrides every other source (`--time`).
    #[must_use]
    pub fn exactly(seconds: i64) -> Self {
        Self { seconds, source: NowSource::Given }
    }

    /// Returns the latest of the clock, the newest `created` among accepted
    /// bundles, and the tool's build time, in seconds since 1970.
    #[must_use]
    pub fn latest(clock: Option<i64>, newest_created: Option<i64>, build: i64) -> Self {
        let mut now = Self { seconds: build, source: NowSource::Build };
        let others = [(newest_created, NowSource::NewestBundle), (clock, NowSource::Clock)];
        for (seconds, source) in others {
            if let Some(seconds) = seconds.filter(|seconds| *seconds >= now.seconds) {
                now = Self { seconds, source };
            }
        }
        now
    }

    /// Returns the seconds since 1970.
    #[must_use]
    pub fn seconds(self) -> i64 {
        self.seconds
    }

    /// Returns the source of the time.
    #[must_use]
    pub fn source(self) -> NowSource {
        self.source
    }
}

impl fmt::Display for Now {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let source = match self.source {
            NowSource::Given => "as given",
            NowSource::Clock => "by the clock",
            NowSource::NewestBundle => "by the newest bundle accepted",
            NowSource::Build => "by the build of this tool",
        };
        write!(f, "{} {source}", Utc(self.seconds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_decides() {
        let cases = [
            (None, None, 5, 5, NowSource::Build),
            (Some(0), None, 5, 5, NowSource::Build),
            (Some(9), None, 5, 9, NowSource::Clock),
            (Some(0), Some(7), 5, 7, NowSource::NewestBundle),
            (Some(9), Some(7), 5, 9, NowSource::Clock),
            (None, Some(3), 5, 5, NowSource::Build),
        ];
        for (clock, newest, build, seconds, source) in cases {
            let now = Now::latest(clock, newest, build);
            assert_eq!((now.seconds(), now.source()), (seconds, source));
        }
        assert_eq!(Now::exactly(3).to_string(), "1970-01-01 00:00:03 UTC as given");
    }
}
