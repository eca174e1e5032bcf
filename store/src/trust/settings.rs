//! The administrator's files, read and parsed.

use std::path::{Path, PathBuf};

use rustix::io::Errno;
use sealift_format::name::is_bundle_name;
use sealift_verify::trust::{AllowedSigners, Device, RevocationList, Thresholds, TrustFileError};

use super::paths::{COMPATIBLE, REVOKED, SIGNERS, THRESHOLDS};
use super::{TrustOptions, TrustPaths};
use crate::fs::read_own_file;
use crate::{Error, FileFault};

/// The administrator's settings, and the files they came from.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) signers: Setting<AllowedSigners>,
    pub(super) revoked: Setting<RevocationList>,
    pub(super) thresholds: Setting<Thresholds>,
    pub(super) device: Setting<Device>,
}

/// A value and the file it came from. An optional file that is absent yields no value.
#[derive(Clone, Debug)]
pub(super) struct Setting<T> {
    pub(super) value: Option<T>,
    /// Where it was searched for; `None` if a flag gave the value.
    pub(super) path: Option<PathBuf>,
}

impl Settings {
    pub(super) fn load(options: &TrustOptions, places: &TrustPaths) -> Result<Self, Error> {
        let config = places.config()?;
        let thresholds = match &options.thresholds[..] {
            [] => Setting::optional(config.join(THRESHOLDS), Thresholds::parse_file)?,
            rules => Setting::given(parse_thresholds(rules)?),
        };
        let device = match &options.compatible[..] {
            [] => Setting::optional(config.join(COMPATIBLE), Device::parse)?,
            tags => Setting::given(parse_tags(tags)?),
        };
        Ok(Self {
            signers: Setting::file(options.signers.as_deref(), config.join(SIGNERS), AllowedSigners::parse)?,
            revoked: Setting::file(options.revoked.as_deref(), config.join(REVOKED), RevocationList::parse)?,
            thresholds,
            device,
        })
    }
}

impl<T> Setting<T> {
    fn given(value: T) -> Self {
        Self { value: Some(value), path: None }
    }

    /// Returns the file of a flag, which must exist, or else the default file, which may be absent.
    fn file(
        given: Option<&Path>,
        usual: PathBuf,
        parse: impl FnOnce(&[u8]) -> Result<T, TrustFileError>,
    ) -> Result<Self, Error> {
        let Some(path) = given else { return Self::optional(usual, parse) };
        let bytes = read_own_file(path)?.ok_or_else(|| Error::io("read", path, Errno::NOENT))?;
        Self::parsed(path.to_owned(), &bytes, parse)
    }

    fn optional(path: PathBuf, parse: impl FnOnce(&[u8]) -> Result<T, TrustFileError>) -> Result<Self, Error> {
        match read_own_file(&path)? {
            Some(bytes) => Self::parsed(path, &bytes, parse),
            None => {
                tracing::debug!(?path, "absent");
                Ok(Self { value: None, path: Some(path) })
            }
        }
    }

    fn parsed(
        path: PathBuf,
        bytes: &[u8],
        parse: impl FnOnce(&[u8]) -> Result<T, TrustFileError>,
    ) -> Result<Self, Error> {
        match parse(bytes) {
            Ok(value) => {
                tracing::debug!(?path, "read");
                Ok(Self { value: Some(value), path: Some(path) })
            }
            Err(fault) => Err(Error::file(path, FileFault::Trust(fault))),
        }
    }
}

fn parse_thresholds(rules: &[String]) -> Result<Thresholds, Error> {
    Thresholds::parse(rules.iter().map(String::as_str)).map_err(|error| Error::Usage(error.to_string()))
}

fn parse_tags(tags: &[String]) -> Result<Device, Error> {
    match tags.iter().find(|tag| !is_bundle_name(tag)) {
        Some(tag) => Err(Error::Usage(format!(
            "{tag:?} is not a compatible tag: a letter or digit, then letters, digits, '.', '_', '+' and '-'"
        ))),
        None => Ok(Device::with_tags(tags)),
    }
}
