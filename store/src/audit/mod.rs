//! What a store holds, compared with what was signed: audits of an OSTree repository and of a composefs store, and the check of a store's tree before it
//! is mounted. This file has what all of them report.

#[cfg_attr(not(feature = "composefs"), path = "no_composefs.rs")]
pub mod composefs;
#[cfg(feature = "composefs")]
mod mount;
mod mount_stats;
pub mod ostree;
pub mod slot;

use std::path::Path;

use serde::Serialize;

use crate::base::GivenBases;
use crate::trust::Survey;
use crate::{Error, LeftRun};
use sealift_format::num;

/// Options of auditing a store.
#[derive(Clone, Debug, Default)]
#[allow(clippy::exhaustive_structs, reason = "callers fill it in")]
pub struct StoreAuditOptions {
    /// Where the bases of a delta bundle are.
    pub bases: GivenBases,
    /// The names of bundles whose trees are checked; if empty, all that the store has a record of.
    pub names: Vec<String>,
    /// The ref to check; if `None`, all that were imported.
    pub reference: Option<String>,
    /// Ignore objects that no bundle has.
    pub allow_extra: bool,
    /// Threads; 0 counts as 1.
    pub jobs: usize,
}

/// The differences between a store and what was signed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreAudit {
    /// The trees that were checked, by their names in the store.
    pub trees: Vec<String>,
    /// The findings, sorted by name.
    pub findings: Vec<Finding>,
    /// What a run does there, or left.
    pub run: Option<LeftRun>,
    /// The names of bundles that have gone back to an older version together with their records, and the versions that this device installed.
    pub gone_back: Vec<(String, u64)>,
    /// Counts of objects and findings.
    pub counts: StoreCounts,
    /// Whether the store is marked as sealed. The kernel is then asked, and an unsealed object is a finding.
    pub is_sealed: bool,
    /// Whether it is known which objects are extra: never in an OSTree repository, nor in a store that has other images, or unreadable ones, since
    /// these may name any object.
    pub is_extra_known: bool,
}

/// Counts of an audit of a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct StoreCounts {
    /// Objects that should exist.
    pub objects: u64,
    /// Those that the kernel vouched for, and whose content was not read.
    pub vouched: u64,
    /// Those that were read and hashed.
    pub hashed: u64,
    /// The bytes of those.
    pub hashed_bytes: u64,
    /// Findings of this kind.
    pub missing: u64,
    /// Findings of this kind.
    pub extra: u64,
    /// Findings of this kind.
    pub changed: u64,
    /// Findings of this kind.
    pub unsealed: u64,
}

/// A difference.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Finding {
    /// Its path in the store, such as that of an object.
    pub name: String,
    /// The kind of difference.
    pub kind: FindingKind,
    /// A tree that contains it.
    pub tree: Option<String>,
    /// Its first path in that tree.
    pub path: Option<Vec<u8>>,
    /// The expected value, if it has a name: a digest, a commit, a link's target.
    pub expected: Option<String>,
    /// The actual value.
    pub found: Option<String>,
}

/// The kind of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
#[allow(clippy::exhaustive_enums, reason = "there is nothing else to be found")]
pub enum FindingKind {
    /// It does not exist.
    Missing,
    /// No bundle has it.
    Extra,
    /// It has changed.
    Changed,
    /// It is as expected, but not sealed as the others are.
    Unsealed,
}

impl Finding {
    pub(crate) fn new(kind: FindingKind, name: String) -> Self {
        Self { name, kind, tree: None, path: None, expected: None, found: None }
    }
}

impl StoreAudit {
    /// Returns whether nothing differs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let is_half = self.run.is_some_and(LeftRun::is_half);
        self.findings.is_empty() && self.gone_back.is_empty() && !is_half
    }

    /// Takes what is known of the target besides its objects.
    pub(crate) fn take(&mut self, name: &str, survey: &Survey) {
        if !self.run.is_some_and(LeftRun::is_half) {
            self.run = survey.run.or(self.run);
        }
        self.gone_back.extend(survey.gone_back_from().map(|version| (name.to_owned(), version)));
    }

    /// Sorts and counts the findings.
    pub(crate) fn sum_up(&mut self) {
        self.findings.sort_unstable();
        self.findings.dedup();
        let count = |kind| {
            let found = self.findings.iter().filter(|finding| finding.kind == kind).count();
            num::wide(found)
        };
        self.counts.missing = count(FindingKind::Missing);
        self.counts.extra = count(FindingKind::Extra);
        self.counts.changed = count(FindingKind::Changed);
        self.counts.unsealed = count(FindingKind::Unsealed);
    }
}

/// Returns the names of the bundles that a store has records of, or only those requested, sorted.
///
/// # Errors
/// Returns an error if there are none, or if a requested one is missing.
pub(crate) fn kept_names(store: &Path, mut kept: Vec<String>, asked: &[String]) -> Result<Vec<String>, Error> {
    kept.sort_unstable();
    if kept.is_empty() {
        return Err(Error::NoRecord { path: store.to_owned() });
    }
    if let Some(unknown) = asked.iter().find(|name| !kept.contains(name)) {
        let held = kept.join(", ");
        let unknown = unknown.escape_debug();
        return Err(Error::unexpected(store, format!("has no bundle named {unknown}; it has {held}")));
    }
    kept.retain(|name| asked.is_empty() || asked.contains(name));
    Ok(kept)
}
