//! The trust options, and the judgement of bundles by them.

use std::cell::OnceCell;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use sealift::trust::{Guard, Judged, SignatureState, TrustOptions, Trusted, Utc, Verdict};
use sealift::{Envelope, Error, Head, Input, Kind};

use super::advice::advice;
use super::digests::Digests;
use super::escape;
use super::failure::{Failure, shown};
use super::human::count;
use super::limits::limits;
use super::show::{BAD, BOLD, DIM, GOOD, Show, WARN};
use super::signature::{JsonSignature, key_of, outcome};
use super::signers::Signers;
use sealift_format::num;

/// The trust options, with what may be waived of a bundle that is installed or read.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Trust")]
pub(crate) struct AdmitArgs {
    #[command(flatten)]
    installed: InstalledTrustArgs,
    /// Accept a bundle older than the version installed on this device
    #[arg(long)]
    allow_downgrade: bool,
}

/// The trust options, with what may be waived of a bundle that was installed before.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Trust")]
pub(crate) struct InstalledTrustArgs {
    #[command(flatten)]
    trust: TrustArgs,
    #[command(flatten)]
    unsigned: UnsignedArgs,
}

/// Whether signatures may be missing.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Trust")]
pub(crate) struct UnsignedArgs {
    /// Accept a bundle that no trusted key signed; all other checks remain
    #[arg(long)]
    pub(crate) allow_unsigned: bool,
}

/// The trust options, with this device's tags.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Trust")]
pub(crate) struct TrustArgs {
    #[command(flatten)]
    policy: PolicyArgs,
    /// A tag of this device, for bundles restricted to certain devices
    #[arg(long, value_name = "TAG")]
    compatible: Vec<String>,
}

/// The administrator's files and the device's state.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Trust")]
pub(crate) struct PolicyArgs {
    /// Allowed signers file, as for ssh-keygen and git [default: /etc/sealift/allowed_signers, or the user's own]
    #[arg(long, value_name = "FILE")]
    trust: Option<PathBuf>,
    /// Revoked keys: a list made by ssh-keygen -k, or one public key per line
    #[arg(long, value_name = "FILE")]
    revoked: Option<PathBuf>,
    /// Require signatures by N trusted keys; NAME=N applies to bundles named NAME
    #[arg(long, value_name = "N")]
    threshold: Vec<String>,
    /// Directory that records the highest version installed
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    state: Option<PathBuf>,
    /// Check keys and expiry as of this time, such as 2027-01-31
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    time: Option<i64>,
}

/// What the list of a channel is judged by, in a verb that reads bundles whoever signed them.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Trust")]
pub(crate) struct ListTrustArgs {
    #[command(flatten)]
    policy: PolicyArgs,
    #[command(flatten)]
    unsigned: UnsignedArgs,
}

impl ListTrustArgs {
    /// Reads the administrator's files and the device's state.
    pub(crate) fn guard(&self) -> Result<Guard, Failure> {
        Ok(Guard::load(&TrustOptions { allow_unsigned: self.unsigned.allow_unsigned, ..self.policy.options() })?)
    }
}

/// Parses a time.
pub(crate) fn parse_time(text: &str) -> Result<i64, String> {
    Utc::parse(text).map(|moment| moment.0).map_err(|error| error.to_string())
}

impl AdmitArgs {
    /// Reads the administrator's files and the device's state.
    pub(crate) fn load(&self) -> Result<Judge, Failure> {
        let options = TrustOptions { allow_downgrade: self.allow_downgrade, ..self.installed.options() };
        Ok(Judge::by(&options)?)
    }

    /// Returns the state's directory, if it was given.
    pub(crate) fn state(&self) -> Option<&Path> {
        self.installed.state()
    }

    /// Returns the same with the trust files, thresholds and tags of `line`, where it has any.
    pub(crate) fn with(&self, line: &Self) -> Self {
        let mut own = self.clone();
        let (to, from) = (&mut own.installed.trust, &line.installed.trust);
        let (policy, of) = (&mut to.policy, &from.policy);
        policy.trust = of.trust.clone().or(policy.trust.take());
        policy.revoked = of.revoked.clone().or(policy.revoked.take());
        if !of.threshold.is_empty() {
            policy.threshold.clone_from(&of.threshold);
        }
        if !from.compatible.is_empty() {
            to.compatible.clone_from(&from.compatible);
        }
        own
    }

