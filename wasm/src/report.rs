//! Values returned to JavaScript.

use js_sys::{Array, Reflect, Uint8Array, Uint32Array};
use sealift_format::difference::Becomes;
use sealift_format::hex;
use sealift_format::num;
use sealift_format::{Delta, Envelope, Error as FormatError, Head, InodeKind, Opened, Part, Root, RootBase};
use sealift_verify::content::ContentError;
use sealift_verify::escape;
use sealift_verify::trust::{Policy, PublicKey, SignatureState, Standing, unknown_envelopes};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::base::Bases;
use crate::compare;
use crate::error::refusal;
use crate::number::{rounded, seconds_to_js, to_js};
use crate::object::{object, strings};

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = r#"
import type { Comparison, Damage, Edit, Entry, Head, JudgeOptions, Listed, Ref, Summary, Unlisted, Verdict } from "../types.js";

/** The bytes of the file that are needed, of which any leading part is accepted; or `done`. */
export type Step = { need: [offset: number, length: number]; done?: undefined } | { done: true; need?: undefined };

/** The places of the chunks. */
export interface Places {
  /** The offset of the first one. */
  chunksAt: number;
  fileBytes: number;
  /** The stored bytes of each chunk. */
  lengths: Uint32Array;
  /** The most memory that a reader of this bundle takes, in bytes. */
  memory: number;
}

export interface Content {
  object: number;
  size: number;
  /** Offset and length of each part's chunk in the file, or in the base's file; length 0 means that there is no chunk. */
  parts: [offset: number, length: number][];
  /** The number of each part's chunk, if there is one. */
  chunks: (number | undefined)[];
  /** In a delta bundle: the number of the base that has the content. */
  base?: number;
}
"#;

/// Bytes of memory of a reader without tables and buffers: code, stack, and the JavaScript that drives it.
const BASE_LEN: u64 = 8 << 20;
/// Bytes of a table row in memory.
const ROW_LEN: u64 = 96;
/// Bytes of the file passed to a reader at once, unless a chunk is longer.
const RUN_LEN: u64 = 8 << 20;

pub(crate) fn head(head: &Head) -> JsValue {
    let Root { identity, contents, maxima, annotations, bases, images, recipes: _ } = head.root();
    let annotations = annotations.iter().map(|(key, value)| {
        let (key, value): (JsValue, JsValue) = (key.as_str().into(), escape::text(value).into());
        Array::of2(&key, &value)
    });
    let delta = bases.as_ref().map_or(JsValue::UNDEFINED, |bases| object(&[("bases", bases_list(&bases.bases))]));
    let images = images.iter().map(|image| {
        object(&[
            ("ref", image.reference.into()),
            ("version", image.version.into()),
            ("digest", image.digest.to_string().into()),
        ])
    });
    object(&[
        ("name", identity.name.as_str().into()),
        ("version", identity.version.to_string().into()),
        ("created", seconds_to_js(identity.created).into()),
        ("expires", identity.expires.map_or(JsValue::UNDEFINED, |expires| seconds_to_js(expires).into())),
        ("compatible", strings(&identity.compatible)),
        ("indexDigest", hex(&contents.index_digest).into()),
        ("annotations", annotations.collect::<Array>().into()),
        ("delta", delta),
        ("images", images.collect::<Array>().into()),
        ("fileBytes", rounded(head.file_len()).into()),
        ("layoutBytes", rounded(contents.layout_stored).into()),
        ("indexBytes", rounded(contents.index_stored).into()),
        ("chunksBytes", rounded(maxima.chunks_stored).into()),
        ("logicalBytes", rounded(maxima.logical).into()),
        ("diskBytes", rounded(maxima.disk).into()),
        ("entries", rounded(maxima.entries).into()),
        ("objects", rounded(maxima.objects).into()),
        ("chunks", rounded(maxima.chunks).into()),
        ("rootDigest", hex(&head.root_digest()).into()),
        ("signed", Uint8Array::from(head.signed()).into()),
    ])
}

