// What runs in each worker: a reader, whose functions are called by messages.

import { initSync, Reader } from "../pkg/sealift_wasm.js";
import { packed } from "./errors.js";
import { fromHandle } from "./sources.js";

/** @type {Reader} */
let reader;
/** @type {import("./sources.js").Source | undefined} */
let source;
let stopped = new AbortController();
/** Chunks are checked in the order in which they were asked for, whichever bytes come first. */
let turn = Promise.resolve();

/** @type {Record<string, (...args: any[]) => any>} */
const functions = {
  /**
   * @param {WebAssembly.Module} module
   * @param {number | undefined} size
   * @param {import("./sources.js").Handle | undefined} handle
   */
  start(module, size, handle) {
    initSync({ module });
    reader = new Reader(size);
    source = handle && fromHandle(handle);
  },

  /**
   * Opens the same bundle as another worker did, from the same bytes.
   * @param {Uint8Array} bytes
   */
  follow(bytes) {
    openFrom(reader, bytes);
  },

  /**
   * @param {Uint8Array} older The bytes before the chunks of another bundle.
   * @param {number} limit
   */
  compare(older, limit) {
    const other = new Reader();
    try {
      openFrom(other, older);
      return reader.compare(other, limit);
    } finally {
      other.free();
    }
  },

  /** @param {string} depth */
  begin(depth) {
    stopped = new AbortController();
    return reader.begin(/** @type {any} */ (depth));
  },

  /**
   * Reads and checks chunks. The file may be shorter than it said: then those that are whole are checked.
   * @param {number} first
   * @param {Uint32Array} lengths
   * @param {number} offset
   * @param {number} length
   * @param {Uint8Array} [given] The bytes, where only the other thread can read them.
   */
  async check(first, lengths, offset, length, given) {
    const reading = given ?? source?.read(offset, length, stopped.signal);
    const before = turn;
    /** @type {() => void} */
    let done = () => {};
    turn = new Promise((resolve) => (done = resolve));
    try {
      const bytes = await reading;
      await before;
      if (!bytes) throw new TypeError("there is nothing to read from");
      const found = reader.check(first, bytes.subarray(0, wholeChunks(lengths, bytes.length)));
      return { found, read: bytes.length };
    } finally {
      done();
    }
  },

  stop() {
    stopped.abort();
  },
};

/**
 * @param {Reader} reader
 * @param {Uint8Array} bytes
 */
function openFrom(reader, bytes) {
  for (let step = reader.next(); step.need; step = reader.next()) {
    const [offset, length] = step.need;
    reader.supply(offset, bytes.subarray(offset, offset + length));
  }
  reader.open();
}

/**
 * The bytes of those chunks that are whole.
 * @param {Uint32Array} lengths
 * @param {number} length
 */
function wholeChunks(lengths, length) {
  let end = 0;
  for (const next of lengths) {
    if (end + next > length) break;
    end += next;
  }
  return end;
}

/**
 * @param {{ id: number, name: string, args: any[] }} message
 * @param {(data: unknown, moved?: any) => void} post
 */
async function serve({ id, name, args }, post) {
  try {
    const run = functions[name] ?? (/** @type {any} */ (reader))[name].bind(reader);
    const result = await run(...args);
    const bytes = result?.found ?? result;
    post({ id, result }, bytes instanceof Uint8Array ? [bytes.buffer] : []);
  } catch (error) {
    post({ id, error: packed(error) });
  }
}

if (typeof self === "undefined") {
  const name = "node:worker_threads";
  import(/* @vite-ignore */ /* webpackIgnore: true */ name).then(({ parentPort }) => {
    parentPort.on("message", (/** @type {any} */ data) => serve(data, (answer, moved) => parentPort.postMessage(answer, moved)));
  });
} else {
  self.onmessage = ({ data }) => serve(data, (answer, moved) => self.postMessage(answer, { transfer: moved ?? [] }));
}
