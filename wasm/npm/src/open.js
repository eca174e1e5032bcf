// Opens bundles.

import { Bundle } from "./bundle.js";
import { refuse, SealiftError } from "./errors.js";
import { Line } from "./line.js";
import { Opening, startFirst } from "./opening.js";
import { judgement, known } from "./options.js";
import { openSource } from "./sources.js";
import { Thread } from "./threads.js";
import { until } from "./until.js";

/**
 * Opens a bundle: head, layout and index, each of which is checked before it is used. `verdict` says whether trusted keys signed it.
 * @param {import("../types.js").BundleSource} source
 * @param {import("../types.js").OpenOptions} [options]
 */
export async function openBundle(source, options = {}) {
  return open(source, options, () => {});
}

/**
 * Checks a bundle's signatures and every byte, as `sealift verify` does.
 * @param {import("../types.js").BundleSource} source
 * @param {import("../types.js").OpenOptions & import("../types.js").VerifyOptions} [options]
 */
export async function verify(source, options = {}) {
  const bundle = await open(source, options, refuse);
  try {
    return await bundle.verify(options);
  } finally {
    bundle.close();
  }
}

/**
 * @param {import("../types.js").BundleSource} given
 * @param {import("../types.js").OpenOptions} options
 * @param {(verdict: import("../types.js").Verdict) => void} judged
 */
async function open(given, options, judged) {
  const { signal, onHead, onWait, wasmUrl, workerUrl, insideUrl, memory, ...policy } = known(options);
  const places = { wasmUrl, workerUrl, insideUrl };
  const line = new Line(onWait);
  signal?.throwIfAborted();
  const source = await until(signal, openSource(given, signal, line));
  /** @type {Thread | undefined} */
  let thread;
  /** @type {Opening | undefined} */
  let opening;
  try {
    const { worker, handle } = await startFirst(source, places, memory, line);
    thread = worker;
    opening = new Opening(source, thread, handle, places, line, signal);
    const head = await opening.readHead();
    const verdict = await thread.call("judge", judgement(policy));
    onHead?.(head, verdict);
    judged(verdict);
    source.set?.checkHead(head);
    const layout = await opening.readRest();
    source.set?.checkCuts(layout);
    return new Bundle(opening, head, verdict, layout, policy, memory);
  } catch (error) {
    thread?.close();
    source.close?.();
    signal?.throwIfAborted();
    if (!(error instanceof SealiftError)) throw error;
    if (error.code === "header") error.isForeign = opening?.isForeign ?? false;
    throw source.set?.blameFront(error) ?? error;
  }
}

/**
 * Loads the reader's code and starts a worker with it, to find out whether both can be.
 * @param {import("./opening.js").Places} [places]
 */
export async function ready(places) {
  const thread = await Thread.start(places);
  thread.close();
}

/**
 * Returns the SHA-256 of a file that is not an open bundle.
 * @param {Blob} blob
 * @param {import("./opening.js").Places} places
 * @param {AbortSignal} signal
 * @returns {Promise<string>}
 */
export async function digestOf(blob, places, signal) {
  const { handle, size } = await openSource(blob);
  const thread = await Thread.start(places, { handle, size });
  try {
    return await until(signal, thread.call("sha256", [undefined]));
  } finally {
    thread.close();
  }
}

/**
 * Returns the SHA-256 of each volume's file, and of the bundle that they are together, from the same bytes.
 * @param {import("../types.js").Volume[]} volumes All of them, in order.
 * @param {import("./opening.js").Places} places
 * @param {AbortSignal} signal
 * @returns {Promise<{ sha256: string, files: string[] }>}
 */
export async function digestsOf(volumes, places, signal) {
  const thread = await Thread.start(places);
  try {
    return await until(signal, thread.call("sha256OfVolumes", [volumes]));
  } finally {
    thread.close();
  }
}
