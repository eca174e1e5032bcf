//! System-wide settings: keys for all repositories, and the remotes of the repository that the system booted from.

use std::os::fd::BorrowedFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use crate::fs::found::{found_at, is_missing};
use crate::{Error, inode_id};

/// The root directory of these settings.
#[derive(Clone, Debug)]
pub(crate) struct System {
    root: PathBuf,
}

impl Default for System {
    fn default() -> Self {
        Self { root: PathBuf::from("/") }
    }
}

impl System {
    /// Returns a system other than the running one.
    #[cfg(test)]
    pub(crate) fn at(root: &std::path::Path) -> Self {
        Self { root: root.to_owned() }
    }

    /// Returns the folder of remotes that apply to a repository in addition to its own: only the system's repository has one.
    ///
    /// # Errors
    /// Returns an error if it cannot be determined whether it is that one.
    pub(crate) fn remotes_of(&self, repo: BorrowedFd<'_>) -> Result<Option<PathBuf>, Error> {
        let path = self.root.join("ostree/repo");
        let Some(systems) = found_at(&path)? else { return Ok(None) };
        let own = inode_id(repo).map_err(|error| Error::io("look at", &path, error))?;
        let is_systems = own == (systems.dev(), systems.ino());
        Ok(is_systems.then(|| self.root.join("etc/ostree/remotes.d")))
    }

    /// Returns the files called `name`, and those in folders called `name.d`, for all remotes.
    pub(crate) fn files(&self, name: &str) -> Result<Vec<PathBuf>, Error> {
        let mut files = Vec::new();
        for folder in ["etc/ostree", "usr/share/ostree"].map(|folder| self.root.join(folder)) {
            files.push(folder.join(name));
            let folder = folder.join(format!("{name}.d"));
            match std::fs::read_dir(&folder) {
                Ok(entries) => {
                    for entry in entries {
                        files.push(entry.map_err(|error| Error::io("read", &folder, error))?.path());
                    }
                }
                Err(error) if is_missing(&error) => {}
                Err(error) => return Err(Error::io("read", folder, error)),
            }
        }
        let mut found = Vec::new();
        for path in files {
            match std::fs::metadata(&path) {
                Ok(stat) if stat.is_file() => found.push(path),
                Ok(_) => {}
                Err(error) if is_missing(&error) => {}
                Err(error) => return Err(Error::io("look at", path, error)),
            }
        }
        Ok(found)
    }

    /// Returns the folder of keyrings for remotes without their own (ostree(1)), unless the environment names another.
    pub(crate) fn keyrings(&self) -> PathBuf {
        let named = std::env::var_os("OSTREE_GPG_HOME").map(PathBuf::from);
        named.unwrap_or_else(|| self.root.join("usr/share/ostree/trusted.gpg.d"))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use tempfile::TempDir;

    use super::*;
    use crate::fs::confined::open_user_dir;
    use crate::ostree::repo::Repo;

    fn make_repo(path: &Path) {
        fs::create_dir_all(path.join("objects")).expect("a folder");
        let text = "[core]\nrepo_version=1\n[remote \"own\"]\nurl=x\n";
        fs::write(path.join("config"), text).expect("there is room");
    }

    fn remotes(system: &Path, path: &Path) -> Result<Vec<String>, String> {
        let root = open_user_dir(path).expect("a folder");
        let repo = Repo::within(System::at(system), root, path).map_err(|error| error.to_string())?;
        let mut names: Vec<_> = repo.config().remotes.iter().map(|remote| remote.name.clone()).collect();
        names.sort();
        Ok(names)
    }

    #[test]
    fn remotes_of_the_system() {
        let folder = TempDir::new().expect("a folder");
        let system = folder.path();
        let (repo, other, files) =
            (system.join("ostree/repo"), system.join("other"), system.join("etc/ostree/remotes.d"));
        make_repo(&repo);
        make_repo(&other);
        assert_eq!(remotes(system, &repo).expect("it opens"), ["own"]);
        fs::create_dir_all(files.join("folder.conf")).expect("a folder");
        let write = |name: &str, text: &str| fs::write(files.join(name), text).expect("there is room");
        write("os.conf", "[remote \"os\"]\nurl=x\n[other]\nx=y\n[remote \"os-next\"]\nurl=x\n");
        write("os.conf.old", "[remote \"old\"]\nurl=x\n");
        std::os::unix::fs::symlink("os.conf.old", files.join("link.conf")).expect("a link");
        assert_eq!(remotes(system, &repo).expect("it opens"), ["old", "os", "os-next", "own"]);
        let link = system.join("link");
        std::os::unix::fs::symlink(&repo, &link).expect("a link");
        assert_eq!(remotes(system, &link).expect("it is the same one").len(), 4);
        assert_eq!(remotes(system, &other).expect("it opens"), ["own"]);

        write("again.conf", "[remote \"own\"]\nurl=y\n");
        let said = remotes(system, &repo).expect_err("one is there twice");
        assert!(said.contains("\"own\"") && said.contains("again.conf"), "{said}");
        write("again.conf", "junk\n");
        assert!(remotes(system, &repo).expect_err("it is no key file").contains("again.conf: line 1"));
    }
}
