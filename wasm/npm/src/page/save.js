// Saves a file while it is read and checked, part by part, so that large files take no more memory than small ones.

import { fill, h } from "./dom.js";
import { Pace } from "./pace.js";
import { bytes } from "./words.js";

/** @typedef {import("../../types.js").Bundle} Bundle */
/** @typedef {import("../../types.js").Entry} Entry */

/** Files up to this size are assembled in memory, which needs no permission. */
const MEMORY_BYTES = 32 << 20;

/** The same limit if the browser has no place for larger files. */
const LAST_BYTES = 256 << 20;

/** The folder for files that the browser has not copied to their destination yet. */
const FOLDER = "sealift-saving";

/** Milliseconds after which the browser has copied a file, or will not. */
const COPIED = 3_600_000;

/**
 * Returns a button that saves a file, and its status messages.
 * @param {Bundle} bundle
 * @param {Entry} entry
 * @param {() => boolean} isSafe
 */
export function saving(bundle, entry, isSafe) {
  const status = h("span", { class: "quiet", role: "status" });
  const bar = h("progress", { "aria-label": "Bytes saved", max: Math.max(1, entry.size ?? 0), hidden: true });
  /** @type {AbortController | undefined} */
  let running;
  const press = async () => {
    if (running) return running.abort();
    running = new AbortController();
    const { signal } = running;
    button.textContent = "Stop saving";
    try {
      const place = await chosen(bundle, entry);
      // A stalled medium delays the end of writing, but must not delay the user.
      const stopped = new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
      await Promise.race([place(counter(entry, bar, status, isSafe), signal), stopped]);
      fill(status, "Saved.");
    } catch (error) {
      const { name, message } = /** @type {Error} */ (error);
      fill(status, name === "AbortError" ? "Not saved." : `This browser did not save it: ${message}`);
    }
    running = undefined;
    bar.hidden = true;
    button.textContent = "Save this file";
  };
  const button = h("button", { type: "button", onclick: press }, "Save this file");
  return h("p", {}, button, " ", bar, " ", status);
}

/**
 * Returns a function that is called for each part read, and throws if saving must stop.
 * @param {Entry} entry
 * @param {HTMLProgressElement} bar
 * @param {HTMLElement} status
 * @param {() => boolean} isSafe
 */
function counter({ size = 0 }, bar, status, isSafe) {
  const [start, pace] = [performance.now(), new Pace()];
  let [done, said] = [0, 0];
  return (/** @type {number} */ bytes) => {
    if (!isSafe()) throw new Error("the bundle is not safe to install any more");
    done += bytes;
    const now = performance.now();
    if (now - said < 200) return;
    said = now;
    bar.hidden = size <= MEMORY_BYTES;
    bar.value = done;
    fill(status, pace.take(done, size, (now - start) / 1000));
  };
}

/**
 * Selects the destination for a file of this size. Dialogs are opened now, while the user's click is valid.
 * @param {Bundle} bundle
 * @param {Entry} entry
 * @returns {Promise<(onPart: (bytes: number) => void, signal: AbortSignal) => Promise<void>>}
 */
async function chosen(bundle, entry) {
  const { name, size = 0 } = entry;
  const inMemory = async (/** @type {(bytes: number) => void} */ onPart, /** @type {AbortSignal} */ signal) => {
    const transform = (/** @type {Uint8Array} */ part, /** @type {TransformStreamDefaultController<Uint8Array>} */ controller) => {
      onPart(part.length);
      controller.enqueue(part);
    };
    offer(await new Response((await bundle.open(entry)).pipeThrough(new TransformStream({ transform }), { signal })).blob(), name);
  };
  if (size <= MEMORY_BYTES) return inMemory;
  const { showSaveFilePicker } = /** @type {any} */ (globalThis);
  if (showSaveFilePicker && !isFramed()) {
    const handle = await showSaveFilePicker({ suggestedName: name });
    return (onPart, signal) => bundle.write(entry, handle, { signal, onPart });
  }
  const folder = await privateFolder();
  if (!folder && size > LAST_BYTES) {
    throw new Error(`this browser lets this page save files of at most ${bytes(LAST_BYTES)}; use a page loaded over https, or sealift cat`);
  }
  if (!folder) return inMemory;
  return async (onPart, signal) => {
    const handle = await folder.getFileHandle(`${Date.now()}-${Math.random()}`, { create: true });
    try {
      await bundle.write(entry, handle, { isOwn: true, signal, onPart });
    } catch (error) {
      await folder.removeEntry(handle.name).catch(() => {});
      throw error;
    }
    offer(await handle.getFile(), name, COPIED);
  };
}

/** Whether this page is a cross-origin frame, which may not open file dialogs. */
function isFramed() {
  try {
    return window.top?.origin !== window.origin;
  } catch {
    return true;
  }
}

/** Returns the page's private folder (https only), after deleting leftovers. */
async function privateFolder() {
  try {
    const root = await navigator.storage.getDirectory();
    const folder = await root.getDirectoryHandle(FOLDER, { create: true });
    for await (const name of folder.keys()) {
      if (Date.now() - parseInt(name, 10) > COPIED) await folder.removeEntry(name);
    }
    return folder;
  } catch {
    return undefined;
  }
}

/**
 * Lets the browser save a Blob. Its type is one that no browser opens by itself.
 * @param {Blob} blob
 * @param {string} name
 * @param {number} [milliseconds] The time the browser has for it.
 */
export function offer(blob, name, milliseconds = 60_000) {
  const url = URL.createObjectURL(blob.slice(0, blob.size, "application/octet-stream"));
  h("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), milliseconds);
}
