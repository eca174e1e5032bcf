//! `sealift pack`: packs trees into one bundle.

mod args;
mod images;
mod owner;
mod report;

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use sealift::Output;
use sealift::base::Base;
use sealift::fs::{is_directory, parent_of};
use sealift::pack::{
    DeltaFor, Estimate, Outcome, PackOptions, PackRef, PackStats, estimate, estimate_delta, pack, pack_delta,
};
use sealift::source::{OstreeOptions, Source, SourceOptions};
use sealift::split::{SplitOptions, split};
use sealift::trust::sign::sign_root;
use sealift::trust::{Guard, TargetKind, TrustOptions};
use sealift::{Error, Identity, Input, Progress, Request};
use sealift_format::RootBase;

use super::escape;
use super::failure::{About as _, Failure};
use super::keys;
use super::limits::limits;
use super::output;
use super::time;
pub(crate) use args::{Pack, parse_version};
use args::{read, split_ref};
use images::PackedImage;

/// The result.
enum Done {
    Packed(Box<PackStats>),
    Expected(Estimate),
    /// A base already has all of it.
    Unchanged(RootBase),
}

impl Done {
    fn of<T>(outcome: Outcome<T>, done: impl FnOnce(T) -> Self) -> Self {
        match outcome {
            Outcome::New(new) => done(new),
            Outcome::Unchanged(base) => Self::Unchanged(base),
        }
    }
}

