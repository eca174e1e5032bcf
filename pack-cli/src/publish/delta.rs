//! The deltas of a channel, from the versions that a rule names to the newest.

use std::path::Path;

use sealift_format::{Head, ListedFile};
use sealift_store::base::Base;
use sealift_store::source::{BundleSource, Source};

use super::{Run, VersionRule};
use crate::pack::{DeltaFor, Outcome, PackOptions, PackRef, pack_delta};
use crate::trust::sign::sign_root;
use crate::{Error, Input, Output};

impl Run<'_> {
    /// Makes the deltas that the rule names and that are not there, and drops those that are not smaller than the full bundle.
    pub(super) fn add_deltas(&mut self, rule: &VersionRule) -> Result<(), Error> {
        let full: Vec<ListedFile> = self.files.iter().filter(|row| row.bases.is_empty()).cloned().collect();
        let Some(newest) = full.iter().map(|row| row.version).max() else { return Ok(()) };
        let older = full.iter().filter(|row| row.version < newest);
        let named = rule.named(&older.clone().map(|row| (row.version, row.created)).collect::<Vec<_>>());
        for to in full.iter().filter(|row| row.version == newest) {
            let has = |from: &ListedFile| {
                let is_there =
                    |row: &ListedFile| row.bases == [from.index_digest] && row.index_digest == to.index_digest;
                from.index_digest == to.index_digest || self.files.iter().any(is_there)
            };
            let from: Vec<&ListedFile> =
                older.clone().filter(|row| named.contains(&row.version)).filter(|row| !has(row)).collect();
            if !from.is_empty() {
                self.add_deltas_to(to, &from)?;
            }
        }
        Ok(())
    }

    fn add_deltas_to(&mut self, to: &ListedFile, from: &[&ListedFile]) -> Result<(), Error> {
        let (head, whole) = self.open(to)?;
        if whole.index.refs().iter().any(|found| found.ostree.is_some()) {
            self.stats.commits.push(to.file.clone());
            return Ok(());
        }
        let mut reader = whole.reader();
        let mut read = |object, range, out: &mut Vec<u8>| reader.read(object, range, out);
        let sources = BundleSource::open_all(&whole.index, &mut read, self.directory, self.progress)?;
        let sources: Vec<(String, Source)> =
            sources.into_iter().map(|(name, source)| (name, Source::Bundle(source))).collect();
        let refs: Vec<PackRef<'_>> = sources.iter().map(|(name, source)| PackRef { name, source }).collect();
        for from in from {
            self.add_delta(&refs, &head, to, from)?;
        }
        Ok(())
    }

    fn add_delta(
        &mut self,
        refs: &[PackRef<'_>],
        head: &Head,
        to: &ListedFile,
        from: &ListedFile,
    ) -> Result<(), Error> {
        let (base_head, base) = self.open(from)?;
        if base_head.root().identity.compatible != head.root().identity.compatible {
            tracing::info!(from = from.file, to = to.file, "are for different devices: no delta");
            return Ok(());
        }
        let root = head.root();
        let mut options = PackOptions::new(root.identity.clone());
        options.annotations.clone_from(&root.annotations);
        for image in &root.images {
            let algorithm = image.digest.algorithm();
            if !options.images.contains(&algorithm) {
                options.images.push(algorithm);
            }
        }
        options.recipes = root.recipes.is_some();
        options.level = self.options.level;
        options.jobs = self.options.jobs;
        options.limits = self.options.limits.clone();
        // Its name until it is known to be worth having; no server lists it.
        let spool = self.directory.join(format!(".{}-from-{}.sealift-new", to.file, from.version));
        let sign = |signed: &[u8]| sign_root(signed, self.options.keys);
        let packed =
            pack_delta(refs, DeltaFor::Bases(vec![base]), &Output::File(spool.clone()), &options, &sign, self.progress);
        let taken = packed.and_then(|packed| self.take_delta(&spool, packed, to));
        match std::fs::remove_file(&spool) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::io("remove", &spool, error)),
            _ => taken,
        }
    }

    /// Gives a delta its name, if it is smaller than the full bundle.
    fn take_delta(
        &mut self,
        spool: &Path,
        packed: Outcome<crate::pack::PackStats>,
        to: &ListedFile,
    ) -> Result<(), Error> {
        let Outcome::New(_) = packed else { return Ok(()) };
        let head = Input::open(spool)?.read_head(self.options.limits.clone())?;
        let row = self.row(&head, spool)?;
        if row.len >= to.len {
            self.stats.not_smaller.push(row.file);
            return Ok(());
        }
        // What devices would install has to be what the full bundle installs.
        if row.index_digest != to.index_digest {
            return Err(Error::unexpected(spool, "would not install what the full bundle does"));
        }
        let place = self.directory.join(&row.file);
        std::fs::rename(spool, &place).map_err(|error| Error::io("rename to", &place, error))?;
        self.stats.deltas.push(row.file.clone());
        self.put(row);
        Ok(())
    }

    /// Opens a full bundle of the channel.
    fn open(&self, row: &ListedFile) -> Result<(Head, Base), Error> {
        let path = self.directory.join(&row.file);
        let head = Input::open(&path)?.read_head(self.options.limits.clone())?;
        if head.root_digest() != row.root_digest {
            return Err(Error::unexpected(&path, "is not the bundle that the channel's list names"));
        }
        let base = Base::of_bundle(Input::open(&path)?, self.options.limits.clone(), self.options.guard)?;
        Ok((head, base))
    }
}
