//! Tar archives.
//!
//! This is a separate reader because existing ones misread root file systems: the crate `tar` (0.4.46) splits extended headers at newlines, which
//! capabilities contain, and so loses sizes and paths after them; `tar-core` (0.1.0) uses the wrong size for a sparse file of version 1.0 with a
//! size record; neither supports times before 1970.

mod members;
mod pax;
mod window;

use super::SourceOptions;
use super::archive::{Archive, Draft};
use crate::Error;
use members::Members;

/// Adds an archive's members to a draft.
///
/// # Errors
/// Returns an error if it cannot be read, or is not an archive that can be packed.
pub(super) fn read(archive: &Archive, options: &SourceOptions, draft: &mut Draft) -> Result<(), Error> {
    let mut members = Members::new(archive, &options.directory.xattrs);
    while let Some(member) = members.next()? {
        options.advance(0, 1)?;
        let offset = member.offset;
        draft.add(member).map_err(|fault| archive.fault(offset, fault))?;
    }
    Ok(())
}
