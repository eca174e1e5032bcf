//! What JavaScript is told.

use js_sys::{Array, Uint8Array};
use sealift_format::difference::Becomes;
use sealift_format::{Delta, Head, InodeKind, Opened};
use sealift_verify::trust::{Policy, SignatureState, Standing, unknown_envelopes};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::error::refusal;
use crate::number::{seconds_to_js, to_js};
use crate::object::{object, strings};

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = r#"
export type Kind =
  | "header" | "layout" | "index" | "path" | "chunk" | "object" | "truncated" | "trailing" | "unsupported" | "limit"
  | "signature" | "untrusted" | "revoked" | "expired" | "downgrade" | "incompatible";

/** Bytes of the file, from an offset, of which any first part will do; or nothing more. */
export type Step = { need: [offset: number, length: number]; done?: undefined } | { done: true; need?: undefined };

/** What the root states. Until it is judged, anybody may have written it. */
export interface Head {
  name: string;
  /** A u64, as its decimal digits. */
  version: string;
  /** Seconds since 1970, as is `expires`. */
  created: number;
  expires?: number;
  /** The tags of the devices that it fits; none means all. */
  compatible: string[];
  /** The bytes that signatures are over. */
  signed: Uint8Array;
}

export interface JudgeOptions {
  /** Seconds since 1970; default: the clock. */
  now?: number;
  /** Distinct trusted keys needed, or rules `N` and `PATTERN=N`. */
  threshold?: number | string[];
  /** The tags that the device answers to. */
  compatible?: string[];
  /** A revocation list as `ssh-keygen -r` takes it. */
  revoked?: string | Uint8Array;
  /** The lowest version that is taken. */
  floor?: string;
  /** Waives the need for a trusted signature and nothing else. */
  allowUnsigned?: boolean;
  allowDowngrade?: boolean;
}

export interface Verdict {
  /** The bundle may be used, and enough trusted keys signed it. */
  trusted: boolean;
  /** Each signature; `key` is left out where it is not a good one of that key. */
  signers: { key?: string; trusted: boolean; status: string }[];
  /** Kinds of envelopes that this version does not know; they count for nothing. */
  unknownEnvelopes: number[];
  /** Why the bundle must not be used. Neither this nor `trusted`: it is unsigned, and that was allowed. */
  error?: { code: Kind; message: string };
}

export interface Summary {
  entries: number;
  /** Regular files, a hard link counted once. Of a delta bundle this takes its base. */
  files?: number;
  /** Their bytes, unpacked. */
  bytes: number;
  /** Of a delta bundle, whose objects are checked where its bases are: what it does to them. */
  delta?: {
    /** Digests of the indexes that a target is to hold, in hexadecimal digits. */
    bases: string[];
    /** Names that come, that get another content or type, of which only metadata change, and that go, each with all below it. */
    added: number;
    changed: number;
    metadata: number;
    removed: number;
  };
}
"#;

pub(crate) fn head(head: &Head) -> JsValue {
    let identity = &head.root().identity;
    object([
        ("name", identity.name.as_str().into()),
        ("version", identity.version.to_string().into()),
        ("created", seconds_to_js(identity.created).into()),
        ("expires", identity.expires.map_or(JsValue::UNDEFINED, |expires| seconds_to_js(expires).into())),
        ("compatible", strings(&identity.compatible)),
        ("signed", Uint8Array::from(head.signed()).into()),
    ])
}

pub(crate) fn verdict(head: &Head, policy: &Policy) -> JsValue {
    let verdict = policy.judge_head(head);
    let signers: Array = policy.inspect_head(head).iter().map(signer).collect();
    let trusted = verdict.as_ref().is_ok_and(|verdict| !verdict.unsigned);
    let error = verdict.err().map_or(JsValue::UNDEFINED, |error| {
        object([("code", error.kind().word().into()), ("message", error.to_string().into())])
    });
    let unknown: Array = unknown_envelopes(head).into_iter().map(JsValue::from).collect();
    object([
        ("trusted", trusted.into()),
        ("signers", signers.into()),
        ("unknownEnvelopes", unknown.into()),
        ("error", error),
    ])
}

fn signer(state: &SignatureState) -> JsValue {
    let key = state.key.as_ref().filter(|_| state.outcome.is_ok());
    let status = match &state.outcome {
        Ok(standing) => standing.to_string(),
        Err(problem) => problem.to_string(),
    };
    object([
        ("key", key.map_or(JsValue::UNDEFINED, |key| key.id().to_string().into())),
        ("trusted", state.outcome.as_ref().is_ok_and(Standing::is_trusted).into()),
        ("status", status.into()),
    ])
}

/// What was checked, once all of it was.
pub(crate) fn summary(opened: &Opened) -> Result<JsValue, JsValue> {
    let maxima = &opened.head().root().maxima;
    let count = |what, number: usize| to_js(what, u64::try_from(number).unwrap_or(u64::MAX)).map(JsValue::from);
    let is_file = |kind: &InodeKind| matches!(kind, InodeKind::Regular(_));
    let (files, delta) = match opened {
        Opened::Whole(bundle) => {
            let files = bundle.index.inodes().iter().filter(|inode| is_file(&inode.kind)).count();
            (count("files", files)?, JsValue::UNDEFINED)
        }
        Opened::Delta(delta) => (JsValue::UNDEFINED, changes(delta, count)?),
    };
    Ok(object([
        ("entries", to_js("entries", maxima.entries)?.into()),
        ("files", files),
        ("bytes", to_js("logical", maxima.logical)?.into()),
        ("delta", delta),
    ]))
}

/// What a delta bundle does to the trees of its first base.
fn changes(delta: &Delta, count: impl Fn(&'static str, usize) -> Result<JsValue, JsValue>) -> Result<JsValue, JsValue> {
    let hex = |digest: &[u8; 32]| digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let bases: Vec<String> = delta.bases().iter().map(|base| hex(&base.index_digest)).collect();
    let names = delta.difference.edited_names();
    let of = |becomes| names.iter().filter(|name| name.becomes == becomes).count();
    Ok(object([
        ("bases", strings(&bases)),
        ("added", count("added", of(Becomes::Added))?),
        ("changed", count("changed", of(Becomes::Changed))?),
        ("metadata", count("metadata", of(Becomes::Metadata))?),
        ("removed", count("removed", of(Becomes::Removed))?),
    ]))
}

/// An error as JavaScript catches it.
pub(crate) fn content_error(error: &sealift_verify::content::ContentError) -> JsValue {
    refusal(error.kind(), error)
}
