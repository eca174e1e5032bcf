//! The bases that a user names for several bundles at once.

use std::path::Path;

use sealift_format::Opened;

use super::given::assemble;
use super::{Bases, GivenBases};
use crate::{Error, Progress};

/// Bases for several bundles, each of which uses those that are its own.
#[derive(Debug)]
pub struct SharedBases<'a> {
    given: &'a GivenBases,
    /// Whether a bundle has used the place of this number.
    used: Vec<bool>,
}

impl<'a> SharedBases<'a> {
    /// Shares these bases, which no bundle has used yet.
    #[must_use]
    pub fn new(given: &'a GivenBases) -> Self {
        Self { given, used: vec![false; given.places.len()] }
    }

    /// Completes the delta bundle `path` with those of these bases that are its own. A full bundle stays as it is, and so does every bundle if there
    /// are no bases.
    ///
    /// # Errors
    /// Returns an error if a place cannot be read, or if one of the delta's bases is in none of them.
    pub fn complete(&mut self, opened: Opened, path: &Path, progress: &Progress) -> Result<(Opened, Bases), Error> {
        let delta = match opened {
            Opened::Delta(delta) if !self.given.places.is_empty() => delta,
            opened => return Ok((opened, Bases::default())),
        };
        let (mut found, mut instead) = (Vec::new(), Vec::new());
        let all = self.given.held(&delta, progress)?;
        let links: Vec<usize> = all.iter().flat_map(|held| &held.links).copied().collect();
        for (number, ((held, place), used)) in all.into_iter().zip(&self.given.places).zip(&mut self.used).enumerate() {
            *used |= !held.bases.is_empty() || links.contains(&number);
            // A place that another bundle uses was given for that one.
            if !*used {
                instead.push(format!("{}: {}", Path::new(place).display(), held.instead));
            }
            found.extend(held.bases);
        }
        assemble(delta, path, found, &instead)
    }

    /// Checks that a bundle has used each of the bases, once all bundles are complete.
    ///
    /// # Errors
    /// Returns an error that names a base that no bundle has used.
    pub fn check_used(&self) -> Result<(), Error> {
        match self.given.places.iter().zip(&self.used).find(|(_, used)| !**used) {
            Some((place, _)) => Err(Error::unexpected(place, "is not a base of any bundle here")),
            None => Ok(()),
        }
    }
}
