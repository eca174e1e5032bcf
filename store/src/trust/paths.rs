//! Locations of the administrator's files and the device's state.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::TrustOptions;
use crate::Error;
use crate::fs::found::is_there;

/// Folders of configuration and state.
///
/// | | root | users |
/// | --- | --- | --- |
/// | configuration | `/etc/sealift` | `$XDG_CONFIG_HOME/sealift` (`~/.config/sealift`) if `allowed_signers` is there, else `/etc/sealift` |
/// | state | `$SEALIFT_STATE`, else `/var/lib/sealift` | `$SEALIFT_STATE`, else `$XDG_STATE_HOME/sealift` (`~/.local/state/sealift`) |
///
/// One folder decides, and the two are never merged: a line that the administrator removed from one file must not survive in another. Root ignores
/// folders from the environment that belong to a user, since `sudo` may preserve those variables.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "a caller may say where everything is")]
pub struct TrustPaths {
    /// The user's own configuration, if any.
    pub user_config: Option<PathBuf>,
    /// The system's configuration.
    pub system_config: PathBuf,
    /// The state kept between bundles; `None` if the user's home is unknown.
    pub state: Option<PathBuf>,
}

/// The allowed signers. If the user's folder has this file, that folder decides.
pub const SIGNERS: &str = "allowed_signers";
/// Keys that no longer count.
pub const REVOKED: &str = "revoked";
/// The numbers of keys required.
pub(super) const THRESHOLDS: &str = "thresholds";
/// The device's compatibility tags.
pub(super) const COMPATIBLE: &str = "compatible";

impl TrustPaths {
    /// Returns the places of the current user.
    #[must_use]
    pub fn of_this_process() -> Self {
        Self::of(rustix::process::geteuid().is_root(), |name| std::env::var_os(name))
    }

    fn of(root: bool, environment: impl Fn(&str) -> Option<OsString>) -> Self {
        let system_config = PathBuf::from("/etc/sealift");
        // The XDG specification: a relative path is invalid and must be ignored.
        let absolute = |name: &str| environment(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let named = environment("SEALIFT_STATE").filter(|path| !path.is_empty()).map(PathBuf::from);
        if root {
            let state = named.or_else(|| Some("/var/lib/sealift".into()));
            return Self { user_config: None, system_config, state };
        }
        let folder = |variable: &str, below_home: &str| {
            absolute(variable).or_else(|| absolute("HOME").map(|home| home.join(below_home)))
        };
        Self {
            user_config: folder("XDG_CONFIG_HOME", ".config").map(|folder| folder.join("sealift")),
            system_config,
            state: named.or_else(|| folder("XDG_STATE_HOME", ".local/state").map(|folder| folder.join("sealift"))),
        }
    }

    /// Returns the one configuration folder that decides.
    ///
    /// # Errors
    /// Returns an error if it cannot be determined whether the user has a file.
    pub fn config(&self) -> Result<&Path, Error> {
        match &self.user_config {
            Some(user) if is_there(&user.join(SIGNERS))? => Ok(user),
            _ => Ok(&self.system_config),
        }
    }

    /// Returns the folder for a first key: the one that decides, or the user's own if neither has a file. A new file in the user's own folder would
    /// disable all of the system's files.
    ///
    /// # Errors
    /// Returns an error if it cannot be determined which files exist.
    pub fn config_to_begin(&self) -> Result<&Path, Error> {
        let Some(user) = &self.user_config else { return self.config() };
        for name in [SIGNERS, REVOKED, THRESHOLDS, COMPATIBLE] {
            if is_there(&self.system_config.join(name))? {
                return self.config();
            }
        }
        Ok(user)
    }

    /// Returns the user's files that do not count because no `allowed_signers` is beside them.
    ///
    /// # Errors
    /// Returns an error if it cannot be determined whether they exist.
    pub fn passed_over(&self) -> Result<Vec<PathBuf>, Error> {
        let mut found = Vec::new();
        if let Some(user) = self.user_config.as_ref().filter(|user| self.config().is_ok_and(|config| config != *user)) {
            for name in [REVOKED, THRESHOLDS, COMPATIBLE] {
                let path = user.join(name);
                if is_there(&path)? {
                    found.push(path);
                }
            }
        }
        Ok(found)
    }

    /// Returns the state's folder.
    ///
    /// # Errors
    /// Returns an error if its location is unknown: without it no downgrade would be noticed.
    pub fn state(&self, options: &TrustOptions) -> Result<PathBuf, Error> {
        options.state.clone().or_else(|| self.state.clone()).ok_or(Error::NoStateDirectory)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(root: bool, variables: &[(&str, &str)]) -> (Option<String>, Option<String>) {
        let places = TrustPaths::of(root, |name| {
            variables.iter().find(|(variable, _)| *variable == name).map(|(_, value)| value.into())
        });
        let text = |path: Option<PathBuf>| path.map(|path| path.display().to_string());
        (text(places.user_config), text(places.state))
    }

    #[test]
    fn the_environment_names_a_users_folders_and_not_roots() {
        let some = |config: &str, state: &str| (Some(config.to_owned()), Some(state.to_owned()));
        let home = ("HOME", "/home/me");
        let xdg = [home, ("XDG_CONFIG_HOME", "/c"), ("XDG_STATE_HOME", "/s")];
        let relative = [home, ("XDG_CONFIG_HOME", "c"), ("XDG_STATE_HOME", "")];
        let at_home = some("/home/me/.config/sealift", "/home/me/.local/state/sealift");
        assert_eq!(places(false, &[home]), at_home);
        assert_eq!(places(false, &relative), at_home);
        assert_eq!(places(false, &xdg), some("/c/sealift", "/s/sealift"));
        assert_eq!(places(false, &[]), (None, None));
        assert_eq!(places(true, &xdg), (None, Some("/var/lib/sealift".to_owned())));
        let named = [home, xdg[2], ("SEALIFT_STATE", "/n")];
        assert_eq!(places(false, &named), some("/home/me/.config/sealift", "/n"));
        assert_eq!(places(true, &named), (None, Some("/n".to_owned())));
        assert_eq!(places(true, &[("SEALIFT_STATE", "n")]), (None, Some("n".to_owned())));
        assert_eq!(places(true, &[("SEALIFT_STATE", "")]), (None, Some("/var/lib/sealift".to_owned())));
    }
}
