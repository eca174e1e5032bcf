// The policy for bundles: settings fixed by the portal's attributes, and otherwise those entered by the administrator.

import { Doubt } from "./doubt.js";
import { seen } from "./memory.js";

/** The maximum size of a key file in bytes. */
export const MAX_BYTES = 4 << 20;

/** The start of a revocation list made by `ssh-keygen -k`, in base64. */
const KRL = "U1NIS1JM";

/** Milliseconds within which a server must have sent a file of the rules. */
const PATIENCE = 15_000;

/** The attributes that name files of the rules. */
const ADDRESSES = /** @type {const} */ (["trust-src", "revoked-src", "floor-src"]);

/**
 * Settings fixed by attributes.
 * @typedef {object} Fixed
 * @property {string} [allowedSigners]
 * @property {string} [revoked]
 * @property {string} [threshold]
 * @property {string} [compatible]
 * @property {Record<string, string>} [floors]
 */

/** @typedef {Record<"allowedSigners" | "revoked" | "threshold" | "compatible", string>} Entered */

/** Attributes that affect the policy. */
export const POLICY_ATTRIBUTES = ["trust-src", "revoked-src", "threshold", "compatible", "floor-src", "settings"];

/**
 * Reads the files that the attributes name.
 * @param {Element} element
 * @param {AbortSignal} signal
 * @returns {Promise<Fixed>}
 */
export async function readFixed(element, signal) {
  const load = async (/** @type {string} */ name) => {
    const address = element.getAttribute(name);
    return address === null ? undefined : loaded(name, address, signal);
  };
  const [signers, revoked, floors] = await Promise.all(ADDRESSES.map(load));
  return {
    allowedSigners: signers && textOf(signers),
    revoked: revoked && (isKrl(revoked) ? base64(revoked) : textOf(revoked)),
    threshold: element.getAttribute("threshold") ?? undefined,
    compatible: element.getAttribute("compatible") ?? undefined,
    floors: floors && floorsOf(textOf(floors)),
  };
}

/**
 * @param {string} name
 * @param {string} address
 * @param {AbortSignal} signal
 */
async function loaded(name, address, signal) {
  const limit = AbortSignal.timeout(PATIENCE);
  try {
    // Neither a stale list of revoked keys nor one that a cache in between keeps may be used.
    const response = await fetch(new URL(address, document.baseURI), { signal: AbortSignal.any([signal, limit]), cache: "no-store" });
    // 204 and its like have no body: that nothing is revoked must be said by a file.
    if (response.status !== 200) throw new Error(`the server answers ${response.status}`);
    const bytes = new Uint8Array(await response.arrayBuffer());
    if (bytes.length > MAX_BYTES) throw new Error(`it is larger than ${MAX_BYTES} bytes`);
    return bytes;
  } catch (error) {
    signal.throwIfAborted();
    const why = limit.aborted ? `the server has not sent it within ${PATIENCE / 1000} s` : /** @type {Error} */ (error).message;
    throw new Doubt("policy", `${name}="${address}": ${why}`, error);
  }
}

/** Whether attributes name files of the rules, which may change. @param {Element} element */
export function hasAddresses(element) {
  return ADDRESSES.some((name) => element.hasAttribute(name));
}

/** @param {Uint8Array} bytes */
export function isKrl(bytes) {
  return new TextDecoder("latin1").decode(bytes.subarray(0, 6)) === "SSHKRL";
}

/** @param {Uint8Array} bytes */
export function base64(bytes) {
  let letters = "";
  for (const byte of bytes) letters += String.fromCharCode(byte);
  return btoa(letters);
}

/** @param {Uint8Array} bytes */
function textOf(bytes) {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (error) {
    throw new Doubt("policy", "a file of the policy is not UTF-8 text", error);
  }
}

/** @param {string | Uint8Array} text */
export function utf8(text) {
  return typeof text === "string" ? new TextEncoder().encode(text) : text;
}

/** @param {string} text */
function floorsOf(text) {
  const malformed = (/** @type {unknown} */ cause) => new Doubt("policy", 'floor-src is not JSON of names and versions, as in {"os": "7"}', cause);
  let all;
  try {
    all = JSON.parse(text);
  } catch (error) {
    throw malformed(error);
  }
  const isFloor = (/** @type {unknown} */ version) => (typeof version === "string" ? /^\d{1,20}$/.test(version) : Number.isSafeInteger(version) && Number(version) >= 0);
  if (typeof all !== "object" || all === null || Array.isArray(all) || !Object.values(all).every(isFloor)) throw malformed(undefined);
  return Object.fromEntries(Object.entries(all).map(([name, version]) => [name, String(version)]));
}

/**
 * Returns the policy for bundles of a name. It contains every option, so that none keeps its old value.
 * @param {Fixed} fixed
 * @param {Entered} entered
 * @param {string | undefined} name
 * @returns {import("../../types.js").Policy}
 */
export function policyFor(fixed, entered, name) {
  const words = (/** @type {string} */ text) => text.split(/[\s,]+/).filter((word) => word !== "");
  const of = (/** @type {keyof Entered} */ what) => fixed[what] ?? entered[what];
  const [threshold, revoked] = [words(of("threshold")), of("revoked")];
  return {
    allowedSigners: of("allowedSigners"),
    revoked: revoked.trim() === "" ? undefined : bytesOf(revoked) ?? revoked,
    threshold: threshold.length > 0 ? threshold : undefined,
    compatible: words(of("compatible")),
    floor: name === undefined ? undefined : floorsFor(fixed.floors ?? {}, name),
    now: undefined,
    allowUnsigned: undefined,
    allowDowngrade: undefined,
  };
}

/** @param {string} revoked */
function bytesOf(revoked) {
  if (!revoked.trimStart().startsWith(KRL)) return undefined;
  try {
    return Uint8Array.from(atob(revoked.replace(/\s/g, "")), (letter) => letter.charCodeAt(0));
  } catch {
    return undefined; // treated as text, and rejected as such
  }
}

/**
 * Returns what this browser has seen of a name, and the floor that the site sets, which no key raised.
 * @param {Record<string, string>} fixed
 * @param {string} name
 */
function floorsFor(fixed, name) {
  return [...seen(name), ...(Object.hasOwn(fixed, name) ? [{ version: fixed[name], keys: [] }] : [])];
}
