//! What an audit of a store finds: of an OSTree repository, or of a composefs store.

use std::path::Path;

use crate::Error;
use sealift_format::num;

/// How a store is audited.
#[derive(Clone, Debug, Default)]
#[allow(clippy::exhaustive_structs, reason = "callers fill it in")]
pub struct StoreAuditOptions {
    /// The names of bundles whose trees are looked at; none is all of which the store keeps something.
    pub names: Vec<String>,
    /// The ref that is looked at; none is all that the store took.
    pub reference: Option<String>,
    /// Objects of which no bundle knows make no difference.
    pub allow_extra: bool,
    /// Threads; 0 is 1.
    pub jobs: usize,
}

/// How a store differs from what is signed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreAudit {
    /// The trees that were looked at, by their names in the store.
    pub trees: Vec<String>,
    /// By their names.
    pub findings: Vec<Finding>,
    /// How many of what there were.
    pub counts: StoreCounts,
    /// Whether the store says that what it took is sealed. The kernel is asked then, and what is not sealed is a finding.
    pub is_sealed: bool,
    /// Whether extra objects were looked for: not where others have objects in the store too.
    pub is_extra_known: bool,
}

/// How many of what an audit of a store found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreCounts {
    /// Objects that are to be there.
    pub objects: u64,
    /// Those for which the kernel vouched, and whose content was not read.
    pub vouched: u64,
    /// Those that were read and hashed.
    pub hashed: u64,
    /// Their bytes.
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

/// One thing that is not as it is to be.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Finding {
    /// Its path in the store, such as that of an object.
    pub name: String,
    /// What is wrong with it.
    pub kind: FindingKind,
    /// A tree that has it.
    pub tree: Option<String>,
    /// The first path there.
    pub path: Option<Vec<u8>>,
    /// What it is to be, where that has a name: a digest, a commit, where a link leads.
    pub expected: Option<String>,
    /// What it is.
    pub found: Option<String>,
}

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(clippy::exhaustive_enums, reason = "there is nothing else to be found")]
pub enum FindingKind {
    /// It is not there.
    Missing,
    /// No bundle has it.
    Extra,
    /// It is something else.
    Changed,
    /// It is what it is to be, and not sealed as the others are.
    Unsealed,
}

impl Finding {
    pub(crate) fn new(kind: FindingKind, name: String) -> Self {
        Self { name, kind, tree: None, path: None, expected: None, found: None }
    }
}

impl StoreAudit {
    /// Whether nothing differs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.findings.is_empty()
    }

    /// Brings the findings in order, and counts them.
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

/// The bundles of which a store keeps something, or those of them that are asked for, in order.
///
/// # Errors
/// There are none, or not these.
pub(crate) fn kept_names(store: &Path, mut kept: Vec<String>, asked: &[String]) -> Result<Vec<String>, Error> {
    let store = store.display();
    kept.sort_unstable();
    if kept.is_empty() {
        return Err(Error::Usage(format!("no install record in {store}: pass the BUNDLE to compare with")));
    }
    if let Some(unknown) = asked.iter().find(|name| !kept.contains(name)) {
        let held = kept.join(", ");
        return Err(Error::Usage(format!("{store} has no bundle named {}; it has {held}", unknown.escape_debug())));
    }
    kept.retain(|name| asked.is_empty() || asked.contains(name));
    Ok(kept)
}
