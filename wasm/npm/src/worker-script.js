// The script of browser workers, wherever it is hosted and whatever the page's policy.

/** What mends a worker that does not start. */
export const WHERE = "the option workerUrl or the attribute worker-url sets its address";

/** @typedef {{ url: string | URL, options: WorkerOptions }} Script */

/** @type {{ createScriptURL(url: string): string } | undefined} */
let policy;

/**
 * Starts a worker.
 * @param {string | URL} [workerUrl] The script's URL, if it is not beside this module.
 */
export function browserWorker(workerUrl) {
  const { url, options } = workerUrl === undefined ? bundled() : { url: workerUrl, options: /** @type {WorkerOptions} */ ({ type: "module", name: "sealift" }) };
  const address = absolute(url);
  try {
    return { worker: new globalThis.Worker(trusted(isOwn(address) ? address.href : shim(address, options)), options), address: address.href };
  } catch (error) {
    const { name, message } = /** @type {Error} */ (error);
    // The code of a DOMException is a number, not a kind of failure.
    throw new Error(`a worker of ${address} cannot be started: ${name}: ${message}; ${WHERE}`);
  }
}

/**
 * Returns the script as a bundler names it. Bundlers look for exactly this form, which allows neither another origin nor Trusted Types.
 * For this call, Worker is therefore a class that records its arguments.
 * @returns {Script}
 */
function bundled() {
  const { Worker: real } = globalThis;
  class Kept {
    /**
     * @param {URL} url
     * @param {WorkerOptions} options
     */
    constructor(url, options) {
      this.url = url;
      this.options = options;
    }
  }
  globalThis.Worker = /** @type {any} */ (Kept);
  try {
    return /** @type {any} */ (new Worker(new URL("./worker.js", import.meta.url), { type: "module", name: "sealift" }));
  } finally {
    globalThis.Worker = real;
  }
}

/**
 * Resolves a URL against the page's.
 * @param {string | URL} url
 */
export function absolute(url) {
  return new URL(url, globalThis.document?.baseURI ?? globalThis.location?.href ?? import.meta.url);
}

/** Whether a worker may be started from this URL. In a sandboxed frame nothing is same-origin. @param {URL} address */
function isOwn({ origin, protocol }) {
  return origin === globalThis.origin || protocol === "blob:" || protocol === "data:";
}

/**
 * Returns a script of this origin that loads one of another origin. The other origin must consent, as for the element's own script.
 * @param {URL} address
 * @param {WorkerOptions} options
 */
function shim(address, { type }) {
  const name = JSON.stringify(address.href);
  const text = type === "module" ? `import ${name};` : `importScripts(${name});`;
  // Chromium rejects blob: modules in pages without an origin (sandboxed frames); elsewhere a data: URL would have no origin.
  if (globalThis.origin === "null") return `data:text/javascript,${encodeURIComponent(text)}`;
  return URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
}

/**
 * Returns the URL for a page that requires Trusted Types. A page that does not allow this policy name rejects the worker and reports it.
 * @param {string} url
 * @returns {any}
 */
function trusted(url) {
  const { trustedTypes } = /** @type {any} */ (globalThis);
  if (!trustedTypes) return url;
  try {
    policy ??= trustedTypes.createPolicy("sealift", { createScriptURL: (/** @type {string} */ given) => given });
  } catch {
    return url;
  }
  return policy?.createScriptURL(url);
}
