//! The caller's trust options.

use std::path::PathBuf;

/// The flags that every verb takes which hands out content. None of them is read from the environment.
///
/// Each flag that names a file or a value takes the place of the one file of its kind; the files of the other kinds
/// are still those of [`Places`](super::Places): whoever gives `--trust FILE` has not thereby forgotten who was revoked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrustOptions {
    /// `--trust FILE`: whose signatures count. The file must be there.
    pub signers: Option<PathBuf>,
    /// `--revoked FILE`: whose signatures do not count any more. The file must be there.
    pub revoked: Option<PathBuf>,
    /// `--threshold N` or `--threshold PATTERN=N`, any number of times, instead of the file `thresholds`.
    pub thresholds: Vec<String>,
    /// `--state DIR`: where floors are kept.
    pub state: Option<PathBuf>,
    /// `--compatible TAG`, any number of times, instead of the file `compatible`.
    pub compatible: Vec<String>,
    /// `--allow-unsigned`: waives the need for a trusted signature, and nothing else. No file can say this.
    pub allow_unsigned: bool,
    /// `--allow-downgrade`: lets a version below the floor pass, and leaves the floor where it is.
    pub allow_downgrade: bool,
    /// `--time T`: *now*, in seconds since 1970, whatever the clock says.
    pub time: Option<i64>,
}
