//! The options that select which parts of two trees are compared, and how.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use sealift::diff::{DiffOptions, Ignore};
use sealift::fs::is_directory;
use sealift::has_only_volumes;
use sealift::source::{
    ArchiveFormat, DirectoryOptions, Exclude, SourceOptions, XattrFilter, is_container_image, is_image,
};
use sealift::trust::TargetKind;
use sealift::{Error, Progress};

use super::failure::Failure;
use super::jobs_arg::JobsArg;

/// The selection of what is compared.
#[derive(Args, Clone, Debug)]
pub(crate) struct CompareArgs {
    /// The ref to compare, if a bundle has several
    #[arg(long = "ref", value_name = "REF")]
    reference: Option<String>,
    /// Compare only this path and what is below it
    #[arg(long, value_name = "[REF:]PREFIX")]
    pub(crate) path: Option<OsString>,
    /// Differences to ignore: mode, owner, mtime, xattrs, links; metadata for all five; privileged
    ///
    /// links: which names are hard links to the same file. privileged: what only root can set when unpacking, which is owner and group, set-id
    /// bits, capabilities and other security.* and trusted.* attributes, and devices.
    #[arg(long, value_name = "WHAT,...", value_enum, value_delimiter = ',', hide_possible_values = true)]
    ignore: Vec<Ignored>,
    /// Exclude files that match this pattern, in .gitignore syntax
    #[arg(long, value_name = "PATTERN", allow_hyphen_values = true)]
    exclude: Vec<String>,
    /// Do not cross file system boundaries; treat mount points as empty directories
    #[arg(long)]
    one_file_system: bool,
    /// Also compare extended attributes that match, in addition to user.*, ACLs, capabilities and those in the bundle
    #[arg(long, value_name = "PATTERN")]
    xattrs: Vec<OsString>,
    #[command(flatten)]
    pub(crate) jobs: JobsArg,
}

/// A field of [`Ignore`] as an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Ignored {
    Mode,
    Owner,
    Mtime,
    Xattrs,
    Links,
    Privileged,
    Metadata,
}

impl CompareArgs {
    pub(crate) fn options(&self) -> Result<DiffOptions, Failure> {
        let exclude = match &self.exclude[..] {
            [] => None,
            patterns => Some(Exclude::new(patterns.iter().map(String::as_str))?),
        };
        Ok(DiffOptions {
            reference: self.reference.clone(),
            prefix: self.path.as_deref().map(OsStr::as_bytes).unwrap_or_default().to_vec(),
            ignore: self.ignore(),
            keeps: None,
            exclude,
            left_out: BTreeSet::new(),
            linked_duplicates: false,
            moves: true,
            jobs: self.jobs.count(),
        })
    }

    /// Returns the first given option that applies only to trees of files, not to a store's objects.
    pub(crate) fn of_trees(&self) -> Option<&'static str> {
        let given = [
            ("--path", self.path.is_some()),
            ("--ignore", !self.ignore.is_empty()),
            ("--exclude", !self.exclude.is_empty()),
            ("--one-file-system", self.one_file_system),
            ("--xattrs", !self.xattrs.is_empty()),
        ];
        given.into_iter().find_map(|(name, is_given)| is_given.then_some(name))
    }

    pub(crate) fn reference(&self) -> Option<&str> {
        self.reference.as_deref()
    }

    fn ignore(&self) -> Ignore {
        let has = |what| self.ignore.contains(&what);
        if has(Ignored::Metadata) {
            return Ignore::METADATA;
        }
        Ignore {
            mode: has(Ignored::Mode),
            owner: has(Ignored::Owner),
            mtime: has(Ignored::Mtime),
            xattrs: has(Ignored::Xattrs),
            links: has(Ignored::Links),
            privileged: has(Ignored::Privileged),
        }
    }

    pub(crate) fn xattrs(&self) -> XattrFilter {
        let mut filter = XattrFilter::default();
        for pattern in &self.xattrs {
            filter.add(pattern.as_bytes());
        }
        filter
    }

    pub(crate) fn one_file_system(&self) -> bool {
        self.one_file_system
    }

    /// Returns how to list a directory or an archive for the comparison.
    pub(crate) fn source(&self, options: &DiffOptions, xattrs: XattrFilter, progress: &Arc<Progress>) -> SourceOptions {
        SourceOptions {
            directory: DirectoryOptions {
                xattrs,
                one_file_system: self.one_file_system,
                exclude: options.exclude.clone(),
                omit_output: None,
                omit_lost_and_found: false,
                leave_mounts: false,
                progress: None,
            },
            spool_dir: std::env::temp_dir(),
            progress: Some(Arc::clone(progress)),
            ..SourceOptions::default()
        }
    }
}

/// Returns whether an argument names a directory, an archive, an image or a commit instead of a bundle.
///
/// # Errors
/// Returns an error if that cannot be determined.
pub(crate) fn is_source(argument: &OsStr) -> Result<bool, Error> {
    let is_commit = TargetKind::of(argument).0 == TargetKind::Ostree;
    let is_single = is_image(argument) || is_container_image(argument);
    let is_named = is_commit || is_single || ArchiveFormat::of(argument).is_some();
    let path = argument.as_ref();
    Ok(is_named || is_directory(path)? && !has_only_volumes(path)?)
}
