// The facts about a bundle as one value, the only source of banner, event, report, preview and form. A bundle is never "safe" before all facts are
// known, and errors outside the bundle are never reported as damage.

import { SealiftError } from "../errors.js";
import { VERSION } from "../version.js";
import { concealed } from "./concealed.js";
import { Doubt } from "./doubt.js";
import { wordsOfBase, wordsOfDoubt, wordsOfFault, wordsOfMissingBase, wordsOfOlder, wordsOfOtherAnswer, wordsOfRefusal, wordsOfSafe, wordsOfWork } from "./verdict.js";

/** @typedef {import("../../types.js").Head} Head */
/** @typedef {import("../../types.js").Verdict} Verdict */
/** @typedef {import("../../types.js").Verified} Verified */
/** @typedef {import("../../element.js").Finding} Finding */

/**
 * The facts established so far.
 * @typedef {object} Facts
 * @property {boolean} deep Whether contents are checked, too.
 * @property {boolean} isStopped Whether the user stopped the check.
 * @property {Head} [head]
 * @property {Verdict} [verdict] By the current policy. Missing while the policy is being read or unavailable.
 * @property {string} [floor] The lowest version that is accepted, as used by the verdict.
 * @property {string[]} [tags] The device's tags, as used by the verdict.
 * @property {Verified} [verified]
 * @property {unknown} [fault] The error of opening or checking.
 * @property {unknown} [unjudged] Why there is no policy to judge by.
 * @property {string} [sha256] Of the file, or of the bundle that is in volumes.
 * @property {{ file: Blob, number: number, sha256: string }[]} [volumes] The volumes' files, in order, known with `sha256`.
 * @property {import("../../types.js").Damage} [damage] The files affected by a damaged part.
 * @property {unknown} [baseFault] Why a delta was not checked over its base.
 * @property {string} [judged] When the verdict was given.
 * @property {{ allowedSigners?: string, revoked?: string }} [digests] SHA-256 of the trust files used.
 * @property {boolean} [isBaseRequired] Whether the page demands that a delta be checked over its base.
 * @property {boolean} isAddress Whether the bytes come from an address.
 * @property {boolean} isLocked Whether the site alone sets the policy.
 * @property {boolean} [isBesideNewer] Whether the verdict only says that a newer one in the same choice is safe.
 * @property {BaseRefusal} [baseRefusal]
 */

/** @typedef {{ name: string, verdict: Verdict }} BaseRefusal The base that the user chose for a delta, and that must not be trusted. */

/** Errors that prove the bundle bad. All others (of the page, its environment, the connection) mean that nothing is known. */
const OF_BUNDLE = new Set(["header", "layout", "index", "path", "chunk", "object", "truncated", "trailing", "limit"]);

/** Nothing was selected. */
export const NOTHING = /** @type {Finding} */ (Object.freeze({ state: "empty", ok: false, title: "No bundle is chosen", text: "", tone: "work" }));

/**
 * @param {Facts} facts
 * @returns {Finding}
 */
export function finding(facts) {
  const { head, verified, fault, unjudged, isStopped, baseFault, isBaseRequired, isAddress } = facts;
  const verdict = facts.verdict && concealed(facts.verdict);
  const ofBase = facts.baseRefusal && concealed(facts.baseRefusal.verdict).error;
  if (fault instanceof SealiftError && fault.isForeign && isAddress) return found("unknown", wordsOfOtherAnswer(), fault);
  if (fault instanceof SealiftError && OF_BUNDLE.has(fault.code)) return found("refused", wordsOfFault(fault), fault);
  if (unjudged) return found("unknown", wordsOfDoubt(unjudged, facts), unjudged);
  if (fault) return found("unknown", wordsOfDoubt(fault, facts), fault);
  if (facts.isBesideNewer) return found("older", wordsOfOlder(facts), verdict?.error);
  const refusal = head && verdict && (wordsOfRefusal(head, verdict, facts) ?? wordsOfBase(facts));
  if (refusal && (verified || isStopped)) return found(refusal.tone === "bad" ? "refused" : "unknown", refusal, verdict.error ?? ofBase);
  if (isStopped) return found("unknown", wordsOfDoubt(STOPPED, facts), STOPPED);
  if (!head || !verdict || !verified) return found("checking", refusal ?? wordsOfWork(head, verdict), verdict?.error ?? (refusal && ofBase));
  if (baseFault && isBaseRequired) return found("unknown", wordsOfMissingBase(), baseFault);
  return found("safe", wordsOfSafe(verified, verdict, facts));
}

const STOPPED = new Doubt("stopped", "the check was stopped");

/**
 * @param {Finding["state"]} state
 * @param {import("./verdict.js").Words} words
 * @param {unknown} [error]
 * @returns {Finding}
 */
function found(state, words, error) {
  return Object.freeze({ state, ok: state === "safe", ...words, error: error === undefined ? undefined : described(error) });
}

/**
 * Returns the error for a report. Only our own codes are kinds: the code of a DOMException is a number.
 * @param {unknown} error
 */
function described(error) {
  const { code, message } = /** @type {{ code?: unknown, message?: string }} */ (error);
  return { kind: /** @type {any} */ (typeof code === "string" ? code : "page"), message: String(message ?? error) };
}

/**
 * Returns the result as a report for a file and for a portal.
 * @param {Finding} finding
 * @param {Facts} facts
 * @param {{ name: string, bytes?: number, seconds: number, policy?: import("../../types.js").Policy, forgets: boolean, module?: string, checked: string }} more
 * @returns {import("../../element.js").Report}
 */
export function report(finding, facts, { name, bytes, seconds, policy, forgets, module, checked }) {
  const { signed: _, ...head } = facts.head ?? { signed: undefined };
  const { allowedSigners, revoked, threshold, compatible } = policy ?? {};
  return {
    file: name,
    fileBytes: bytes,
    sha256: facts.sha256,
    volumes: facts.volumes?.map(({ file, number, sha256 }) => ({ file: file instanceof File ? file.name : "", number, fileBytes: file.size, sha256 })),
    checked,
    state: finding.state,
    ok: finding.ok,
    title: finding.title,
    sound: facts.verified !== undefined && facts.fault === undefined,
    trusted: finding.state !== "unknown" && facts.verdict?.trusted === true,
    error: finding.error,
    damage: facts.damage && { ...(/** @type {SealiftError} */ (facts.fault).place), ...facts.damage },
    deep: facts.verified?.deep === true,
    base: overBase(facts),
    seconds,
    head: facts.head && /** @type {any} */ (head),
    verdict: facts.verdict && concealed(facts.verdict),
    summary: facts.verified?.summary,
    policy: policy && { allowedSigners, revoked: revoked instanceof Uint8Array ? `${revoked.length} bytes` : revoked, threshold, compatible, floor: facts.floor, forgets,
      allowedSignersSha256: facts.digests?.allowedSigners, revokedSha256: facts.digests?.revoked, judged: facts.judged ?? "" },
    page: { version: VERSION, module },
  };
}

/** @param {Facts} facts */
function overBase({ verified, baseFault }) {
  if (baseFault !== undefined) return { checked: false, error: /** @type {Error} */ (baseFault).message };
  if (!verified?.bases) return undefined;
  return { checked: true, bases: verified.bases.map(({ name, version, indexDigest }) => ({ name, version, indexDigest })) };
}