    /// Returns the files given.
    pub(crate) fn files(&self) -> impl Iterator<Item = &Path> {
        let policy = &self.installed.trust.policy;
        policy.trust.iter().chain(&policy.revoked).map(PathBuf::as_path)
    }
}

impl InstalledTrustArgs {
    /// Returns the state's directory, if it was given.
    pub(crate) fn state(&self) -> Option<&Path> {
        self.trust.policy.state.as_deref()
    }

    pub(crate) fn options(&self) -> TrustOptions {
        TrustOptions { allow_unsigned: self.unsigned.allow_unsigned, ..self.trust.options() }
    }
}

impl TrustArgs {
    pub(crate) fn options(&self) -> TrustOptions {
        TrustOptions { compatible: self.compatible.clone(), ..self.policy.options() }
    }
}

impl PolicyArgs {
    pub(crate) fn options(&self) -> TrustOptions {
        TrustOptions {
            signers: self.trust.clone(),
            revoked: self.revoked.clone(),
            thresholds: self.threshold.clone(),
            state: self.state.clone(),
            time: self.time,
            waiting: Some(tell_waiting),
            ..TrustOptions::default()
        }
    }
}

/// Says that another run holds the state's lock.
pub(crate) fn tell_waiting(lock: &Path) {
    let json = std::env::args_os().any(|argument| argument == "--json");
    let message = format!("waiting for another sealift run, which holds {}", lock.display());
    Show { json, quiet: false }.warn(&message);
}

/// Judges one bundle, and keeps the result.
#[derive(Debug)]
pub(crate) struct Judge {
    guard: Guard,
    judged: OnceCell<Judged>,
}

impl Judge {
    /// Returns a judge with these options.
    pub(crate) fn by(options: &TrustOptions) -> Result<Self, Error> {
        Ok(Self { guard: Guard::load(options)?, judged: OnceCell::new() })
    }

    /// Returns the bundle, if it may be used.
    pub(crate) fn admit(&self, input: Input) -> Result<Trusted, Error> {
        let bundle = self.guard.admit(input, limits())?;
        self.saw(bundle.judged().clone());
        Ok(bundle)
    }

    /// Judges a bundle of which only a volume is there.
    pub(crate) fn judge(&self, head: &Head) -> Result<(), Error> {
        self.saw(self.guard.judge_head(head)?);
        Ok(())
    }

    /// Keeps the judgement of a bundle.
    pub(crate) fn saw(&self, judged: Judged) {
        self.judged.get_or_init(|| judged);
    }

    /// Returns a judge with the same options that has this judgement.
    pub(crate) fn of(&self, judged: Judged) -> Self {
        Self { guard: self.guard.clone(), judged: judged.into() }
    }

    /// Returns the guard that judges.
    pub(crate) fn guard(&self) -> &Guard {
        &self.guard
    }

    /// Judges a bundle as one that is already installed.
    pub(crate) fn judge_installed(&self, head: &Head) -> Result<(), Error> {
        self.saw(self.guard.judge_installed(head)?);
        Ok(())
    }

    /// Prints warnings about waived checks, whatever else is printed.
    pub(crate) fn warn(&self, show: Show) {
        let Some(Judged { head, verdict, .. }) = self.judged.get() else { return };
        if verdict.unsigned {
            show.warn("UNSIGNED: no trusted key signed this bundle; accepted because of --allow-unsigned");
        }
        if let Some(floor) = verdict.below_floor {
            show.warn(&format!("version {floor} was installed on this device before; accepted an older one because of --allow-downgrade"));
        }
        if let Some(unknown) = unknown_envelopes(&verdict.unknown_envelopes) {
            show.warn(&unknown);
        }
        if let Some(expires) = self.guard.expired_but_for_time(head)
            && verdict.since.is_empty()
        {
            let expires = Utc(expires);
            show.warn(&format!("this bundle expired at {expires} by this machine's clock; accepted because of --time"));
        }
    }

    /// Returns the mark for a bundle accepted without a trusted signature, to follow its name.
    pub(crate) fn mark(&self) -> String {
        let unsigned = self.judged.get().is_some_and(|judged| judged.verdict.unsigned);
        if unsigned { format!(", {WARN}UNSIGNED{WARN:#}") } else { String::new() }
    }

