// Settings stored in the browser for an administrator: trusted keys, device tags, and the versions seen. If storage is disabled or full, they
// last as long as the page is open.

import { Doubt } from "./doubt.js";

export const NAMES = /** @type {const} */ (["allowedSigners", "revoked", "threshold", "compatible"]);
const PREFIX = "sealift.";

/** Emits "seen" when a safe bundle has a higher version than any before of its name. Other pages of the site receive the event "storage". */
export const memory = new EventTarget();

/** @typedef {{ allowedSigners?: string, revoked?: string, threshold?: string, compatible?: string }} Settings */

/** Values that could not be stored; null if one could not be removed. @type {Map<string, string | null>} */
const here = new Map();

/** @returns {Settings} */
export function settings() {
  return Object.fromEntries(NAMES.map((name) => [name, recall(name)]).filter(([, value]) => value));
}

/**
 * @param {keyof Settings} name
 * @param {string} value
 */
export function remember(name, value) {
  keep(name, value.trim() === "" ? null : value);
}

/** @type {boolean | undefined} */
let isRefused;

/** Whether stored settings are lost when the page is closed. */
export function forgets() {
  isRefused ??= !probe();
  return isRefused || here.size > 0;
}

function probe() {
  try {
    localStorage.setItem("sealift-probe", "");
    localStorage.removeItem("sealift-probe");
    return true;
  } catch {
    return false;
  }
}

/** Whether a key changed by another page is one of these. @param {string | null} key */
export function isOurs(key) {
  return key === null || key.startsWith(PREFIX);
}

/**
 * What bundles signed by one set of keys raised. A record whose keys are revoked no longer counts: a stolen key must not block every later bundle.
 * @typedef {{ version: string, keys: string[] }} Seen
 */

/**
 * Returns what was safe here of a name.
 * @param {string} name
 * @returns {Seen[]}
 * @throws {Doubt} The stored record is unreadable.
 */
export function seen(name) {
  const all = versions()[name] ?? [];
  // Before keys were stored, a record was the version alone.
  const records = typeof all === "string" ? [{ version: all, keys: [] }] : all;
  if (!Array.isArray(records) || !records.every(isSeen)) throw unreadable();
  return records;
}

/** @param {any} record */
function isSeen(record) {
  return typeof record?.version === "string" && /^\d{1,20}$/.test(record.version) && Array.isArray(record.keys) && record.keys.every((/** @type {unknown} */ key) => typeof key === "string");
}

/**
 * Returns the highest version of a name that was safe here.
 * @param {string} name
 * @throws {Doubt} The stored record is unreadable.
 */
export function highest(name) {
  return seen(name).map(({ version }) => version).reduce((/** @type {string | undefined} */ one, other) => (one !== undefined && BigInt(one) >= BigInt(other) ? one : other), undefined);
}

/**
 * @param {string} name
 * @param {string} version
 * @param {string[]} keys Of those that signed it and are trusted, sorted.
 */
export function sawVersion(name, version, keys) {
  const records = seen(name);
  const isOf = (/** @type {Seen} */ record) => record.keys.length === keys.length && record.keys.every((key, at) => key === keys[at]);
  const before = records.find(isOf);
  if (before && BigInt(version) <= BigInt(before.version)) return;
  keep("versions", JSON.stringify({ ...versions(), [name]: [...records.filter((record) => !isOf(record)), { version, keys }] }));
  memory.dispatchEvent(new Event("seen"));
}

/** @param {string} name */
export function forgetVersion(name) {
  const { [name]: _, ...others } = versions();
  keep("versions", JSON.stringify(others));
}

export function forgetVersions() {
  keep("versions", null);
}

/** @returns {Record<string, unknown>} */
function versions() {
  const text = recall("versions") ?? "{}";
  try {
    const all = JSON.parse(text);
    if (typeof all === "object" && all !== null && !Array.isArray(all)) return Object.assign(Object.create(null), all);
  } catch {
    // Handled like any other invalid record.
  }
  throw unreadable();
}

const unreadable = () => new Doubt("memory", "this browser's record of versions is malformed");

/** @param {string} name */
function recall(name) {
  if (here.has(name)) return here.get(name) ?? undefined;
  try {
    return localStorage.getItem(PREFIX + name) ?? undefined;
  } catch {
    return undefined; // storage is disabled
  }
}

/**
 * @param {string} name
 * @param {string | null} value
 */
function keep(name, value) {
  try {
    if (value === null) localStorage.removeItem(PREFIX + name);
    else localStorage.setItem(PREFIX + name, value);
    here.delete(name);
  } catch {
    here.set(name, value);
  }
}
