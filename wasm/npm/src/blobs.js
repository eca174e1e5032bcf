// Blobs as sources, and the buffers for their bytes.

import { SealiftError } from "./errors.js";
import { isNode } from "./node.js";

/** @typedef {import("./sources.js").Source} Source */

/** Bytes of a Blob requested from Node at once. */
const PIECE_BYTES = 1 << 20;

/** The smallest size in bytes of buffers that are reused; a read that needs less than half of it gets a buffer of its own. */
const BUFFER_BYTES = 8 << 20;

/** The most buffers that are kept for later reads. */
const SPARE_BUFFERS = 3;

/**
 * @param {Blob} blob
 * @returns {Source}
 */
export function ofBlob(blob) {
  return {
    size: blob.size,
    inOrder: false,
    handle: { blob },
    copy: async () => ({ blob: new Blob([await blob.arrayBuffer()]) }),
    read: (offset, length) => orChanged(isNode ? inPieces(blob, offset, length) : swept(blob.slice(offset, offset + length))),
  };
}

/**
 * A Blob in a worker, which returns the bytes with `giveBack` after use.
 * @param {Blob} blob
 * @returns {Source}
 */
export function ofBlobOfWorker(blob) {
  return { ...ofBlob(blob), read: (offset, length) => orChanged(intoSpare(blob.slice(offset, offset + length))) };
}

/**
 * @template T
 * @param {Promise<T>} read
 * @returns {Promise<T>}
 */
async function orChanged(read) {
  try {
    return await read;
  } catch (error) {
    throw new SealiftError("changed", "the file cannot be read any more: it was changed or removed since it was chosen", error);
  }
}

/**
 * Node reads a Blob in sequential pieces; requesting several at once takes half the time.
 * @param {Blob} blob
 * @param {number} offset
 * @param {number} length
 */
async function inPieces(blob, offset, length) {
  const bytes = new Uint8Array(Math.min(length, Math.max(0, blob.size - offset)));
  const pieces = Array.from({ length: Math.ceil(bytes.length / PIECE_BYTES) }, async (_, piece) => {
    const at = piece * PIECE_BYTES;
    bytes.set(new Uint8Array(await blob.slice(offset + at, offset + Math.min(at + PIECE_BYTES, bytes.length)).arrayBuffer()), at);
  });
  await Promise.all(pieces);
  return bytes;
}

/** @param {Blob} blob */
async function swept(blob) {
  const bytes = new Uint8Array(await blob.arrayBuffer());
  litter(bytes.length);
  return bytes;
}

/** Readers that wait for bytes: Chromium collects those that only the wait refers to, and the bytes never come. */
const reading = new Set();

/** Buffers that were given back. @type {ArrayBuffer[]} */
const spare = [];

/**
 * Reads a Blob into a buffer that was given back: the browser has to clear a new one, which takes as long as the read.
 * @param {Blob} blob
 */
async function intoSpare(blob) {
  if (blob.size < BUFFER_BYTES / 2) return swept(blob);
  const stream = blob.stream();
  /** @type {ReadableStreamBYOBReader} */
  let reader;
  try {
    reader = stream.getReader({ mode: "byob" });
  } catch {
    // This browser cannot read a Blob into a given buffer.
    return swept(blob);
  }
  reading.add(reader);
  let buffer = bufferFor(blob.size);
  let filled = 0;
  try {
    while (filled < blob.size) {
      /** @type {ReadableStreamReadResult<Uint8Array<ArrayBuffer>>} */
      const { done, value } = await reader.read(new Uint8Array(buffer, filled, blob.size - filled));
      // The buffer was transferred to the stream, and returned as another.
      if (value) buffer = value.buffer;
      if (done) break;
      filled += value.length;
    }
  } finally {
    reading.delete(reader);
  }
  reader.cancel().catch(() => {});
  return new Uint8Array(buffer, 0, filled);
}

/**
 * Returns a buffer with room for so many bytes: one that was given back, if there is one and the bytes fill enough of it.
 * @param {number} length
 */
export function bufferFor(length) {
  if (isNode || length < BUFFER_BYTES / 2) return new ArrayBuffer(length);
  const known = spare.pop();
  return known && known.byteLength >= length ? known : new ArrayBuffer(Math.max(length, BUFFER_BYTES));
}

/**
 * Takes back bytes that a worker's source returned and that are no longer needed. Returns whether their buffer is kept for a later read.
 * @param {Uint8Array} bytes
 */
export function giveBack({ buffer }) {
  if (isNode || spare.length === SPARE_BUFFERS || buffer.byteLength < BUFFER_BYTES) return false;
  spare.push(/** @type {ArrayBuffer} */ (buffer));
  return true;
}

/** Removes and returns the buffers that were given back. */
export function takeSpare() {
  return spare.splice(0);
}

/** @type {number[]} */
let small = [];

/**
 * The engine only tracks small objects: without some to collect, it lets hundreds of megabytes of buffers accumulate.
 * @param {number} length Bytes of received buffers.
 */
export function litter(length) {
  for (let done = 0; done < length; done += 1 << 15) small = new Array(1024).fill(done);
  return small;
}
