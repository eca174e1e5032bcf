// What is known of a bundle, as one value. Banner, event, report, preview and form are made of it and of nothing else: what is not known yet,
// or not any more, is never "safe", and what is not the bundle's own fault is never called damage.

import { SealiftError } from "../errors.js";
import { VERSION } from "../version.js";
import { Doubt } from "./doubt.js";
import { wordsOfDoubt, wordsOfFault, wordsOfRefusal, wordsOfSafe, wordsOfWork } from "./verdict.js";

/** @typedef {import("../../types.js").Head} Head */
/** @typedef {import("../../types.js").Verdict} Verdict */
/** @typedef {import("../../types.js").Verified} Verified */
/** @typedef {import("../../element.js").Finding} Finding */

/**
 * What was found out so far.
 * @typedef {object} Facts
 * @property {boolean} deep Whether contents are checked, too.
 * @property {boolean} isStopped The person ended the check.
 * @property {Head} [head]
 * @property {Verdict} [verdict] By the policy as it is now. There is none while that is read, or when it cannot be.
 * @property {string} [floor] The version that the verdict took for the highest.
 * @property {string[]} [tags] The device's tags that the verdict took.
 * @property {Verified} [verified]
 * @property {unknown} [fault] What opening or checking failed with.
 * @property {unknown} [unjudged] Why there is no policy to judge by.
 * @property {string} [sha256] Of the file.
 * @property {import("../../types.js").Damage} [damage] The files that a damaged part of it hits.
 * @property {unknown} [baseFault] Why a delta was not checked over its base.
 * @property {string} [judged] When the verdict was given.
 * @property {{ allowedSigners?: string, revoked?: string }} [digests] SHA-256 of what it was given by.
 * @property {boolean} [isOther] The file does not begin as bundles do.
 */

/** These say that the bundle is bad. All others - of the page, its surroundings, the connection - say that nothing is known. */
const OF_BUNDLE = new Set(["header", "layout", "index", "path", "chunk", "object", "truncated", "trailing", "limit"]);

/** Nothing was chosen. */
export const NOTHING = /** @type {Finding} */ (Object.freeze({ state: "empty", ok: false, title: "No bundle is chosen", text: "", tone: "work" }));

/**
 * @param {Facts} facts
 * @returns {Finding}
 */
export function finding(facts) {
  const { head, verdict, verified, fault, unjudged, isStopped } = facts;
  if (fault instanceof SealiftError && OF_BUNDLE.has(fault.code)) return found("refused", wordsOfFault(fault.code, facts), fault);
  if (unjudged) return found("unknown", wordsOfDoubt(unjudged), unjudged);
  if (fault) return found("unknown", wordsOfDoubt(fault), fault);
  const refusal = head && verdict && wordsOfRefusal(head, verdict, facts);
  if (refusal && (verified || isStopped)) return found(refusal.tone === "bad" ? "refused" : "unknown", refusal, verdict.error);
  if (isStopped) return found("unknown", wordsOfDoubt(STOPPED), STOPPED);
  if (!head || !verdict || !verified) return found("checking", refusal ?? wordsOfWork(head, verdict), verdict?.error);
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
 * The error as a report has it. Only our own words are kinds: a DOMException has a number there.
 * @param {unknown} error
 */
function described(error) {
  const { code, message } = /** @type {{ code?: unknown, message?: string }} */ (error);
  return { kind: /** @type {any} */ (typeof code === "string" ? code : "page"), message: String(message ?? error) };
}

/**
 * What was found, for a file and for a portal.
 * @param {Finding} finding
 * @param {Facts} facts
 * @param {{ name: string, bytes?: number, seconds: number, policy?: import("../../types.js").Policy, forgets: boolean, module?: string, checked: string }} more
 * @returns {import("../../element.js").Report}
 */
export function report(finding, facts, { name, bytes, seconds, policy, forgets, module, checked }) {
  const { signed: _, ...head } = facts.head ?? { signed: undefined };
  const { allowedSigners, revoked, threshold, compatible, floor } = policy ?? {};
  return {
    file: name,
    fileBytes: bytes,
    sha256: facts.sha256,
    checked,
    state: finding.state,
    ok: finding.ok,
    title: finding.title,
    sound: facts.verified !== undefined && facts.fault === undefined,
    trusted: finding.state !== "unknown" && facts.verdict?.trusted === true,
    error: finding.error,
    damage: facts.damage && { ...(/** @type {SealiftError} */ (facts.fault).place), ...facts.damage },
    deep: facts.deep,
    base: overBase(facts),
    seconds,
    head: facts.head && /** @type {any} */ (head),
    verdict: facts.verdict,
    summary: facts.verified?.summary,
    policy: policy && { allowedSigners, revoked: revoked instanceof Uint8Array ? `${revoked.length} bytes` : revoked, threshold, compatible, floor, forgets,
      allowedSignersSha256: facts.digests?.allowedSigners, revokedSha256: facts.digests?.revoked, judged: facts.judged ?? "" },
    page: { version: VERSION, module },
  };
}

/** @param {Facts} facts */
function overBase({ verified, baseFault }) {
  if (baseFault !== undefined) return { checked: false, error: /** @type {Error} */ (baseFault).message };
  if (!verified?.base) return undefined;
  const { name, version, indexDigest } = verified.base;
  return { checked: true, name, version, indexDigest };
}
