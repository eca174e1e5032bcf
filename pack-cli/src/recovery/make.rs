//! Makes recovery files.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use reed_solomon_simd::rate::RateEncoder as _;
use sealift_format::num::{at, fit, size, wide};
use sealift_format::{Error as FormatError, Geometry, Head, Recovery};
use sealift_store::fs::partial::PartialFile;
use sealift_store::threads::parallel::for_each_with;

use super::code::{self, Encoder};
use crate::base::Bases;
use crate::verify::{Depth, verify_opened};
use crate::{Error, Input, Limits, Origin, Phase, Progress};

/// How to make recovery files.
#[derive(Clone, Debug)]
#[allow(clippy::exhaustive_structs, reason = "a caller chooses all of it")]
pub struct MakeOptions {
    /// How many bytes of recovery there are for each 100 of the bundle, 1 to 100.
    pub percent: u32,
    /// Whether existing files are replaced.
    pub replaces: bool,
    /// How many threads work on it; fewer do if codewords take much memory.
    pub jobs: usize,
    /// The limits of what the bundle may declare.
    pub limits: Limits,
}

/// The result of making recovery files.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MakeStats {
    /// The bundle's head.
    pub head: Head,
    /// Bytes of a shard, the smallest part that is made again.
    pub shard_len: u32,
    /// The length of all recovery files together in bytes.
    pub file_bytes: u64,
    /// Bytes of the checksums in them, which tell damaged shards from sound ones.
    pub checksum_bytes: u64,
    /// The most bytes in a row that can be lost anywhere in the bundle.
    pub burst_bytes: u64,
}

/// Bytes of a shard: a sector of a disc.
const SHARD_LEN: u32 = 2048;
/// The most columns of a bundle that is one file. Damage of one column is spread over all codewords.
const COLUMNS: u64 = 64;
/// Points of the code that are used: with more, codewords would take more memory.
const POINTS: u64 = 1 << 15;

/// Checks a bundle, and makes as many recovery files for it as there are paths, each with an equal share. They appear when all are complete.
///
/// # Errors
/// Returns an error if the bundle is damaged or a pipe, or if a file exists already or cannot be written.
pub fn make(
    mut input: Input,
    outputs: &[PathBuf],
    options: &MakeOptions,
    progress: &Progress,
) -> Result<MakeStats, Error> {
    if !(1..=100).contains(&options.percent) || outputs.is_empty() {
        return Err(Error::Usage("recovery is 1 to 100 % of a bundle, in at least one file".into()));
    }
    let path = input.path().to_owned();
    let opened = input.open_any(options.limits.clone())?;
    let Some(origin) = input.origin().cloned() else {
        return Err(Error::unexpected(&path, "is a pipe, but has to be read at any offset"));
    };
    let head = opened.head().clone();
    let mut files = Vec::new();
    for output in outputs {
        files.push(PartialFile::create(output, options.replaces)?);
    }
    // Recovery of a damaged bundle would make the damage again.
    verify_opened(input, opened, Bases::default(), Depth::Stored, options.jobs, progress)?;
    let count: u16 = fit(outputs.len(), "the number of recovery files")?;
    let geometry = geometry_of(&head, options.percent, count);
    let recoveries = Recovery::all(&head, count, &geometry);
    write_all(&origin, &path, &recoveries, &files, options.jobs, progress)?;
    let codewords = geometry.codewords(head.file_len());
    let shards = wide(code::data_shards(&geometry)) * u64::from(count.min(2));
    let stats = MakeStats {
        file_bytes: recoveries.iter().map(Recovery::own_len).sum(),
        checksum_bytes: 4 * (shards + u64::from(geometry.parity) + u64::from(count)) * codewords,
        burst_bytes: burst_of(&geometry, head.file_len()),
        shard_len: geometry.shard_len,
        head,
    };
    // Nothing of a set has its name before all of it is there.
    files.iter().try_for_each(PartialFile::sync)?;
    files.into_iter().try_for_each(PartialFile::finish)?;
    Ok(stats)
}

/// Writes all recovery files of a bundle, which is read from `origin` at `path`.
///
/// # Errors
/// Returns an error if the bundle cannot be read, if a file cannot be written, or if codewords take too much memory.
pub(crate) fn write_all(
    origin: &Origin,
    path: &Path,
    recoveries: &[Recovery],
    files: &[PartialFile],
    jobs: usize,
    progress: &Progress,
) -> Result<(), Error> {
    let Some(Recovery { geometry, file_len, .. }) = recoveries.first() else { return Ok(()) };
    let mut front = vec![0; size(geometry.starts.first().copied().unwrap_or(0))];
    let failed = |error| Error::io("read", path, error);
    origin.read_exact_at(&mut front, 0).map_err(failed)?;
    for (recovery, file) in recoveries.iter().zip(files) {
        let (header, geometry) = recovery.encode()?;
        write(file, &[&header[..], &front, &geometry].concat(), 0)?;
    }
    let shares = code::shares(geometry.codewords(*file_len));
    progress.enter(Phase::Encoding, *file_len, 0);
    let start =
        || Maker { encoder: None, run: vec![0; at(geometry.run) * at(geometry.shard_len)], checksums: Vec::new() };
    for_each_with(code::jobs(geometry, jobs)?, &shares, start, |maker, share| {
        for codeword in share.clone() {
            progress.check()?;
            let read = maker.read(codeword, geometry, origin, *file_len).map_err(failed)?;
            maker.encode(codeword, geometry, recoveries, files)?;
            progress.add(read, 0);
        }
        Ok(())
    })
}