    /// Returns the digests of the judged bundle.
    pub(crate) fn digests(&self) -> Option<Digests> {
        self.judged.get().map(|Judged { head, .. }| Digests::of(head))
    }

    /// Returns the head of the judged bundle.
    pub(crate) fn head(&self) -> Option<&Head> {
        self.judged.get().map(|judged| &judged.head)
    }

    /// Returns name and version of the judged bundle.
    pub(crate) fn identity(&self) -> (&str, u64) {
        self.judged
            .get()
            .map_or(("", 0), |Judged { head, .. }| (&head.root().identity.name, head.root().identity.version))
    }

    /// Prints the first lines about an import: target, bundle and signers.
    pub(crate) fn print_taken(
        &self,
        out: &mut dyn Write,
        target: &Path,
        bundle: &Path,
        dry_run: bool,
    ) -> io::Result<()> {
        let verb = if dry_run { "would import" } else { "imported" };
        let (target, bundle) = (target.display().to_string(), shown(bundle));
        writeln!(out, "{BOLD}{}{BOLD:#}: {verb} {}{}", escape::text(&target), escape::text(&bundle), self.mark())?;
        self.print_signers(out)
    }

    /// Prints a line for each trusted signer, and for each signature that this version cannot check.
    pub(crate) fn print_signers(&self, out: &mut dyn Write) -> io::Result<()> {
        let Some(Judged { verdict, .. }) = self.judged.get() else { return Ok(()) };
        for signer in &verdict.signers {
            writeln!(out, "{}", format!("  signed by {} {}", signer.key, escape::text(&signer.comment)).trim_end())?;
        }
        for unknown in verdict.others.iter().filter_map(SignatureState::unknown) {
            let why = format!("{DIM}signature by {} not counted:{DIM:#} {unknown}", unknown.key);
            super::show::paragraph(out, 2, &why)?;
        }
        Ok(())
    }

    /// Returns whether the judged bundle has a kernel signature.
    pub(crate) fn has_kernel_signature(&self) -> bool {
        self.judged.get().is_some_and(|judged| judged.head.bodies(Envelope::KERNEL_SIGNATURE).next().is_some())
    }

    /// Prints a line for each thing that has changed since the installation.
    pub(crate) fn print_since(&self, out: &mut dyn Write) -> io::Result<()> {
        for since in self.since() {
            writeln!(out, "  {DIM}since then:{DIM:#} {since}")?;
        }
        Ok(())
    }

    /// Returns the same as strings, for JSON.
    pub(crate) fn since(&self) -> Vec<String> {
        let since = self.judged.get().map(|judged| &judged.verdict.since[..]).unwrap_or_default();
        since.iter().map(ToString::to_string).collect()
    }

    /// Returns who signed, for JSON.
    pub(crate) fn signers(&self) -> Signers {
        Signers::of(self.judged.get().map(|judged| &judged.verdict))
    }

    /// Prints the result of each signature of the judged bundle.
    pub(crate) fn print_signatures(&self, out: &mut dyn Write, head: &Head) -> io::Result<()> {
        let Some(Judged { verdict, .. }) = self.judged.get() else { return Ok(()) };
        Seen::new(Ok(verdict.clone()), self.guard.inspect(head), head).print(out)
    }

    /// Inspects a bundle that may be refused.
    pub(crate) fn inspect(&self, head: &Head) -> Result<Seen, Error> {
        let verdict = match self.guard.judge(head) {
            Err(error) if error.kind().is_none() => return Err(error), // the device's state, not the bundle
            other => other,
        };
        Ok(Seen::new(verdict, self.guard.inspect(head), head))
    }
}

/// Returns how many envelopes of unknown kinds are ignored; there may be thousands.
fn unknown_envelopes(kinds: &[u32]) -> Option<String> {
    const NAMED: usize = 3;
    let mut distinct = kinds.to_vec();
    distinct.sort_unstable();
    distinct.dedup();
    let named: Vec<String> = distinct.iter().take(NAMED).map(ToString::to_string).collect();
    let more = if distinct.len() > NAMED { ", ..." } else { "" };
    let named = format!("{}{more}", named.join(", "));
    match kinds.len() {
        0 => None,
        1 => Some(format!("ignored an envelope of unknown kind {named}")),
        number => Some(format!("ignored {} of unknown kinds ({named})", count(num::wide(number), "envelope"))),
    }
}