impl Pack {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let epoch = time::source_date_epoch()?;
        let specs = self.specs()?;
        self.check_signed_identity()?;
        let mut options = self.options(epoch)?;
        if self.split.is_some() && self.output == Path::new("-") {
            return Err(Failure::usage(
                "--split writes volumes beside the bundle, and standard output has no place there",
            ));
        }
        let output = match self.dry_run {
            true => output::foreseen(&self.output, self.force)?,
            false => output::of(&self.output, self.force)?,
        };
        let source_options = self.source_options(options.identity.created)?;
        let request = self.request(&options.identity)?;
        let signers = keys::open(&self.key, self.passphrase_file.as_deref())?;
        if signers.is_empty() {
            output::warn_of_signed(&output, "an unsigned one", self.show);
        } else {
            time::warn_if_ahead(self.show, &options.identity);
        }
        let omitted = source_options.directory.omit_output.clone();
        let mut images = Vec::new();
        let start = Instant::now(); // without the time to type passphrases
        let done = self.progress.watch(self.show, "Listing", |progress| {
            let source_options = SourceOptions { progress: Some(Arc::clone(progress)), ..source_options };
            let ostree = OstreeOptions { refs: self.refs.clone(), depth: self.depth };
            let open = |(name, spec): &(Option<String>, OsString)| {
                Source::open_refs(spec, name.as_deref(), &ostree, &source_options, options.jobs)
            };
            let sources = specs.iter().map(open).collect::<Result<Vec<_>, _>>()?;
            let sources: Vec<(String, Source)> = sources.into_iter().flatten().collect();
            images = PackedImage::all(&sources);
            let refs: Vec<PackRef<'_>> = sources.iter().map(|(name, source)| PackRef { name, source }).collect();
            let sign = |signed: &[u8]| sign_root(signed, &signers);
            if self.base.is_empty() && request.is_none() {
                return match self.dry_run {
                    true => estimate(&refs, &options, progress).map(Done::Expected),
                    false => pack(&refs, &output, &options, &sign, progress).map(|stats| Done::Packed(stats.into())),
                };
            }
            let bases = self.base.iter().map(|base| self.open_base(base, &refs, &options, progress));
            let bases = bases.collect::<Result<Vec<_>, _>>()?;
            bases.iter().try_for_each(|base| self.check_above(base, &options.identity))?;
            if self.compatible.is_empty() && !self.any_device {
                options.identity.compatible = tags_of(&bases)?;
            }
            let target = match request {
                Some(request) => DeltaFor::Request(request, bases),
                None => DeltaFor::Bases(bases),
            };
            match self.dry_run {
                true => {
                    estimate_delta(&refs, target, &options, progress).map(|outcome| Done::of(outcome, Done::Expected))
                }
                false => pack_delta(&refs, target, &output, &options, &sign, progress)
                    .map(|outcome| Done::of(outcome, |stats| Done::Packed(stats.into()))),
            }
        })?;
        images.iter().for_each(|image| image.note(self.show));
        self.warn_of_omitted(&omitted.map(|omitted| omitted.left_out()).unwrap_or_default());
        let bundle = escape::text(&self.output.display().to_string());
        let printed = match done {
            Done::Expected(expected) => super::estimate::print(self.show, &bundle, &options.identity, &expected),
            Done::Packed(stats) => {
                self.print(&stats, &signers, images, output == Output::Stdout, start.elapsed())?;
                return self.split();
            }
            Done::Unchanged(base) => {
                self.print_unchanged(&options.identity, &base, output == Output::Stdout, start.elapsed())
            }
        };
        Ok(printed?)
    }

    /// Splits what was packed, if that is wanted.
    fn split(&self) -> Result<(), Failure> {
        let Some(size) = self.split else { return Ok(()) };
        let input = Input::open(&self.output)?;
        let options = SplitOptions { size, recovery: self.recovery, jobs: self.jobs.count(), limits: limits() };
        let directory = parent_of(&self.output);
        let done = self.progress.watch(self.show, "Opening", |progress| split(input, directory, &options, progress));
        let done = done.about(&self.output)?;
        let removed = std::fs::remove_file(&self.output);
        removed.map_err(|source| Error::Io { doing: "remove", path: self.output.clone(), source })?;
        Ok(super::split::print(self.show, &self.output, &done)?)
    }

    /// Requires a version above the base's, since a device that has the base refuses others.
    fn check_above(&self, base: &Base, identity: &Identity) -> Result<(), Error> {
        match base.identity() {
            // Unsigned test bundles have no version.
            Some((_, 0)) if identity.version == 0 && self.key.is_empty() => Ok(()),
            Some((name, version)) if name == identity.name && identity.version <= version && self.request.is_none() => {
                Err(Error::Usage(format!(
                    "the base is version {version} of {name}, and this would be version {}: use a higher --bundle-version",
                    identity.version
                )))
            }
            _ => Ok(()),
        }
    }

    /// Returns the request, if its target could accept the bundle.
    fn request(&self, identity: &Identity) -> Result<Option<Request>, Failure> {
        let Some(path) = &self.request else { return Ok(None) };
        let request = Request::parse(&read(path)?, &limits()).map_err(Error::from).about(path)?;
        // Detects an invalid request before the sources are read.
        request.complete(|_, _| None).map_err(Error::from).about(path)?;
        let (name, version) = (&identity.name, identity.version);
        let refused = match &request.base.identity {
            Some((taken, _)) if taken != name => format!("has {taken}, and this would be {name}: use --name {taken}"),
            Some((_, taken)) if *taken > version => {
                format!("has version {taken}, and this would be {version}: use a higher --bundle-version")
            }
            _ => return Ok(Some(request)),
        };
        Err(Failure::usage(format!("the target of {} {refused}", path.display())))
    }

    fn open_base(
        &self,
        base: &OsStr,
        refs: &[PackRef<'_>],
        options: &PackOptions,
        progress: &Progress,
    ) -> Result<Base, Error> {
        let (name, spec) = split_ref(base);
        match TargetKind::of(spec).0 {
            TargetKind::Directory => {}
            TargetKind::Slot => {
                let why = "a device cannot be a base for pack: give the bundle that was written there";
                return Err(Error::Usage(format!("{}: {why}", spec.display())));
            }
            TargetKind::Ostree => return Base::of_commit(spec, name, refs, options.jobs, progress),
            TargetKind::Composefs => {
                let why = "a store cannot be a base for pack: give the bundle that was installed there";
                return Err(Error::Usage(format!("{}: {why}", spec.display())));
            }
        }
        let path = Path::new(base);
        if is_directory(path)? {
            return Base::of_installed(path, "main", options.jobs, progress);
        }
        let (compatible, allow_unsigned) = (self.compatible.clone(), self.unsigned.allow_unsigned);
        let guard = Guard::load(&TrustOptions { compatible, allow_unsigned, ..self.policy.options() })?;
        Base::of_bundle(Input::open(path)?, limits(), &guard)
    }
}

/// Returns the tags of the bundles that the bases came from, so that a delta fits the devices that its base fits.
fn tags_of(bases: &[Base]) -> Result<Vec<String>, Error> {
    let mut tags = bases.iter().filter_map(Base::compatible);
    let Some(first) = tags.next() else { return Ok(Vec::new()) };
    if tags.any(|other| other != first) {
        return Err(Error::Usage(
            "the bases are for different devices: give the tags of this bundle with --compatible, or use --any-device"
                .into(),
        ));
    }
    Ok(first.to_vec())
}