/// Cuts the body of a bundle in one file into columns of equal length.
fn geometry_of(head: &Head, percent: u32, count: u16) -> Geometry {
    let start = head.head_len().saturating_add(head.root().contents.layout_stored);
    let shard_len = u64::from(SHARD_LEN);
    let pad = start % shard_len;
    let shards = (head.file_len().saturating_sub(start).saturating_add(pad)).div_ceil(shard_len).max(1);
    let len = shards.div_ceil(COLUMNS.min(shards)).max(1);
    let columns = shards.div_ceil(len);
    // The fewest points for recovery, so that most are left for data.
    let percent = u64::from(percent);
    let parity_of = |data: u64| (data * percent).div_ceil(100).max(count.into());
    let points = (0..15).map(|log2| 1_u64 << log2).find(|points| parity_of(POINTS - points) <= *points);
    let most = (POINTS - points.unwrap_or(POINTS / 2)) / columns;
    // With a shard more, since each column begins with the padding.
    let longest = len + u64::from(pad > 0);
    let codewords = longest.div_ceil(most.max(1));
    let run = longest.div_ceil(codewords);
    let start_of = |column: u64| start.saturating_add(column * len * shard_len);
    Geometry {
        shard_len: SHARD_LEN,
        run: u32::try_from(run).unwrap_or(u32::MAX),
        parity: u32::try_from(parity_of(columns * run)).unwrap_or(u32::MAX),
        pad: u32::try_from(pad).unwrap_or(0),
        starts: (0..columns).map(start_of).filter(|start| *start < head.file_len()).collect(),
    }
}

/// Returns how many bytes in a row can be lost: as many whole columns as there is recovery for, but for one that the loss may begin or end in.
fn burst_of(geometry: &Geometry, file_len: u64) -> u64 {
    let columns = u64::from(geometry.parity / geometry.run.max(1));
    let column = geometry.column(0, file_len);
    match columns {
        0 => u64::from(geometry.parity.saturating_sub(1)) * u64::from(geometry.shard_len),
        _ => columns.saturating_sub(1) * (column.end - column.start),
    }
}

/// What a thread needs to make codewords.
struct Maker {
    encoder: Option<Encoder>,
    run: Vec<u8>,
    /// Those of the data shards of the current codeword.
    checksums: Vec<u32>,
}

impl Maker {
    /// Reads the data shards of a codeword into the encoder. Returns how many bytes of the bundle they are.
    fn read(&mut self, codeword: u64, geometry: &Geometry, origin: &Origin, file_len: u64) -> std::io::Result<u64> {
        if self.encoder.is_none() {
            self.encoder = Some(code::encoder(geometry).map_err(std::io::Error::other)?);
        }
        let Some(encoder) = &mut self.encoder else { return Ok(0) };
        self.checksums.clear();
        let mut read = 0;
        for column in 0..geometry.starts.len() {
            let (range, zeros) = geometry.run_of(codeword, column, file_len);
            let len = range.end - range.start;
            self.run.fill(0);
            if let Some(part) = self.run.get_mut(size(zeros)..size(zeros + len)) {
                origin.read_exact_at(part, range.start)?;
            }
            for shard in self.run.chunks_exact(at(geometry.shard_len)) {
                self.checksums.push(code::checksum(shard));
                encoder.add_original_shard(shard).map_err(std::io::Error::other)?;
            }
            read += len;
        }
        Ok(read)
    }

    /// Writes the records of the codeword that was read.
    fn encode(
        &mut self,
        codeword: u64,
        geometry: &Geometry,
        recoveries: &[Recovery],
        files: &[PartialFile],
    ) -> Result<(), Error> {
        let Some(encoder) = &mut self.encoder else { return Ok(()) };
        let made = encoder.encode().map_err(code::failed)?;
        let run = at(geometry.run);
        for (recovery, file) in recoveries.iter().zip(files) {
            let too_large = || FormatError::TooLarge { what: "a recovery file", len: u64::MAX, max: u64::MAX };
            let start = recovery.record_at(codeword).ok_or_else(too_large)?;
            let mut record = Vec::with_capacity(size(recovery.record_len()));
            let mut checksums = Vec::new();
            for shard in recovery.shards().filter_map(|number| made.recovery(at(number))) {
                record.extend(shard);
                checksums.extend(code::checksum(shard).to_le_bytes());
            }
            for column in recovery.columns() {
                let own = self.checksums.get(column * run..(column + 1) * run).unwrap_or_default();
                checksums.extend(own.iter().flat_map(|checksum| checksum.to_le_bytes()));
            }
            checksums.extend(code::checksum(&checksums).to_le_bytes());
            record.extend(checksums);
            record.resize(size(recovery.record_len()), 0);
            write(file, &record, start)?;
        }
        Ok(())
    }
}

/// Writes to a file that is being made.
fn write(file: &PartialFile, bytes: &[u8], offset: u64) -> Result<(), Error> {
    let written: std::io::Result<()> = File::write_all_at(file.file(), bytes, offset);
    written.map_err(|error| Error::io("write", file.path(), error))
}