/// The verdict of this device on a bundle.
#[derive(Debug)]
pub(crate) struct Seen {
    verdict: Result<Verdict, Error>,
    states: Vec<SignatureState>,
    envelopes: usize,
    /// Length of each kernel signature; a valid bundle has at most one.
    kernel: Vec<usize>,
}

impl Seen {
    fn new(verdict: Result<Verdict, Error>, states: Vec<SignatureState>, head: &Head) -> Self {
        let kernel: Vec<usize> = head.bodies(Envelope::KERNEL_SIGNATURE).map(<[u8]>::len).collect();
        Self { verdict, states, envelopes: head.envelopes().count() - kernel.len(), kernel }
    }

    /// Returns the verdict in words, not by colour alone.
    pub(crate) fn headline(&self) -> String {
        let unsigned = self.envelopes == 0;
        match &self.verdict {
            Ok(_) => format!("{GOOD}TRUSTED{GOOD:#}"),
            Err(_) if unsigned => format!("{BAD}UNSIGNED{BAD:#}"),
            Err(error) => {
                let word = match error.kind() {
                    Some(Kind::Signature) => "BAD SIGNATURE",
                    Some(Kind::Revoked) => "REVOKED",
                    Some(Kind::Expired) => "EXPIRED",
                    Some(Kind::Downgrade) => "OLDER THAN INSTALLED",
                    Some(Kind::Incompatible) => "NOT FOR THIS DEVICE",
                    _ => "UNTRUSTED",
                };
                format!("{BAD}{word}{BAD:#}")
            }
        }
    }

    /// Returns the word in JSON: `trusted`, or the kind of failure.
    pub(crate) fn word(&self) -> &'static str {
        match &self.verdict {
            Ok(_) => "trusted",
            Err(error) => error.kind().map_or("untrusted", Kind::word),
        }
    }

    /// Prints a line or two for each signature, and the reason for a refusal.
    pub(crate) fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        if self.states.is_empty() {
            writeln!(out, "  {WARN}NONE{WARN:#}: anyone could have made or changed this bundle")?;
        }
        for state in &self.states {
            let (word, style, why) = outcome(state);
            let key = key_of(state).map_or("no readable key".into(), |(id, key_type)| format!("{id} {key_type}"));
            writeln!(out, "  {style}{}{style:#} {key}", word.to_uppercase())?;
            writeln!(out, "          {}", escape::text(&why))?;
        }
        if let Err(error) = &self.verdict
            && (!self.states.is_empty() || !self.kernel.is_empty())
        {
            let message = escape::text(&format!("{error}{}", advice(error).unwrap_or_default()));
            // The clauses about each key are printed above.
            let news = message.split("; ").filter(|clause| !clause.starts_with("SHA256:"));
            let refusal = format!("Refused: {}", news.collect::<Vec<_>>().join("; "));
            super::show::clauses(out, 2, &refusal)?;
        }
        for len in &self.kernel {
            writeln!(out, "  {DIM}KERNEL{DIM:#}  {len} bytes, checked only by kernels that have the certificate")?;
        }
        let others = self.envelopes.saturating_sub(self.states.len());
        if others > 0 {
            writeln!(out, "  {DIM}and {others} of an unknown kind, ignored{DIM:#}")?;
        }
        Ok(())
    }

    /// Returns the signatures, for JSON.
    pub(crate) fn json(&self) -> Vec<JsonSignature> {
        self.states.iter().map(JsonSignature::of).collect()
    }

    /// Returns whether there is a kernel signature.
    pub(crate) fn has_kernel_signature(&self) -> bool {
        !self.kernel.is_empty()
    }

    /// Returns the error of a bundle with an invalid signature, which is damaged or was changed, whoever is trusted.
    pub(crate) fn wrong_signature(self) -> Option<Error> {
        self.verdict.err().filter(|error| error.kind() == Some(Kind::Signature))
    }

    /// Returns the reason for a refusal, for JSON.
    pub(crate) fn refusal(&self) -> Option<String> {
        self.verdict.as_ref().err().map(ToString::to_string)
    }
}
