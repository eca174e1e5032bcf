// Saving a file: as it is read and checked, part by part, so that a large one takes no more memory than a small one.

import { fill, h } from "./dom.js";
import { Pace } from "./pace.js";
import { bytes } from "./words.js";

/** @typedef {import("../../types.js").Bundle} Bundle */
/** @typedef {import("../../types.js").Entry} Entry */

/** Up to this a file is put together in memory, which asks for nothing. */
const MEMORY_BYTES = 32 << 20;

/** The same where the browser has no place for a larger one. */
const LAST_BYTES = 256 << 20;

/** Where files lie until the browser has copied them to where it saves. */
const FOLDER = "sealift-saving";

/** Milliseconds after which that has happened, or will not. */
const COPIED = 3_600_000;

/**
 * A button that saves a file, and what there is to say of it.
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
      // A medium that takes nothing holds up the end of the writing, and is not to hold up the person.
      const stopped = new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
      await Promise.race([place(counter(entry, bar, status, isSafe), signal), stopped]);
      fill(status, "Saved.");
    } catch (error) {
      const { name, message } = /** @type {Error} */ (error);
      fill(status, name === "AbortError" ? "Not saved." : `It was not saved: ${message}`);
    }
    running = undefined;
    bar.hidden = true;
    button.textContent = "Save this file";
  };
  const button = h("button", { type: "button", onclick: press }, "Save this file");
  return h("p", {}, button, " ", bar, " ", status);
}

/**
 * What is told of each part that was read, and throws where no more is to be saved.
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
 * Where a file of this size goes. What asks the person does so now, while the click counts.
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
    throw new Error(`this browser has no place for more than ${bytes(LAST_BYTES)} of a page like this; on a page by https, or with sealift cat, it can be saved`);
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

/** Whether this page is a frame of another origin's, which may open no dialog for files. */
function isFramed() {
  try {
    return window.top?.origin !== window.origin;
  } catch {
    return true;
  }
}

/** The page's own folder, which a page by https has, without what was left there. */
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
 * Lets the browser save something. The type is one that no browser opens by itself.
 * @param {Blob} blob
 * @param {string} name
 * @param {number} [milliseconds] In which it has it.
 */
export function offer(blob, name, milliseconds = 60_000) {
  const url = URL.createObjectURL(blob.slice(0, blob.size, "application/octet-stream"));
  h("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), milliseconds);
}
