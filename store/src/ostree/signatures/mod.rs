//! What a repository requires of a commit before a ref names it: its remotes' settings, as `ostree pull` honours them.

mod armor;
mod ed25519;
mod key_list;
mod openpgp;

use sealift_format::Ref;
use sealift_format::hex;
use sealift_format::ostree::{Commit, Dictionary};

use crate::Error;
use crate::error::RepoFault;
use crate::ostree::carried::{Carried, Tip};
use crate::ostree::object::ObjectType;
use crate::ostree::refs::{RefName, RefOwner};
use crate::ostree::remote::Remote;
use crate::ostree::repo::Repo;
use ed25519::Ed25519;
use openpgp::OpenPgp;

/// Checks that `name` may refer to the commit of a ref and the parents that come with it.
///
/// # Errors
/// Returns an error if a commit names other refs or another collection, if the repository has no such remote, or if a required signature is missing.
pub(crate) fn check(repo: &Repo, name: &RefName, carried: &Carried<'_>, from: &Ref) -> Result<(), Error> {
    let (first, before) = (carried.tip(from)?, carried.before(repo, from)?);
    let refused = |tip: &Tip<'_>, why| refused(repo, name, tip, why);
    let (collection, asked) = match name.place() {
        RefOwner::Heads => (None, None),
        RefOwner::Mirror(collection) => (Some(collection.as_str()), None),
        RefOwner::Remote(wanted) => {
            let remote = repo.config().remotes.iter().find(|known| known.name == *wanted);
            let remote = remote.ok_or_else(|| repo.fault(RepoFault::NoRemote { name: wanted.clone() }))?;
            let asked = Asked::by(repo, remote)?;
            (remote.collection_id.as_deref(), Some(asked))
        }
    };
    for (reference, tip) in std::iter::once((Some(&*from.name), &first)).chain(before.iter().map(|tip| (None, tip))) {
        let commit = Commit::parse(tip.bytes).map_err(|fault| repo.wrong(ObjectType::Commit, &tip.checksum, fault))?;
        check_bindings(&commit, reference, collection).map_err(|why| refused(tip, why))?;
        if let Some(asked) = &asked {
            let beside = tip.beside.map(Dictionary::parse).transpose();
            let beside = beside.map_err(|fault| repo.wrong(ObjectType::CommitMeta, &tip.checksum, fault))?;
            asked.check(tip.bytes, beside.as_ref())?.map_err(|why| refused(tip, why))?;
        }
    }
    Ok(())
}

/// The refs of a binding that a message names.
const NAMED: usize = 16;

fn refused(repo: &Repo, name: &RefName, tip: &Tip<'_>, why: String) -> Error {
    repo.fault(RepoFault::Refused { commit: hex(&tip.checksum), name: name.to_string(), why })
}

/// Checks ref bindings: a commit bound to some refs may have no others, and one bound to none may have none; one without bindings may have any
/// name, but belongs to no collection.
fn check_bindings(commit: &Commit<'_>, reference: Option<&str>, collection: Option<&str>) -> Result<(), String> {
    if let (Some(reference), Some(mut refs)) = (reference, commit.ref_bindings())
        && !refs.any(|bound| bound == reference)
    {
        let bound: Vec<&str> = commit.ref_bindings().into_iter().flatten().take(NAMED).collect();
        let bound = if bound.is_empty() { "no ref".into() } else { bound.join(", ") };
        return Err(format!("its commit is bound to {bound}"));
    }
    let found = commit.collection_binding.filter(|_| commit.ref_bindings().is_some());
    match collection {
        Some(wanted) if found != Some(wanted) => {
            let found = found.unwrap_or("none");
            Err(format!("its collection is {found}, not {wanted}"))
        }
        _ => Ok(()),
    }
}

/// The signatures that a remote requires. If it requires both kinds, both must be valid.
struct Asked {
    openpgp: Option<OpenPgp>,
    ed25519: Option<Ed25519>,
}

impl Asked {
    fn by(repo: &Repo, remote: &Remote) -> Result<Self, Error> {
        let fault = |fault| repo.fault(fault);
        if let Some(state) = remote.text("unconfigured-state").map_err(fault)? {
            return Err(fault(remote.fault(format!("not configured: {state}"))));
        }
        let is_openpgp = remote.boolean("gpg-verify", true).map_err(fault)?;
        let ed25519 = Ed25519::asked(repo, remote, "sign-verify")?;
        let of_summary = Ed25519::asked(repo, remote, "sign-verify-summary")?;
        let is_summary = remote.boolean("gpg-verify-summary", false).map_err(fault)? || of_summary.is_some();
        // The bundle's own signature protects the list of refs in transit. But if commits count merely because a signed summary lists them, a bundle
        // cannot prove that: it need not carry that summary.
        if is_summary && !is_openpgp && ed25519.is_none() {
            return Err(fault(remote.fault(
                "it verifies only the summary, which a bundle need not have: neither gpg-verify nor sign-verify is set".into(),
            )));
        }
        let openpgp = if is_openpgp { Some(OpenPgp::of(repo, remote)?) } else { None };
        Ok(Self { openpgp, ed25519 })
    }

    /// Checks that a commit has all required signatures; the inner result is the reason if not.
    fn check(&self, signed: &[u8], beside: Option<&Dictionary<'_>>) -> Result<Result<(), String>, Error> {
        if let Some(openpgp) = &self.openpgp
            && let Err(why) = openpgp.check(beside, signed)?
        {
            return Ok(Err(why));
        }
        Ok(self.ed25519.as_ref().map_or(Ok(()), |ed25519| ed25519.check(beside, signed)))
    }
}
