//! Mounts a bundle, and serves it until it is unmounted.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use sealift::Output;
use sealift::Progress;
use sealift::fs::is_directory;
use sealift::in_place::{Fault, ReadOptions};
use sealift::mount::{Mount as Mounted, MountOptions, Recording, Unmounter};
use sealift::trust::TargetKind;
use serde::Serialize;

use super::Mount;
use crate::bundle::BundleArg;
use crate::escape;
use crate::failure::{About as _, Failure, complain};
use crate::interrupt;
use crate::order::print_profile;
use crate::output;
use crate::reading::Reading;
use crate::show::{BOLD, Show, json_line};
use crate::signers::Signers;
use crate::trust_args::Judge;

/// What a signal ends: the mount, once it exists.
struct Serving {
    was_stopped: bool,
    unmounter: Option<Unmounter>,
    record: Option<Record>,
    show: Show,
}

/// The recording, and where it is written when the mount ends.
struct Record {
    path: PathBuf,
    output: Output,
    recording: Recording,
}

#[derive(Serialize)]
struct JsonMount<'a> {
    name: &'a str,
    version: u64,
    #[serde(flatten)]
    signers: Signers,
    mountpoint: &'a str,
    refs: Vec<String>,
}

impl Mount {
    /// Mounts a bundle, of several the one that is over the others.
    pub(super) fn run_bundle(&self, bundles: Vec<PathBuf>, mountpoint: &Path) -> Result<(), Failure> {
        if bundles.iter().any(|bundle| bundle == Path::new("-")) {
            return Err(Failure::usage("a bundle is mounted from a file, not from standard input"));
        }
        let judge = self.trust.load()?;
        let Reading { bundle: given, base } = self.reading(bundles, &judge)?;
        let bundle = &*given.bundle;
        let bases = base.given(self.jobs, self.trust.state());
        let options = MountOptions {
            refs: self.references.clone(),
            read: ReadOptions { jobs: self.jobs.count(), cache_bytes: self.cache_bytes() },
            allow_other: self.allow_other || rustix::process::geteuid().is_root(),
            dev_suid: self.dev_suid,
            recording: self.record.is_some().then(Recording::default),
        };
        let record = options.recording.clone().zip(self.record.as_deref()).map(|(recording, path)| {
            let output = output::of(path, self.force)?;
            output.check()?;
            Ok::<_, Failure>(Record { path: path.to_owned(), output, recording })
        });
        let record = record.transpose()?;
        let (json, name) = (self.show.json, bundle.to_owned());
        let report = move |fault: &Fault| complain(fault.error.word(), &format!("{}: {fault}", name.display()), json);
        let input = given.open()?;
        let listen = if record.is_some() { interrupt::serve_patiently } else { interrupt::serve };
        let serving = Serving { was_stopped: false, unmounter: None, record, show: self.show };
        let serving = Arc::new(Mutex::new(serving));
        listen({
            let serving = Arc::clone(&serving);
            move || serving.lock().stop()
        });
        let mounted = self.progress.watch(self.show, "Opening", |progress: &Arc<Progress>| {
            let bundle = judge.admit(input)?;
            Mounted::new(bundle, &bases, mountpoint, &options, Box::new(report), progress)
        });
        let mut mounted = mounted.about(bundle)?;
        judge.warn(self.show);
        let told = self.print(bundle, mountpoint, &mounted, &judge);
        {
            let mut serving = serving.lock();
            serving.unmounter = Some(mounted.unmounter());
            if serving.was_stopped {
                serving.stop();
            }
        }
        // A service manager starts what needs the mount. Whoever else started it sets no address to tell it to.
        let _ = sd_notify::notify(&[sd_notify::NotifyState::Ready]);
        let served = mounted.serve().about(bundle);
        serving.lock().keep()?;
        served?;
        // A closed pipe is no failure of the mount.
        crate::failure::verdict_printed(told)
    }

    /// Returns what is mounted. A base may also be a directory to which it was unpacked; the bundle follows it.
    fn reading(&self, mut bundles: Vec<PathBuf>, judge: &Judge) -> Result<Reading, Failure> {
        let mut has_directory = false;
        for bundle in &bundles {
            has_directory |= TargetKind::of(bundle).0 != TargetKind::Directory || is_directory(bundle)?;
        }
        if bundles.len() > 1 && has_directory {
            let last = bundles.pop().unwrap_or_default();
            return Ok(Reading { bundle: BundleArg::of(last), base: self.base.and(&bundles) });
        }
        Reading::of(bundles, self.base.clone(), self.show, || Ok(judge.guard().clone()))
    }

    /// Reports the mount: on standard error, since it goes on, or as a line of JSON on standard output.
    fn print(&self, bundle: &Path, mountpoint: &Path, mounted: &Mounted, judge: &Judge) -> io::Result<()> {
        let (name, version) = judge.identity();
        let at = mountpoint.display().to_string();
        if self.show.json {
            let (mountpoint, refs) = (&at[..], mounted.refs().to_vec());
            let mut out = self.show.out();
            json_line(&mut out, &JsonMount { name, version, signers: judge.signers(), mountpoint, refs })?;
            return out.flush();
        }
        if self.show.quiet {
            return Ok(());
        }
        let bundle = bundle.display().to_string();
        let (at, bundle) = (escape::text(&at), escape::text(&bundle));
        let mut out = anstream::stderr().lock();
        writeln!(out, "{BOLD}{at}{BOLD:#}: mounted {bundle}, version {version}{}", judge.mark())?;
        judge.print_signers(&mut out)
    }
}

impl Serving {
    /// Unmounts after a signal. A mount that is still in use only leaves the tree, and ends with this process.
    fn stop(&mut self) {
        self.was_stopped = true;
        let Some(unmounter) = &mut self.unmounter else { return };
        match unmounter.unmount() {
            Ok(true) => {}
            Ok(false) => std::process::exit(match self.keep() {
                Ok(()) => 0,
                Err(failure) => {
                    failure.tell(self.show.json);
                    2
                }
            }),
            Err(error) => {
                Failure::from(error).tell(self.show.json);
                // It goes on. The next signal ends the process, and must not lose the recording.
                if let Err(failure) = self.keep() {
                    failure.tell(self.show.json);
                }
                interrupt::end_patience();
            }
        }
    }

    /// Writes what was recorded, once.
    fn keep(&mut self) -> Result<(), Failure> {
        let Some(Record { path, output, recording }) = self.record.take() else { return Ok(()) };
        let profile = recording.profile();
        output.write(profile.to_text().as_bytes())?;
        Ok(print_profile(self.show, &path, &profile)?)
    }
}
