//! `--next-volume`: the volumes of a bundle on several media in turn.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::fd::AsFd as _;
use std::path::Path;
use std::process::{Command, Stdio};

use clap::{Args, ValueHint};
use sealift::{Error, Input, Media, WantedVolume};
use serde::Serialize;

use super::show::Show;
use super::{escape, file_limit, interrupt, progress_display};

/// How the next medium comes.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct NextVolumeArgs {
    /// Read a bundle's volumes one after the other from one place, such as where a drive is mounted, and have COMMAND put the next medium there
    ///
    /// For each volume that is not there, /bin/sh -c runs COMMAND; what is there is then looked for again. In its environment are SEALIFT_VOLUME (the
    /// number), SEALIFT_LABEL (such as "os version 7, volume 2 of 5") and SEALIFT_PLACE (as it was given here), and after the first volume
    /// SEALIFT_VOLUMES, SEALIFT_NAME and SEALIFT_VERSION. Each medium is read once, in order. Without COMMAND, asks on the terminal or, where there is
    /// none, waits for a line on standard input. With --json, a line on standard error says what is wanted before.
    #[arg(
        long,
        value_name = "COMMAND",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "",
        value_hint = ValueHint::CommandString
    )]
    next_volume: Option<OsString>,
}

impl NextVolumeArgs {
    pub(crate) fn is_given(&self) -> bool {
        self.next_volume.is_some()
    }

    /// Opens the volumes that come to `place`; `None` without the option.
    pub(crate) fn open(&self, place: &Path, show: Show) -> Option<Input> {
        let command = self.next_volume.clone()?;
        let own = place.to_owned();
        let change = move |wanted: &WantedVolume, fault: Option<&Error>| {
            progress_display::aside(|| next(&command, &own, wanted, fault, show))
        };
        Some(Input::pipe(&place.display().to_string(), Box::new(Media::new(place, Box::new(change)))))
    }
}

fn next(command: &OsStr, place: &Path, wanted: &WantedVolume, fault: Option<&Error>, show: Show) -> Result<(), Error> {
    if interrupt::pending() {
        return Err(Error::Cancelled);
    }
    if show.json {
        let (name, version) = wanted.identity.as_ref().map(|(name, version)| (&name[..], *version)).unzip();
        let (label, fault) = (wanted.label(), fault.map(ToString::to_string));
        let next_volume = NextVolume { number: wanted.number, count: wanted.count, name, version, label, fault };
        anstream::eprintln!("{}", serde_json::to_string(&Line { next_volume }).unwrap_or_default());
    }
    match (command.is_empty(), fault) {
        (true, _) => ask(place, wanted, fault, show),
        (false, Some(fault)) => Err(Error::Usage(format!("{fault}, although the command of --next-volume succeeded"))),
        (false, None) => run(command, place, wanted),
    }
}

fn run(line: &OsStr, place: &Path, wanted: &WantedVolume) -> Result<(), Error> {
    let failed = |source| Error::Io { doing: "run", path: "the command of --next-volume".into(), source };
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(line).stdin(Stdio::null());
    // Standard output is for what the verb prints.
    command.stdout(io::stderr().as_fd().try_clone_to_owned().map_err(failed)?);
    command.env("SEALIFT_VOLUME", wanted.number.to_string());
    command.env("SEALIFT_LABEL", wanted.label());
    command.env("SEALIFT_PLACE", place);
    if let (Some((name, version)), Some(count)) = (&wanted.identity, wanted.count) {
        command.env("SEALIFT_VOLUMES", count.to_string());
        command.env("SEALIFT_NAME", name);
        command.env("SEALIFT_VERSION", version.to_string());
    }
    file_limit::lower();
    let ended = interrupt::run(&mut command);
    file_limit::raise();
    match ended.map_err(failed)? {
        status if status.success() => Ok(()),
        status => Err(Error::Usage(format!("{}: the command of --next-volume ended with {status}", wanted.label()))),
    }
}

fn ask(place: &Path, wanted: &WantedVolume, fault: Option<&Error>, show: Show) -> Result<(), Error> {
    let (label, place) = (escape::text(&wanted.label()), escape::text(&place.display().to_string()));
    let fault = fault.map(|fault| format!("{}\n", escape::text(&fault.to_string()))).unwrap_or_default();
    let question = format!("{fault}Put {label} at {place}, then press Enter: ");
    let mut answer = String::new();
    let asked = match File::options().read(true).write(true).open("/dev/tty") {
        Ok(terminal) => {
            (&terminal).write_all(question.as_bytes()).and_then(|()| BufReader::new(&terminal).read_line(&mut answer))
        }
        Err(_) => {
            if !show.json {
                anstream::eprintln!("{question}");
            }
            io::stdin().lock().read_line(&mut answer)
        }
    };
    match asked {
        Ok(len) if len > 0 => Ok(()),
        _ => Err(Error::Usage(format!("{label} is wanted, and there is nobody to ask: use --next-volume=COMMAND"))),
    }
}

#[derive(Serialize)]
struct Line<'a> {
    next_volume: NextVolume<'a>,
}

#[derive(Serialize)]
struct NextVolume<'a> {
    number: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<u64>,
    label: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<String>,
}
