//! The command line, a thin layer over the library. Each verb has a file, which parses its arguments, calls the library and prints.

mod adopt;
mod advice;
mod audit;
mod audit_slot;
mod audit_store;
mod audit_words;
mod base_args;
mod bundle;
mod cat;
mod clean;
mod closed;
mod compare_args;
mod completions;
mod copies;
mod diff;
mod diff_inside;
mod differences;
mod digest;
mod digests;
mod dm_verity;
mod estimate;
mod failure;
mod file_limit;
mod help;
mod hidden;
mod human;
mod info;
mod info_channel;
mod interrupt;
mod jobs_arg;
mod json_file;
mod key;
mod keys;
mod limits;
mod log;
mod lone_recovery;
mod ls;
mod manual;
mod measure;
mod mount;
mod next_volume;
mod one_of;
mod order;
mod output;
mod pack;
mod portal;
mod progress_args;
mod progress_display;
mod publish;
mod reading;
mod recovery;
mod recovery_amount;
mod refs;
mod renamed;
mod repair;
mod request;
mod root;
mod seal;
mod several;
mod show;
mod sign;
mod signature;
mod signers;
mod simulate;
mod split;
mod status;
mod taken;
mod then;
mod time;
mod trust;
mod trust_args;
mod unpack;
mod updated;
mod verdict;
mod verify;
mod verity_args;
mod volume;
mod volume_size;

use std::io::Write as _;
use std::process::ExitCode;

use clap::{FromArgMatches as _, Parser, Subcommand};
use sealift_verify::escape;

use failure::Failure;

/// Deliver updates to offline machines in one signed file
#[derive(Debug, Parser)]
#[command(name = "sealift", version, disable_help_subcommand = true, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
    /// Print more, and log to standard error; -vv logs each step
    #[arg(long, short, global = true, action = clap::ArgAction::Count, help_heading = "Output")]
    verbose: u8,
    /// Refuse bundles over these limits: entries=N, depth=N, paths=SIZE, size=SIZE, memory=SIZE
    #[arg(
        long = "limit", value_name = "WHAT=N", global = true, value_delimiter = ',', hide_short_help = true,
        value_parser = limits::parse_limit, help_heading = "Limits"
    )]
    limits: Vec<limits::Limit>,
}

/// The verbs. help.rs groups them by user.
#[derive(Debug, Subcommand)]
enum Verb {
    Pack(Box<pack::Pack>),
    Order(order::Order),
    Sign(sign::Sign),
    Root(root::Root),
    Split(split::Split),
    Key(key::Key),
    Publish(publish::Publish),
    Verify(verify::Verify),
    Info(info::Info),
    Ls(ls::Ls),
    Cat(cat::Cat),
    Diff(diff::Diff),
    Recovery(recovery::Recovery),
    Repair(repair::Repair),
    Simulate(simulate::Simulate),
    Trust(trust::Trust),
    #[command(hide = help::is_lacking("portal"))]
    Portal(portal::Portal),
    Unpack(Box<unpack::Unpack>),
    Mount(mount::Mount),
    Audit(audit::Audit),
    Status(status::Status),
    Seal(seal::Seal),
    Measure(measure::Measure),
    Digest(digest::Digest),
    Request(request::Request),
    Clean(clean::Clean),
    Completions(completions::Completions),
    Manual(manual::Manual),
}

impl Verb {
    /// Returns what the verb takes memory for besides the bundles that it reads.
    fn uses(&self) -> limits::Uses {
        match self {
            Self::Pack(pack) => pack.uses(),
            Self::Verify(verify) => verify.uses(),
            Self::Info(info) => info.uses(),
            Self::Diff(diff) => diff.uses(),
            Self::Unpack(unpack) => unpack.uses(),
            Self::Mount(mount) => mount.uses(),
            Self::Recovery(recovery) => recovery.uses(),
            Self::Split(split) => split.uses(),
            Self::Repair(repair) => repair.uses(),
            Self::Audit(audit) => audit.uses(),
            _ => limits::Uses { jobs: 1, cache: 0 },
        }
    }
}

fn main() -> ExitCode {
    sealift_store::kernel::keep_little_memory();
    interrupt::survive_limits();
    interrupt::listen();
    // --json applies to usage errors too, when clap has parsed nothing.
    let json = std::env::args_os().any(|argument| argument == "--json");
    let parsed =
        help::command().try_get_matches_from(help::arguments()).and_then(|matches| Cli::from_arg_matches(&matches));
    let cli = match parsed {
        Ok(cli) => cli,
        Err(error) => return refuse_arguments(&help::with_tips(error), json),
    };
    // `order record` leaves the limit alone: the command that it runs would inherit it.
    if !matches!(cli.verb, Verb::Order(_)) {
        file_limit::raise();
    }
    limits::choose(&cli.limits, cli.verb.uses());
    let done = log::start(cli.verbose, json).and_then(|()| run(cli.verb));
    // Flushing the buffer fails if the reader of a pipe has exited.
    match done.and_then(|()| Ok(std::io::stdout().flush()?)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(json),
    }
}

fn run(verb: Verb) -> Result<(), Failure> {
    match verb {
        Verb::Pack(pack) => pack.run(),
        Verb::Order(order) => order.run(),
        Verb::Sign(sign) => sign.run(),
        Verb::Root(root) => root.run(),
        Verb::Split(split) => split.run(),
        Verb::Key(key) => key.run(),
        Verb::Publish(publish) => publish.run(),
        Verb::Verify(verify) => verify.run(),
        Verb::Info(info) => info.run(),
        Verb::Ls(ls) => ls.run(),
        Verb::Cat(cat) => cat.run(),
        Verb::Diff(diff) => diff.run(),
        Verb::Recovery(recovery) => recovery.run(),
        Verb::Repair(repair) => repair.run(),
        Verb::Simulate(simulate) => simulate.run(),
        Verb::Trust(trust) => trust.run(),
        Verb::Portal(portal) => portal.run(),
        Verb::Unpack(unpack) => unpack.run(),
        Verb::Mount(mount) => mount.run(),
        Verb::Audit(audit) => audit.run(),
        Verb::Status(status) => status.run(),
        Verb::Seal(seal) => seal.run(),
        Verb::Measure(measure) => measure.run(),
        Verb::Digest(digest) => digest.run(),
        Verb::Request(request) => request.run(),
        Verb::Clean(clean) => clean.run(),
        Verb::Completions(completions) => completions.run(),
        Verb::Manual(manual) => manual.run(),
    }
}

/// Prints help and version, which clap reports as errors, or the usage error.
fn refuse_arguments(error: &clap::Error, json: bool) -> ExitCode {
    if error.use_stderr() && json {
        let text = error.to_string();
        // The error precedes the first empty line, the hints follow it.
        let lines = text.lines().take_while(|line| !line.is_empty()).map(str::trim).collect::<Vec<_>>();
        let message = lines.join(" ");
        return Failure::usage(message.strip_prefix("error: ").unwrap_or(&message)).report(json);
    }
    // If printing fails, there is nowhere to report it.
    if !error.use_stderr() {
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    // All errors begin with the program's name.
    let _ = write!(anstream::stderr(), "{}", help::text_of(error));
    ExitCode::from(2)
}
