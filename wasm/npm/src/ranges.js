// Files on servers as sources, read by requests for ranges of bytes.

import { bufferFor, litter } from "./blobs.js";
import { SealiftError } from "./errors.js";
import { Passing, Wait } from "./line.js";
import { ofStream, own } from "./streams.js";

/** @typedef {import("./sources.js").Source} Source */

/** Bytes of the first request of a URL: for most bundles the whole head. */
const FIRST_BYTES = 1 << 18;

/** Milliseconds without a byte after which a request counts as failed, and is made again. */
const SILENCE = 20_000;

/** Milliseconds before each retry of a failed part: over half a minute in total. */
const PAUSES = [250, 1000, 3000, 8000, 20_000];

/**
 * The same for the first request, which is given up within a minute even if the server never answers: the user waits to learn whether the address is
 * right.
 */
const FIRST_SILENCE = 13_000;
const FIRST_PAUSES = PAUSES.slice(0, 3);

/** The same for a file that comes as a whole: it cannot be requested again. */
const WHOLE_SILENCE = 60_000;

/** Status codes that suggest a later retry. */
const BUSY = [408, 425, 429, 500, 502, 503, 504];

/**
 * @param {string} url
 * @param {AbortSignal} [signal]
 * @param {import("./line.js").Teller} [line]
 * @returns {Promise<Source>}
 */
export function ofUrl(url, signal, line) {
  return again(signal, line, FIRST_PAUSES, async () => {
    const wait = new Wait(FIRST_SILENCE, signal, line);
    try {
      return await answered(url, wait, line);
    } finally {
      wait.end();
    }
  });
}

/**
 * @param {string} url
 * @param {Wait} wait
 * @param {import("./line.js").Teller} [line]
 * @returns {Promise<Source>}
 */
async function answered(url, wait, line) {
  const response = await request(url, 0, FIRST_BYTES, wait);
  // A server without range support sends the file.
  if (response.status === 200 && response.body) {
    const reader = response.body.getReader();
    const read = async () => {
      line?.asked(1);
      try {
        return await wait.next(() => reader.read());
      } finally {
        wait.came(WHOLE_SILENCE);
        line?.ended();
      }
    };
    wait.came(WHOLE_SILENCE);
    return ofStream({ read, cancel: () => reader.cancel() });
  }
  if (response.status === 416) return ofRanges({ url, size: 0, validator: null });
  const range = rangeOf(response);
  if (range.start !== 0 || range.end > FIRST_BYTES) throw new SealiftError("io", "the server sent other bytes than those requested");
  const first = await body(response, range.end, wait);
  const handle = { url, size: range.size, validator: validatorOf(response) };
  const source = ofRanges(handle, line);
  return {
    ...source,
    read: async (offset, length, signal, came) =>
      offset + length <= first.length ? first.slice(offset, offset + length) : source.read(offset, length, signal, came),
  };
}

/**
 * @param {{ url: string, size: number, validator: string | null }} handle
 * @param {import("./line.js").Teller} [line]
 * @returns {Source}
 */
export function ofRanges(handle, line) {
  const { size } = handle;
  return {
    size,
    inOrder: false,
    handle,
    async read(offset, length, signal, came) {
      const wanted = Math.min(length, Math.max(0, size - offset));
      if (wanted === 0) return new Uint8Array(0);
      return again(signal, line, PAUSES, () => readRange(handle, offset, wanted, { signal, came, line }));
    },
  };
}

/**
 * Runs a function until it succeeds or fails permanently.
 * @template T
 * @param {AbortSignal | undefined} signal
 * @param {import("./line.js").Teller | undefined} line
 * @param {number[]} pauses Milliseconds before each retry.
 * @param {() => Promise<T>} run
 */
async function again(signal, line, pauses, run) {
  const attempts = pauses.length + 1;
  line?.asked(attempts);
  try {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await run();
      } catch (error) {
        if (!(error instanceof Passing)) throw error;
        if (attempt === attempts) throw new SealiftError("io", `${error.message}, in the last of ${attempts} attempts`, error.cause);
        line?.failed(error.message, attempt + 1, attempts);
      }
      await new Promise((resolve) => {
        const timer = setTimeout(resolve, pauses[attempt - 1]);
        signal?.addEventListener("abort", () => (clearTimeout(timer), resolve(undefined)), { once: true });
      });
      signal?.throwIfAborted();
    }
  } finally {
    line?.ended();
  }
}

/**
 * @param {{ url: string, size: number, validator: string | null }} handle
 * @param {number} offset
 * @param {number} wanted
 * @param {{ signal?: AbortSignal, came?: (bytes: number) => void, line?: import("./line.js").Teller }} told
 */
async function readRange({ url, size, validator }, offset, wanted, { signal, came, line }) {
  const wait = new Wait(SILENCE, signal, line);
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
  const stream = response.body;
  if (!stream) throw new SealiftError("io", "the server sent a response without a body");
  const { read, cancel } = filler(stream);
  let buffer = bufferFor(length);
  let filled = 0;
  try {
    for (;;) {
      const { buffer: next, count, done } = await own(() => wait.next(() => read(buffer, filled, length)), "the connection broke", Passing);
      buffer = next;
      filled += count;
      if (done) break;
      litter(count);
      wait.came();
      came?.(filled);
    }
  } finally {
    if (filled < length) cancel();
  }
  if (filled !== length) throw new Passing(`the server announced ${length} bytes and sent ${filled}`);
  return new Uint8Array(buffer, 0, length);
}

/**
 * Fills buffers from a body. Mode "byob" fills them directly, which is twice as fast where supported.
 * @param {ReadableStream<Uint8Array>} stream
 * @returns {{
 *   read(buffer: ArrayBuffer, filled: number, length: number): Promise<{ buffer: ArrayBuffer, count: number, done: boolean }>,
 *   cancel(): void,
 * }}
 */
function filler(stream) {
  try {
    const reader = stream.getReader({ mode: "byob" });
    return {
      async read(buffer, filled, length) {
        // There must be nothing after the last byte.
        const isFull = filled === length;
        const { done, value } = await reader.read(isFull ? new Uint8Array(1) : new Uint8Array(buffer, filled, length - filled));
        const count = value?.length ?? 0;
        // The buffer was transferred to the stream, and returned as another.
        return { buffer: isFull ? buffer : (value?.buffer ?? new ArrayBuffer(0)), count, done };
      },
      cancel: () => void reader.cancel().catch(() => {}),
    };
  } catch {
    const reader = stream.getReader();
    return {
      async read(buffer, filled, length) {
        const { done, value } = await reader.read();
        if (value) new Uint8Array(buffer, filled).set(value.subarray(0, length - filled));
        return { buffer, count: value?.length ?? 0, done };
      },
      cancel: () => void reader.cancel().catch(() => {}),
    };
  }
}
