//! `sealift info` of a channel: its versions and files, and until when its list is accepted.

use std::cmp::Reverse;
use std::io::{self, Write};

use sealift::Error;
use sealift::channel::{Channel, ChannelList, ListedFile};
use sealift::trust::Verdict;
use sealift_format::{Kind, hex};
use serde::Serialize;

use super::advice::advice;
use super::escape;
use super::failure::{About as _, Failure, shown};
use super::human::{Bytes, Grouped};
use super::show::{self, BAD, BOLD, GOOD, Show, fact, json_line};
use super::signers::Signers;
use super::time::Moment;
use super::trust_args::Judge;

/// Shows a channel, and marks one whose list this device would refuse.
pub(crate) fn show(channel: &Channel, judge: &Judge, show: Show) -> Result<(), Failure> {
    let verdict = match channel.judge(judge.guard()) {
        Err(error) if error.kind().is_none() => return Err(error.into()), // the device's state, not the list
        other => other,
    };
    let mut out = show.out();
    match show.json {
        true => json_line(&mut out, &JsonChannel::of(channel.list().list(), &verdict))?,
        false => print(&mut out, channel, &verdict)?,
    }
    match verdict {
        Err(error) if error.kind() == Some(Kind::Signature) => Err(error).about(&Channel::list_in(channel.place())),
        _ => Ok(()),
    }
}

fn print(out: &mut dyn Write, channel: &Channel, verdict: &Result<Verdict, Error>) -> io::Result<()> {
    let list = channel.list().list();
    let headline = match verdict {
        Ok(verdict) if verdict.unsigned => format!("{BAD}UNSIGNED{BAD:#}"),
        Ok(_) => format!("{GOOD}TRUSTED{GOOD:#}"),
        Err(error) => {
            let word = match error.kind() {
                Some(Kind::Signature) => "BAD SIGNATURE",
                Some(Kind::Revoked) => "REVOKED",
                Some(Kind::Expired) => "EXPIRED",
                Some(Kind::Downgrade) => "OLDER THAN ONE TAKEN BEFORE",
                _ => "UNTRUSTED",
            };
            format!("{BAD}{word}{BAD:#}")
        }
    };
    writeln!(out, "{BOLD}{}{BOLD:#}: channel, {headline}", escape::text(&shown(channel.place())))?;
    fact(out, "Name", &list.name)?;
    let versions = list.files.iter().map(|row| row.version);
    fact(out, "Newest", format!("version {}", versions.max().unwrap_or_default()))?;
    fact(out, "List", format!("number {}, of {}", list.sequence, Moment(list.created).with_distance()))?;
    fact(out, "Expires", Moment(list.expires).with_distance())?;
    writeln!(out, "\n{BOLD}Signatures of the list{BOLD:#}")?;
    match verdict {
        Ok(verdict) => {
            for signer in &verdict.signers {
                writeln!(out, "{}", format!("  {} {}", signer.key, escape::text(&signer.comment)).trim_end())?;
            }
        }
        Err(error) => {
            let advice = advice(error).unwrap_or_default();
            show::clauses(out, 2, &escape::text(&format!("Refused: {error}{advice}")))?;
        }
    }
    writeln!(out, "\n{BOLD}Files{BOLD:#}")?;
    let mut rows: Vec<&ListedFile> = list.files.iter().collect();
    rows.sort_by_key(|row| (Reverse(row.version), !row.bases.is_empty(), &row.file));
    let mut before = None;
    for row in rows {
        let version = if before == Some(row.version) { String::new() } else { format!("version {}", row.version) };
        before = Some(row.version);
        let bases: Vec<String> = row.bases.iter().map(|base| named(list, base)).collect();
        let over = if bases.is_empty() { String::new() } else { format!(", from {}", bases.join(" and ")) };
        fact(out, &version, format!("{}, {}{over}", row.file, Bytes(row.len)))?;
    }
    let bytes = list.files.iter().map(|row| row.len).fold(0, u64::saturating_add);
    fact(out, "Together", format!("{} in {}", Bytes(bytes), Grouped(sealift_format::num::wide(list.files.len()))))
}

/// Returns a base as the list names it, or by its digest.
fn named(list: &ChannelList, base: &[u8; 32]) -> String {
    match list.files.iter().find(|row| row.index_digest == *base) {
        Some(row) => format!("version {}", row.version),
        None => format!("content {}", &hex(base)[..12]),
    }
}

#[derive(Serialize)]
struct JsonChannel<'a> {
    trust: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    refusal: Option<String>,
    #[serde(flatten)]
    signers: Signers,
    channel: JsonList<'a>,
}

#[derive(Serialize)]
struct JsonList<'a> {
    name: &'a str,
    version: u64,
    sequence: u64,
    created: i64,
    expires: i64,
    files: Vec<JsonListed<'a>>,
}

#[derive(Serialize)]
struct JsonListed<'a> {
    file: &'a str,
    version: u64,
    created: i64,
    bytes: u64,
    root_digest: String,
    index_digest: String,
    bases: Vec<String>,
}

impl<'a> JsonChannel<'a> {
    fn of(list: &'a ChannelList, verdict: &Result<Verdict, Error>) -> Self {
        let file = |row: &'a ListedFile| JsonListed {
            file: &row.file,
            version: row.version,
            created: row.created,
            bytes: row.len,
            root_digest: hex(&row.root_digest),
            index_digest: hex(&row.index_digest),
            bases: row.bases.iter().map(|base| hex(base)).collect(),
        };
        Self {
            trust: match verdict {
                Ok(_) => "trusted",
                Err(error) => error.kind().map_or("untrusted", Kind::word),
            },
            refusal: verdict.as_ref().err().map(ToString::to_string),
            signers: Signers::of(verdict.as_ref().ok()),
            channel: JsonList {
                name: &list.name,
                version: list.files.iter().map(|row| row.version).max().unwrap_or_default(),
                sequence: list.sequence,
                created: list.created,
                expires: list.expires,
                files: list.files.iter().map(file).collect(),
            },
        }
    }
}