pub(crate) fn places(opened: &Opened, memory: u64) -> Result<JsValue, JsValue> {
    let lengths: Vec<u32> = opened.layout().chunks.iter().map(|chunk| chunk.stored_len).collect();
    Ok(object(&[
        ("chunksAt", to_js("an offset in the file", opened.head().chunks_at())?.into()),
        ("fileBytes", to_js("file_bytes", opened.head().file_len())?.into()),
        ("lengths", Uint32Array::from(&lengths[..]).into()),
        ("memory", rounded(memory).into()),
    ]))
}

/// Returns the maximum memory of one reader, from the root's declarations alone.
pub(crate) fn memory(root: &Root) -> u64 {
    let Root { contents, maxima, bases, recipes, .. } = root;
    let index_len = bases.as_ref().map_or(contents.index_len, |bases| bases.difference_len);
    // Stored and decoded bytes are briefly in memory together.
    let parts = [index_len, contents.index_stored, contents.layout_len, contents.layout_len, contents.layout_stored];
    let leaves = recipes.as_ref().map_or(0, |sums| sums.leaves);
    let rows =
        [maxima.entries, maxima.inodes, maxima.objects, maxima.chunks, leaves].map(|rows| rows.saturating_mul(ROW_LEN));
    let run = RUN_LEN.max(maxima.chunk_stored.into());
    // One run that is read, one that is checked, and a copy of that; a decoded chunk, and the decoder's window of the same size.
    let buffers = [run * 3, u64::from(maxima.chunk_len) * 2, maxima.piece_len()];
    parts.iter().chain(&rows).chain(&buffers).fold(BASE_LEN, |sum, len| sum.saturating_add(*len))
}

pub(crate) fn verdict(head: &Head, policy: &Policy) -> JsValue {
    let verdict = policy.judge_head(head);
    let signers: Array = policy.inspect_head(head).iter().map(signer).collect();
    let trusted = verdict.as_ref().is_ok_and(|verdict| !verdict.unsigned);
    let error = verdict.err().map_or(JsValue::UNDEFINED, |error| {
        object(&[("code", error.kind().word().into()), ("message", error.to_string().into())])
    });
    let needed = policy.thresholds.for_name(&head.root().identity.name);
    let floor = policy.floors.effective(&policy.revoked, needed);
    let unknown: Array = unknown_envelopes(head).into_iter().map(JsValue::from).collect();
    object(&[
        ("trusted", trusted.into()),
        ("needed", count(needed)),
        ("floor", floor.map_or(JsValue::UNDEFINED, |floor| floor.to_string().into())),
        ("signers", signers.into()),
        ("kernelSignature", head.bodies(Envelope::KERNEL_SIGNATURE).next().is_some().into()),
        ("unknownEnvelopes", unknown.into()),
        ("error", error),
    ])
}

fn signer(state: &SignatureState) -> JsValue {
    let key = state.key.as_ref().filter(|_| state.outcome.is_ok());
    let unknown = state.unknown();
    let id = key.map(PublicKey::id).or(unknown.map(|unknown| unknown.key));
    let key_type = key.map(|key| key.key_type().name()).or(unknown.map(|unknown| &unknown.key_type[..]));
    let status = match &state.outcome {
        Ok(standing) => standing.to_string(),
        Err(problem) => problem.to_string(),
    };
    let comment = match &state.outcome {
        Ok(Standing::Trusted { comment, .. }) if !comment.is_empty() => escape::text(comment).into(),
        _ => JsValue::UNDEFINED,
    };
    object(&[
        ("key", id.map_or(JsValue::UNDEFINED, |id| id.to_string().into())),
        ("keyType", key_type.map_or(JsValue::UNDEFINED, JsValue::from)),
        ("publicKey", key.map_or(JsValue::UNDEFINED, |key| key.to_openssh().into())),
        ("comment", comment),
        ("unknown", matches!(state.outcome, Ok(Standing::NotListed)).into()),
        ("unsupported", unknown.is_some().into()),
        ("trusted", state.outcome.as_ref().is_ok_and(Standing::is_trusted).into()),
        ("status", status.into()),
    ])
}

