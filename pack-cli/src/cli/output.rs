//! `-o FILE`: where a file is written, and what it replaces.

use std::io::IsTerminal as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::fs::{Access, AtFlags, CWD, accessat};
use sealift::Output;
use sealift::fs::{named_at, parent_of, shown_directory};
use sealift::{Envelope, Error, Input};

use super::closed;
use super::failure::Failure;
use super::limits::limits;
use super::show::Show;

/// Returns where `-o` writes. An existing file is replaced only with --force.
pub(crate) fn of(path: &Path, force: bool) -> Result<Output, Failure> {
    if path == Path::new("-") {
        check_stdout()?;
        return Ok(Output::Stdout);
    }
    if path.as_os_str().as_bytes().ends_with(b"/") {
        return Err(Failure::usage(format!("{} names a directory: give the name of a file in it", path.display())));
    }
    match named_at(path)? {
        // The rename would replace it with a file; as root, even /dev/null.
        Some(found) if !found.is_file() && !found.is_symlink() => Err(Failure::usage(format!(
            "refusing to replace {}, which is not a regular file: give another name, or - for standard output",
            path.display()
        ))),
        Some(_) if !force => Err(Error::Exists { path: path.to_owned() }.into()),
        // With --force, whatever another run writes there meanwhile is replaced too.
        _ if force => Ok(Output::File(path.to_owned())),
        _ => Ok(Output::New(path.to_owned())),
    }
}

/// Refuses to write binary data to a terminal, or to nowhere.
pub(crate) fn check_stdout() -> Result<(), Failure> {
    if std::io::stdout().is_terminal() {
        return Err(Failure::usage("refusing to write binary data to a terminal: write to a file or a pipe"));
    }
    closed::check_stdout()
}

/// Checks the same for a dry run, as far as possible without writing.
pub(crate) fn foreseen(path: &Path, force: bool) -> Result<Output, Failure> {
    // A dry run writes no bundle to standard output.
    if path != Path::new("-") {
        of(path, force)?;
        let folder = parent_of(path);
        accessat(CWD, folder, Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS).map_err(|error| Error::Io {
            doing: "write to",
            path: shown_directory(folder),
            source: error.into(),
        })?;
    }
    Ok(Output::Nowhere)
}

/// Warns that an unsigned file replaces a signed bundle.
pub(crate) fn warn_of_signed(output: &Output, becomes: &str, show: Show) {
    let Output::File(path) = output else { return };
    let head = Input::open(path).and_then(|mut input| input.read_head(limits()));
    let Ok(head) = head else { return }; // not a bundle
    if head.bodies(Envelope::SSH_SIGNATURE).next().is_some() {
        let identity = &head.root().identity;
        let (path, name, version) = (path.display(), &identity.name, identity.version);
        show.warn(&format!("replacing {path}, a signed bundle ({name} version {version}), with {becomes}"));
    }
}
