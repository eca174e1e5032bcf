//! Compresses a chunk with a prefix of base objects.

use zstd_safe::{CCtx, CParameter};

use crate::pack::compress::{self, frame_parameters};

/// The lowest level that searches many places for a match.
const THOROUGH: i32 = 10;
/// The highest level that searches in lists. Higher levels keep trees, and entering a prefix into a tree takes ten times as long.
const LISTS: i32 = 12;
/// If lists compress the data to less than one part in this many, a tree would not save enough for its time (spec/rationale.md, "A prefix is what
/// the base has").
const LITTLE: usize = 320;
/// log2 of the largest window for which a tree is made: it takes eight bytes of memory for each of its positions.
const TREE_WINDOW: u32 = 25;
/// log2 of the largest window whose every position fits the tree of the highest levels.
const LEVELS_TREE: u32 = 23;
/// log2 of the largest table of a tree's roots.
const ROOTS: u32 = 24;

/// Compresses `data` into one frame, with `prefix` before it.
pub(super) fn compress(level: i32, data: &[u8], prefix: &[u8]) -> Result<Vec<u8>, String> {
    let frame = compress_once(if prefix.is_empty() { level } else { level.min(LISTS) }, data, prefix)?;
    let is_worth_a_tree = frame.len() > data.len() / LITTLE && window_log(prefix.len() + data.len()) <= TREE_WINDOW;
    if prefix.is_empty() || level <= LISTS || !is_worth_a_tree {
        return Ok(frame);
    }
    let other = compress_once(level, data, prefix)?;
    Ok(if other.len() < frame.len() { other } else { frame })
}

fn compress_once(level: i32, data: &[u8], prefix: &[u8]) -> Result<Vec<u8>, String> {
    // A context keeps references to its prefix for its whole life: this one is used for one frame.
    let mut context = CCtx::create();
    frame_parameters(&mut context, level)?;
    if !prefix.is_empty() {
        prefix_parameters(&mut context, level, prefix.len() + data.len())?;
        context.ref_prefix(prefix).map_err(|code| zstd_safe::get_error_name(code).to_owned())?;
    }
    compress::compress(&mut context, data)
}

/// Returns log2 of the smallest window over `len` bytes.
fn window_log(len: usize) -> u32 {
    len.next_power_of_two().trailing_zeros().clamp(10, 30)
}

/// Sets the parameters for matches in a prefix: a window over all of it, and tables that hold it.
fn prefix_parameters(context: &mut CCtx<'_>, level: i32, len: usize) -> Result<(), String> {
    let window_log = window_log(len);
    let mut parameters = vec![CParameter::WindowLog(window_log)];
    let is_quick = level < THOROUGH;
    if level <= LISTS {
        // A quick search does not need every position: long matches have their own table, and small tables are soon replaced. A thorough one keeps
        // the last 2^26 positions of the largest windows.
        let table_log = window_log.min(if is_quick { 20 } else { 26 });
        parameters.extend([CParameter::HashLog(table_log), CParameter::ChainLog(table_log)]);
    } else if window_log > LEVELS_TREE {
        // Two entries for each position.
        parameters.extend([CParameter::HashLog(window_log.min(ROOTS)), CParameter::ChainLog(window_log + 1)]);
    }
    if window_log > if is_quick { 20 } else { LEVELS_TREE } {
        parameters.push(CParameter::EnableLongDistanceMatching(true));
    }
    for parameter in parameters {
        let set = context.set_parameter(parameter);
        set.map_err(|code| format!("zstd level {level}: {}", zstd_safe::get_error_name(code)))?;
    }
    Ok(())
}
