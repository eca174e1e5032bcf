// What the browser remembers for an administrator: whom to trust, what the devices are, and which versions were seen.

const NAMES = /** @type {const} */ (["allowedSigners", "revoked", "threshold", "compatible"]);
const PREFIX = "sealift.";

/** @typedef {{ allowedSigners?: string, revoked?: string, threshold?: string, compatible?: string }} Settings */

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

/** The highest version of a name that was sound and trusted here. @param {string} name */
export function highest(name) {
  const version = versions()[name];
  return typeof version === "string" && /^\d+$/.test(version) ? version : undefined;
}

/**
 * @param {string} name
 * @param {string} version
 */
export function sawVersion(name, version) {
  if (BigInt(version) > BigInt(highest(name) ?? 0)) keep("versions", JSON.stringify({ ...versions(), [name]: version }));
}

/** @param {string} name */
export function forgetVersion(name) {
  const { [name]: _, ...others } = versions();
  keep("versions", JSON.stringify(others));
}

/** @returns {Record<string, unknown>} */
function versions() {
  try {
    return Object.assign(Object.create(null), JSON.parse(recall("versions") ?? "{}"));
  } catch {
    return Object.create(null);
  }
}

/** @param {string} name */
function recall(name) {
  try {
    return localStorage.getItem(PREFIX + name) ?? undefined;
  } catch {
    return undefined; // a browser that is told to remember nothing
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
  } catch {
    // As above: then it lasts as long as the page.
  }
}
