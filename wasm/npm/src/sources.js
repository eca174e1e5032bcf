// The sources of a bundle's bytes. All except streams are random-access.

import { SealiftError } from "./errors.js";
import { fileOf, isNode, openPath, pathOf, readFile } from "./node.js";
import { until } from "./until.js";

/** Bytes of the first request of a URL: for most bundles the whole head. */
const FIRST_BYTES = 1 << 18;

/** Bytes of a Blob requested from Node at once. */
const PIECE_BYTES = 1 << 20;

/** The smallest size in bytes of buffers that are reused; a read that needs less than half of it gets a buffer of its own. */
const BUFFER_BYTES = 8 << 20;

/** The most buffers that are kept for later reads. */
const SPARE_BUFFERS = 3;

/** Milliseconds without data, or without an answer, after which a request counts as failed. */
const SILENCE = 60_000;

/** Milliseconds before each retry of a failed part: over half a minute in total. */
const PAUSES = [250, 1000, 3000, 8000, 20_000];

/** The same for the first request, which is given up sooner: the user waits to learn whether the address is right. */
const FIRST_PAUSES = PAUSES.slice(0, 3);

/** Status codes that suggest a later retry. */
const BUSY = [408, 425, 429, 500, 502, 503, 504];

/** An error that may not occur again on a retry. */
class Passing extends SealiftError {
  /**
   * @param {string} message
   * @param {unknown} [cause]
   */
  constructor(message, cause) {
    super("io", message, cause);
  }
}

/** The wait for a server: it ends with the caller's signal, and if nothing comes for too long. */
class Wait {
  #controller = new AbortController();
  #caller;
  #stop = () => this.#controller.abort(this.#caller?.reason);

