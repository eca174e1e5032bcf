//! The output of `sealift pack --dry-run`.

use std::io::{self, Write as _};

use sealift::Identity;
use sealift::pack::{DeltaEstimate, Estimate};
use serde::Serialize;

use super::human::{self, Bytes, Grouped, count};
use super::show::{BOLD, Show};

/// Prints the estimate for the bundle named `bundle`.
pub(crate) fn print(show: Show, bundle: &str, identity: &Identity, estimate: &Estimate) -> io::Result<()> {
    let mut out = show.summary(false);
    if show.is_told(&mut out, &JsonEstimate::new(identity, estimate))? {
        return Ok(());
    }
    let (name, version) = (&identity.name, identity.version);
    writeln!(out, "{BOLD}{bundle}{BOLD:#}: would be {name} version {version}")?;
    let of = match &estimate.delta {
        Some(delta) => {
            writeln!(
                out,
                "  {} of {}: {}",
                count(delta.objects, "new object"),
                Grouped(estimate.files),
                Bytes(delta.bytes)
            )?;
            delta.bytes
        }
        None => {
            writeln!(out, "  {}, {}", count(estimate.files, "file"), Bytes(estimate.bytes))?;
            estimate.bytes
        }
    };
    writeln!(
        out,
        "  about {} in {}, in about {}",
        human::stored(estimate.file_bytes, of),
        count(estimate.chunks, "chunk"),
        human::duration(estimate.time),
    )?;
    writeln!(out, "  estimated from a sample of {}", Bytes(estimate.sampled_bytes))
}

#[derive(Serialize)]
struct JsonEstimate<'a> {
    dry_run: bool,
    unchanged: bool,
    name: &'a str,
    version: u64,
    files: u64,
    logical_bytes: u64,
    chunks: u64,
    file_bytes: u64,
    sampled_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    delta: Option<DeltaEstimate>,
    seconds: f64,
}

impl<'a> JsonEstimate<'a> {
    fn new(identity: &'a Identity, estimate: &Estimate) -> Self {
        Self {
            dry_run: true,
            unchanged: false,
            name: &identity.name,
            version: identity.version,
            files: estimate.files,
            logical_bytes: estimate.bytes,
            chunks: estimate.chunks,
            file_bytes: estimate.file_bytes,
            sampled_bytes: estimate.sampled_bytes,
            delta: estimate.delta,
            seconds: human::seconds(estimate.time),
        }
    }
}
