//! The caller's trust options.

use std::path::{Path, PathBuf};

/// The flags of every command that extracts content. None of them is read from the environment.
///
/// Each flag that names a file or a value replaces the one file of its kind. The files of the other kinds are still those of
/// [`TrustPaths`](super::TrustPaths): `--trust FILE` does not drop the revocation list.
#[derive(Clone, Debug, Default)]
pub struct TrustOptions {
    /// `--trust FILE`: the signers whose signatures count. The file must exist.
    pub signers: Option<PathBuf>,
    /// `--revoked FILE`: the keys whose signatures no longer count. The file must exist.
    pub revoked: Option<PathBuf>,
    /// `--threshold N` or `--threshold PATTERN=N`, any number of times, instead of the file `thresholds`.
    pub thresholds: Vec<String>,
    /// `--state DIR`: where floors are stored.
    pub state: Option<PathBuf>,
    /// `--compatible TAG`, any number of times, instead of the file `compatible`.
    pub compatible: Vec<String>,
    /// `--allow-unsigned`: waives the need for a trusted signature, and nothing else. No file can set this.
    pub allow_unsigned: bool,
    /// `--allow-downgrade`: accepts a version below the floor, and does not change the floor.
    pub allow_downgrade: bool,
    /// `--time T`: *now*, in seconds since 1970, regardless of the clock.
    pub time: Option<i64>,
    /// Called with the path of the state's lock, if another run holds it for so long that a user would wonder.
    pub waiting: Option<fn(&Path)>,
}