  /** @param {AbortSignal} [caller] */
  constructor(caller) {
    this.#caller = caller;
    caller?.addEventListener("abort", this.#stop);
    if (caller?.aborted) this.#stop();
  }

  /** Aborts the request. */
  get signal() {
    return this.#controller.signal;
  }

  /**
   * Waits for what comes next.
   * @template T
   * @param {() => Promise<T>} run
   */
  async next(run) {
    const timer = setTimeout(() => this.#controller.abort(new Passing("the server has stopped sending")), SILENCE);
    try {
      return await until(this.signal, run());
    } finally {
      clearTimeout(timer);
    }
  }

  /** Leaves the caller's signal, which may outlive many requests. */
  end() {
    this.#caller?.removeEventListener("abort", this.#stop);
  }
}

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
 */

/** @typedef {{ blob: Blob } | { file: import("./node.js").OpenFile } | { url: string, size: number, validator: string | null }} Handle */

/**
 * @param {import("../types.js").BundleSource} source
 * @param {AbortSignal} [signal]
 * @returns {Promise<Source>}
 */
export async function openSource(source, signal) {
  if (source instanceof Blob) return ofBlob(source);
  if (source instanceof ReadableStream) return ofStream(source.getReader());
  if (source instanceof Uint8Array) return ofBytes(source);
  if (typeof source === "string" || source instanceof URL) return ofName(source, signal);
  /** @type {any} */
  const object = source ?? {};
  if (typeof object.fd === "number" && typeof object.stat === "function") return ofOpenFile(object);
  if (typeof object.read === "function" && Number.isSafeInteger(object.size) && object.size >= 0) return ofReader(object);
  if (typeof object[Symbol.asyncIterator] === "function") return ofIterable(object);
  throw new TypeError(`a source is a Blob, a URL, a Uint8Array, a stream, in Node a path or a FileHandle, or has a size and a function read(offset, length); this is ${kindOf(source)}`);
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
 * @returns {Source}
 */
export function fromHandle(handle) {
  if ("blob" in handle) return isNode ? ofBlob(handle.blob) : ofBlobOfWorker(handle.blob);
  return "file" in handle ? ofFile(handle.file) : ofRanges(handle);
}

/**
 * @param {string | URL} given
 * @param {AbortSignal} [signal]
 */
async function ofName(given, signal) {
  if (given === "") throw new TypeError("a source's name is empty");
  const path = pathOf(given);
  // Workers have another base URL, against which an address would resolve differently.
  if (path === undefined) return ofUrl(String(new URL(given, globalThis.document?.baseURI ?? globalThis.location?.href)), signal);
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
 * @param {Blob} blob
 * @returns {Source}
 */
function ofBlob(blob) {
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
function ofBlobOfWorker(blob) {
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
  const known = spare.pop();
  let buffer = known && known.byteLength >= blob.size ? known : new ArrayBuffer(Math.max(blob.size, BUFFER_BYTES));
  let filled = 0;
  while (filled < blob.size) {
    /** @type {ReadableStreamReadResult<Uint8Array<ArrayBuffer>>} */
    const { done, value } = await reader.read(new Uint8Array(buffer, filled, blob.size - filled));
    // The buffer was transferred to the stream, and returned as another.
    if (value) buffer = value.buffer;
    if (done) break;
    filled += value.length;
  }
  reader.cancel().catch(() => {});
  return new Uint8Array(buffer, 0, filled);
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

/**
 * Node's Readable, or any other iterable of Uint8Arrays.
 * @param {AsyncIterable<Uint8Array> & { destroy?(): void }} parts
 */
function ofIterable(parts) {
  const iterator = parts[Symbol.asyncIterator]();
  // Destroys a waiting Readable directly: its iterator would only end it after the wait.
  const cancel = async () => void (parts.destroy ? parts.destroy() : await iterator.return?.());
  return ofStream({ read: () => iterator.next(), cancel });
}

/**
 * @param {{ read(): Promise<{ done?: boolean, value?: Uint8Array }>, cancel(): Promise<void> }} reader
 * @returns {Source}
 */
function ofStream(reader) {
  let at = 0;
  /** @type {Uint8Array} */
  let left = new Uint8Array(0);
  return {
    inOrder: true,
    async read(offset, length) {
      if (offset !== at) throw new TypeError("a stream can be read only once, and in order");
      const bytes = new Uint8Array(length);
      let filled = 0;
      while (filled < length) {
        if (left.length === 0) {
          const { done, value } = await own(() => reader.read());
          if (done) break;
          if (!(value instanceof Uint8Array)) throw new TypeError("the stream does not consist of Uint8Arrays");
          left = value;
        }
        const part = left.subarray(0, length - filled);
        bytes.set(part, filled);
        left = left.subarray(part.length);
        filled += part.length;
      }
      at += filled;
      return filled === length ? bytes : bytes.slice(0, filled);
    },
    close() {
      reader.cancel().catch(() => {});
    },
  };
}

/**
 * @param {string} url
 * @param {AbortSignal} [signal]
 * @returns {Promise<Source>}
 */
async function ofUrl(url, signal) {
  return again(signal, () => firstOf(url, signal), FIRST_PAUSES);
}

/**
 * @param {string} url
 * @param {AbortSignal} [signal]
 * @returns {Promise<Source>}
 */
async function firstOf(url, signal) {
  const wait = new Wait(signal);
  try {
    return await answered(url, wait);
  } finally {
    wait.end();
  }
}

/**
 * @param {string} url
 * @param {Wait} wait
 * @returns {Promise<Source>}
 */
async function answered(url, wait) {
  const response = await request(url, 0, FIRST_BYTES, wait);
  // A server without range support sends the file.
  if (response.status === 200 && response.body) {
    const reader = response.body.getReader();
    return ofStream({ read: () => wait.next(() => reader.read()), cancel: () => reader.cancel() });
  }
  if (response.status === 416) return ofRanges({ url, size: 0, validator: null });
  const range = rangeOf(response);
  if (range.start !== 0 || range.end > FIRST_BYTES) throw new SealiftError("io", "the server sent other bytes than those requested");
  const first = await body(response, range.end, wait);
  const handle = { url, size: range.size, validator: validatorOf(response) };
  const source = ofRanges(handle);
  return {
    ...source,
    read: async (offset, length, signal, came) =>
      offset + length <= first.length ? first.slice(offset, offset + length) : source.read(offset, length, signal, came),
  };
}

/**
 * @param {{ url: string, size: number, validator: string | null }} handle
 * @returns {Source}
 */
function ofRanges(handle) {
  const { size } = handle;
  return {
    size,
    inOrder: false,
    handle,
    async read(offset, length, signal, came) {
      const wanted = Math.min(length, Math.max(0, size - offset));
      if (wanted === 0) return new Uint8Array(0);
      return again(signal, () => readRange(handle, offset, wanted, signal, came));
    },
  };
}

/**
 * Runs a function until it succeeds or fails permanently.
 * @template T
 * @param {AbortSignal | undefined} signal
 * @param {() => Promise<T>} run
 * @param {number[]} [pauses] Milliseconds before each retry.
 */
async function again(signal, run, pauses = PAUSES) {
  for (const pause of pauses) {
    try {
      return await run();
    } catch (error) {
      if (!(error instanceof Passing)) throw error;
      await new Promise((resolve) => {
        const timer = setTimeout(resolve, pause);
        signal?.addEventListener("abort", () => (clearTimeout(timer), resolve(undefined)), { once: true });
      });
      signal?.throwIfAborted();
    }
  }
  return run();
}

/**
 * @param {{ url: string, size: number, validator: string | null }} handle
 * @param {number} offset
 * @param {number} wanted
 * @param {AbortSignal} [signal]
 * @param {(bytes: number) => void} [came]
 */
async function readRange({ url, size, validator }, offset, wanted, signal, came) {
  const wait = new Wait(signal);
  try {
    const response = await request(url, offset, wanted, wait);
    const range = rangeOf(response);
    if (range.size !== size || validatorOf(response) !== validator) {
      await response.body?.cancel();
      throw new SealiftError("changed", "the file on the server was changed while it was read");
    }
    if (range.start !== offset || range.end !== offset + wanted) {
      throw new SealiftError("io", `the server sent bytes ${range.start} to ${range.end} where ${offset} to ${offset + wanted} were requested`);
    }
    return await body(response, wanted, wait, came);
  } finally {
    wait.end();
  }
}

/**
 * @param {string} url
 * @param {number} offset
 * @param {number} length
 * @param {Wait} wait
 */
async function request(url, offset, length, wait) {
  const headers = { Range: `bytes=${offset}-${offset + length - 1}` };
  const response = await own(() => wait.next(() => fetch(url, { headers, signal: wait.signal, cache: "no-store" })), "the server cannot be reached", Passing);
  const { status } = response;
  if (status === 206 || (offset === 0 && (status === 200 || status === 416))) return response;
  await response.body?.cancel();
  if (status === 200 || status === 412 || status === 416) throw new SealiftError("changed", "the server does not send this part of the file any more");
  const said = `the server answers ${status} ${response.statusText}`.trim();
  throw BUSY.includes(status) ? new Passing(said) : new SealiftError("io", said);
}

/**
 * Returns the range of a partial response: bytes from `start` to before `end`, of `size`.
 * @param {Response} response
 */
function rangeOf(response) {
  const header = response.headers.get("Content-Range");
  if (header === null) {
    throw new SealiftError("io", "the response shows no Content-Range; a server of another origin must send Access-Control-Expose-Headers: Content-Range, ETag");
  }
  const [start, last, size] = (/^bytes (\d+)-(\d+)\/(\d+)$/.exec(header) ?? []).slice(1).map(Number);
  if (size === undefined || start > last || last >= size || !Number.isSafeInteger(size)) {
    throw new SealiftError("io", `the server's Content-Range is malformed: ${header}`);
  }
  return { start, end: last + 1, size };
}

/** @param {Response} response */
function validatorOf(response) {
  return response.headers.get("ETag") ?? response.headers.get("Last-Modified");
}

/**
 * Reads the body, which must be `length` bytes long.
 * @param {Response} response
 * @param {number} length
 * @param {Wait} wait
 * @param {(bytes: number) => void} [came]
 */
async function body(response, length, wait, came) {
  let bytes = new Uint8Array(length);
  let filled = 0;
  const stream = response.body;
  if (!stream) throw new SealiftError("io", "the server sent a response without a body");
  const { read, cancel } = filler(stream);
  try {
    for (;;) {
      const { bytes: next, count, done } = await own(() => wait.next(() => read(bytes, filled)), "the connection broke", Passing);
      bytes = next;
      filled += count;
      if (done) break;
      came?.(filled);
    }
  } finally {
    if (filled < length) cancel();
  }
  if (filled !== length) throw new Passing(`the server announced ${length} bytes and sent ${filled}`);
  return bytes;
}

/**
 * Fills buffers from a body. Mode "byob" fills them directly, which is twice as fast where supported.
 * @param {ReadableStream<Uint8Array>} stream
 * @returns {{
 *   read(bytes: Uint8Array<ArrayBuffer>, filled: number): Promise<{ bytes: Uint8Array<ArrayBuffer>, count: number, done: boolean }>,
 *   cancel(): void,
 * }}
 */
function filler(stream) {
  try {
    const reader = stream.getReader({ mode: "byob" });
    return {
      async read(bytes, filled) {
        // There must be nothing after the last byte.
        const isFull = filled === bytes.length;
        const { done, value } = await reader.read(isFull ? new Uint8Array(1) : new Uint8Array(bytes.buffer, filled));
        const count = value?.length ?? 0;
        // The buffer was transferred to the stream, and returned as another.
        const buffer = isFull ? bytes.buffer : (value?.buffer ?? new ArrayBuffer(0));
        return { bytes: new Uint8Array(/** @type {ArrayBuffer} */ (buffer)), count, done };
      },
      cancel: () => void reader.cancel().catch(() => {}),
    };
  } catch {
    const reader = stream.getReader();
    return {
      async read(bytes, filled) {
        const { done, value } = await reader.read();
        if (value) bytes.set(value.subarray(0, bytes.length - filled), filled);
        return { bytes, count: value?.length ?? 0, done };
      },
      cancel: () => void reader.cancel().catch(() => {}),
    };
  }
}

/**
 * Runs code of the caller, and wraps its errors.
 * @template T
 * @param {() => T | Promise<T>} run
 * @param {string} [what]
 * @param {typeof Passing} [Kind]
 * @returns {Promise<T>}
 */
async function own(run, what, Kind) {
  try {
    return await run();
  } catch (error) {
    const { name, message } = /** @type {{ name?: string, message?: string }} */ (error ?? {});
    if (error instanceof SealiftError || name === "AbortError" || name === "TimeoutError") throw error;
    const said = `${what ?? "the source failed"}: ${message ?? error}`;
    throw Kind ? new Kind(said, error) : new SealiftError("io", said, error);
  }
}
