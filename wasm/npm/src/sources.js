// The sources of a bundle's bytes. All except streams are random-access.

import { ofBlob, ofBlobOfWorker } from "./blobs.js";
import { SealiftError } from "./errors.js";
import { fileOf, isNode, openPath, pathOf, readFile } from "./node.js";
import { ofRanges, ofUrl } from "./ranges.js";
import { ofIterable, ofStream, own } from "./streams.js";
import { ofVolumes } from "./volumes.js";

/**
 * @typedef {object} Source
 * @property {number} [size] Bytes of the file; unknown for a stream.
 * @property {boolean} inOrder Whether bytes can only be read in order.
 * @property {(offset: number, length: number, signal?: AbortSignal, came?: (bytes: number) => void) => Promise<Uint8Array>} read
 *   Returns bytes in a buffer of their own, fewer than `length` only at the end of the file. A slow source reports the bytes received so far.
 * @property {() => void} [close]
 * @property {object} [keep] An object kept alive, since the engine would close it otherwise.
 * @property {Handle} [handle] Lets a worker open the same source.
 * @property {() => Promise<Handle>} [copy] Copies the bytes to memory, for a worker that cannot open the source.
 * @property {import("./volumes.js").VolumeSet} [set] The volumes, if the bundle was split.
 */

/** @typedef {{ blob: Blob } | { file: import("./node.js").OpenFile } | { url: string, size: number, validator: string | null }} Handle */

/**
 * @param {import("../types.js").BundleSource} source
 * @param {AbortSignal} [signal]
 * @param {import("./line.js").Teller} [line] Told of the requests to a URL.
 * @returns {Promise<Source>}
 */
export async function openSource(source, signal, line) {
  if (source instanceof Blob) return ofBlob(source);
  if (Array.isArray(source)) {
    const others = source.filter((file) => !(file instanceof Blob));
    if (others.length === 0) return ofVolumes(source);
    throw new TypeError(`the volumes of a bundle are Blobs, such as files, and in Node what openAsBlob of node:fs makes of a file; this is ${kindOf(others[0])}`);
  }
  if (source instanceof ReadableStream) return ofStream(source.getReader());
  if (source instanceof Uint8Array) return ofBytes(source);
  if (typeof source === "string" || source instanceof URL) return ofName(source, signal, line);
  /** @type {any} */
  const object = source ?? {};
  if (typeof object.fd === "number" && typeof object.stat === "function") return ofOpenFile(object);
  if (typeof object.read === "function" && Number.isSafeInteger(object.size) && object.size >= 0) return ofReader(object);
  if (typeof object[Symbol.asyncIterator] === "function") return ofIterable(object);
  throw new TypeError(`a source is a Blob, a list of volumes, a URL, a Uint8Array, a stream, in Node a path or a FileHandle, or has a size and a function read(offset, length); this is ${kindOf(source)}`);
}

/**
 * Describes a given value in words.
 * @param {unknown} given
 */
export function kindOf(given) {
  if (given === null || typeof given !== "object") return given === undefined || given === null ? String(given) : `a ${typeof given}`;
  if (given instanceof Promise) return "a promise: await it";
  if (given instanceof Response) return "a Response: give its body";
  return `an object of ${given.constructor?.name ?? "no class"}`;
}

/**
 * @param {Handle} handle
 * @param {import("./line.js").Teller} [line]
 * @returns {Source}
 */
export function fromHandle(handle, line) {
  if ("blob" in handle) return isNode ? ofBlob(handle.blob) : ofBlobOfWorker(handle.blob);
  return "file" in handle ? ofFile(handle.file) : ofRanges(handle, line);
}

/**
 * @param {string | URL} given
 * @param {AbortSignal} [signal]
 * @param {import("./line.js").Teller} [line]
 */
async function ofName(given, signal, line) {
  if (given === "") throw new TypeError("a source's name is empty");
  const path = pathOf(given);
  // Workers have another base URL, against which an address would resolve differently.
  if (path === undefined) return ofUrl(String(new URL(given, globalThis.document?.baseURI ?? globalThis.location?.href)), signal, line);
  const { handle, close } = await openPath(path);
  try {
    return { ...(await ofOpenFile(handle)), close };
  } catch (error) {
    close();
    throw error;
  }
}

/**
 * The caller keeps the handle, and it stays open.
 * @param {any} handle
 */
async function ofOpenFile(handle) {
  const file = await fileOf(handle);
  return file ? { ...ofFile(file), keep: handle } : ofIterable(handle.createReadStream({ autoClose: false }));
}

/**
 * @param {import("./node.js").OpenFile} file
 * @returns {Source}
 */
function ofFile(file) {
  return { size: file.size, inOrder: false, handle: { file }, read: (offset, length) => readFile(file, offset, length) };
}

/**
 * @param {Uint8Array} bytes
 * @returns {Source}
 */
function ofBytes(bytes) {
  return {
    size: bytes.length,
    inOrder: false,
    copy: async () => ({ blob: new Blob([/** @type {BlobPart} */ (bytes)]) }),
    read: async (offset, length) => new Uint8Array(bytes.subarray(offset, offset + length)),
  };
}

/**
 * @param {{ size: number, read(offset: number, length: number, signal?: AbortSignal): Uint8Array | Promise<Uint8Array> }} reader
 * @returns {Source}
 */
function ofReader(reader) {
  return {
    size: reader.size,
    inOrder: false,
    async read(offset, length, signal) {
      const bytes = new Uint8Array(Math.min(length, Math.max(0, reader.size - offset)));
      let filled = 0;
      while (filled < bytes.length) {
        const part = await own(() => reader.read(offset + filled, bytes.length - filled, signal));
        if (!(part instanceof Uint8Array)) throw new TypeError("read(offset, length) did not return a Uint8Array");
        if (part.length === 0) return bytes.slice(0, filled);
        if (part.length > bytes.length - filled) throw new SealiftError("io", "read(offset, length) returned more than length bytes");
        bytes.set(part, filled);
        filled += part.length;
      }
      return bytes;
    },
  };
}

