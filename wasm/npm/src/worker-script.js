// The script of the workers in a browser: wherever it lies, whatever the page's policy.

/** @typedef {{ url: string | URL, options: WorkerOptions }} Script */

/** @type {{ createScriptURL(url: string): string } | undefined} */
let policy;

/**
 * Starts a worker.
 * @param {string | URL} [workerUrl] Where its script lies, if not beside this module.
 */
export function browserWorker(workerUrl) {
  const { url, options } = workerUrl === undefined ? bundled() : { url: workerUrl, options: /** @type {WorkerOptions} */ ({ type: "module", name: "sealift" }) };
  const address = absolute(url);
  try {
    return { worker: new globalThis.Worker(trusted(isOwn(address) ? address.href : shim(address, options)), options), address: address.href };
  } catch (error) {
    const { name, message } = /** @type {Error} */ (error);
    // A DOMException has a number as its code, which is no word for what is wrong with a bundle.
    throw new Error(`a worker of ${address} cannot be started: ${name}: ${message}`);
  }
}

/**
 * The script as a bundler names it. It looks for this very form, in which neither another origin nor a policy of Trusted Types has a place:
 * so for this moment a Worker is what keeps its arguments.
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
 * An address from the page's.
 * @param {string | URL} url
 */
export function absolute(url) {
  return new URL(url, globalThis.document?.baseURI ?? globalThis.location?.href ?? import.meta.url);
}

/** Whether a worker may be started from there. In a sandboxed frame nothing is the frame's own. @param {URL} address */
function isOwn({ origin, protocol }) {
  return origin === globalThis.origin || protocol === "blob:" || protocol === "data:";
}

/**
 * A script of this origin that loads the one of another. That takes the other's consent, as the element's own script did.
 * @param {URL} address
 * @param {WorkerOptions} options
 */
function shim(address, { type }) {
  const name = JSON.stringify(address.href);
  const text = type === "module" ? `import ${name};` : `importScripts(${name});`;
  // Chromium takes no blob: as a module where the page has no origin, as in a sandboxed frame; elsewhere a data: would have none.
  if (globalThis.origin === "null") return `data:text/javascript,${encodeURIComponent(text)}`;
  return URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
}

/**
 * The address for a page whose policy asks for Trusted Types. One that allows no policy of this name refuses the worker, and says so.
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
