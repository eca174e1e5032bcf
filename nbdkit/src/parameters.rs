//! The plugin's parameters, which are named like the options of `sealift mount`.

use std::ffi::{CStr, OsStr, OsString};
use std::path::{Path, PathBuf};

use sealift::GivenBases;
use sealift::Limits;
use sealift::in_place::ReadOptions;
use sealift::trust::{TargetKind, TrustOptions, Utc};

use crate::calls::{parse_bool, parse_size};

/// The text of `nbdkit sealift --help`.
pub(crate) const HELP: &CStr = c"\
[file=]BUNDLE          (required) The bundle; of several, the last is served, and those before it are its bases.
path=[REF:]PATH        The file in the bundle to serve; not needed if there is only one.
base=BUNDLE|TARGET     A base of a delta: a bundle, or what it was unpacked to. Can be repeated.
cache=SIZE             Memory for decoded content (default: 64M).
jobs=N                 Number of threads (default: the available CPUs).
trust=FILE             Allowed signers file (default: /etc/sealift/allowed_signers, or the user's own).
revoked=FILE           Revoked keys.
threshold=[NAME=]N     Require signatures by N trusted keys. Can be repeated.
state=DIR              Directory that records the highest version installed.
time=TIME              Check keys and expiry as of this time.
compatible=TAG         A tag of this device. Can be repeated.
allow-unsigned=BOOL    Accept a bundle that no trusted key signed (default: false).
allow-downgrade=BOOL   Accept a bundle older than the version installed on this device (default: false).";

/// The parameters with which nbdkit was started.
#[derive(Debug, Default)]
pub(crate) struct Parameters {
    files: Vec<PathBuf>,
    bases: Vec<OsString>,
    pub(crate) path: Option<OsString>,
    cache: Option<u64>,
    jobs: Option<usize>,
    pub(crate) trust: TrustOptions,
}

impl Parameters {
    /// Sets one parameter.
    ///
    /// # Errors
    /// Returns an error if it is unknown, or if its value is invalid.
    pub(crate) fn set(&mut self, key: &str, value: &OsStr) -> Result<(), String> {
        let text = || value.to_str().ok_or_else(|| format!("{key}: {} is not UTF-8", value.display()));
        let trust = &mut self.trust;
        match key {
            "file" => self.files.push(absolute(value)?),
            "path" => self.path = Some(value.to_owned()),
            "base" => self.bases.push(match TargetKind::of(value) {
                (TargetKind::Directory, _) => absolute(value)?.into(),
                _ => value.to_owned(),
            }),
            "cache" => self.cache = Some(parse_size(text()?).ok_or("cache: give a size, such as 64M")?),
            "jobs" => {
                let jobs = text()?.parse().ok().filter(|jobs| (1..=1024).contains(jobs));
                self.jobs = Some(jobs.ok_or("jobs: give a number from 1 to 1024")?);
            }
            "trust" => trust.signers = Some(value.into()),
            "revoked" => trust.revoked = Some(value.into()),
            "threshold" => trust.thresholds.push(text()?.to_owned()),
            "state" => trust.state = Some(value.into()),
            "time" => trust.time = Some(Utc::parse(text()?).map_err(|error| format!("time: {error}"))?.0),
            "compatible" => trust.compatible.push(text()?.to_owned()),
            "allow-unsigned" => trust.allow_unsigned = truth(key, text()?)?,
            "allow-downgrade" => trust.allow_downgrade = truth(key, text()?)?,
            _ => return Err(format!("unknown parameter {key}; see nbdkit sealift --help")),
        }
        Ok(())
    }

    /// Returns the bundle to serve, and its possible bases.
    ///
    /// # Errors
    /// Returns an error if no bundle was named.
    pub(crate) fn bundle(&self) -> Result<(&Path, GivenBases), String> {
        let [before @ .., bundle] = &self.files[..] else {
            return Err("give the bundle: nbdkit sealift BUNDLE".into());
        };
        let before = before.iter().map(|path| path.as_os_str().to_owned());
        let places = self.bases.iter().cloned().chain(before).collect();
        Ok((bundle, GivenBases { places, limits: Limits::default(), jobs: self.jobs(), state: None }))
    }

    /// Returns the options for reading.
    pub(crate) fn read(&self) -> ReadOptions {
        ReadOptions { jobs: self.jobs(), cache_bytes: self.cache.unwrap_or(ReadOptions::CACHE_BYTES) }
    }

    fn jobs(&self) -> usize {
        self.jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
    }
}

/// Returns an absolute path: nbdkit changes its working directory when it goes into the background.
fn absolute(path: &OsStr) -> Result<PathBuf, String> {
    std::path::absolute(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn truth(key: &str, value: &str) -> Result<bool, String> {
    parse_bool(value).ok_or_else(|| format!("{key}: give true or false"))
}