/// Returns the summary of a finished check. `bases` are those of a delta bundle that was completed.
pub(crate) fn summary(opened: &Opened, bases: &Bases) -> JsValue {
    let maxima = &opened.head().root().maxima;
    let is_file = |kind: &InodeKind| matches!(kind, InodeKind::Regular(_));
    let (files, delta, made) = match opened {
        Opened::Whole(bundle) => {
            let files = bundle.index.inodes().iter().filter(|inode| is_file(&inode.kind)).count();
            let delta = match bases.first() {
                Some(base) => with_bases(compare::count(base, &bundle.index), opened.head()),
                None => JsValue::UNDEFINED,
            };
            (count(files), delta, bases.count_made(bundle))
        }
        Opened::Delta(delta) => {
            let recipes = &delta.layout.recipes;
            let made = recipes.made.iter().filter(|made| recipes.leaf(made.object).is_none()).count();
            (JsValue::UNDEFINED, with_bases(changes(delta), &delta.head), made)
        }
    };
    object(&[
        ("entries", rounded(maxima.entries).into()),
        ("files", files),
        ("bytes", rounded(maxima.logical).into()),
        ("made", if made == 0 { JsValue::UNDEFINED } else { count(made) }),
        ("delta", delta),
    ])
}

/// Adds the bases of a delta bundle to the counts of its changes.
fn with_bases(changes: JsValue, head: &Head) -> JsValue {
    let bases = head.root().bases.as_ref().map_or(JsValue::UNDEFINED, |bases| bases_list(&bases.bases));
    // A new object accepts any property.
    let _ = Reflect::set(&changes, &"bases".into(), &bases);
    changes
}

/// Returns the bases of a delta bundle.
fn bases_list(bases: &[RootBase]) -> JsValue {
    let of = |base: &RootBase| {
        let (name, version) =
            base.identity.as_ref().map_or((JsValue::UNDEFINED, JsValue::UNDEFINED), |(name, version)| {
                (name.as_str().into(), version.to_string().into())
            });
        object(&[("name", name), ("version", version), ("indexDigest", hex(&base.index_digest).into())])
    };
    bases.iter().map(of).collect::<Array>().into()
}

/// Counts the changes that a delta bundle lists. As over its bases, a new or removed directory counts once, with everything below it.
fn changes(delta: &Delta) -> JsValue {
    let mut counts = [0; 4];
    for name in delta.difference.edited_names() {
        counts[match name.becomes {
            Becomes::Added => 0,
            Becomes::Changed => 1,
            Becomes::Metadata => 2,
            Becomes::Removed => 3,
        }] += u32::from(!name.is_below_new);
    }
    compare::counts(counts)
}

fn count(number: usize) -> JsValue {
    rounded(num::wide(number)).into()
}

/// Returns an error as thrown to JavaScript.
pub(crate) fn content_error(error: &ContentError) -> JsValue {
    let thrown = refusal(error.kind(), error);
    let (chunk, object) = match error {
        ContentError::Object { object } | ContentError::Piece { object, .. } => (None, Some(object.number())),
        ContentError::Chunk(
            FormatError::Digest { part: Part::Chunk(chunk) }
            | FormatError::Frame { part: Part::Chunk(chunk), .. }
            | FormatError::Malformed { part: Part::Chunk(chunk), .. }
            | FormatError::Row { part: Part::Chunk(chunk), .. },
        ) => (Some(*chunk), None),
        _ => (None, None),
    };
    for (name, number) in [("chunk", chunk), ("object", object)] {
        // A new object accepts any property; one that is `undefined` counts as absent.
        let _ = Reflect::set(&thrown, &name.into(), &number.into());
    }
    thrown
}
