// What runs in each worker: a reader, whose functions are called by messages.

import { initSync, Reader } from "../pkg/sealift_wasm.js";
import { packed } from "./errors.js";
import { fromHandle } from "./sources.js";

/** Bytes that are checked before others have their turn: who asks something of the bundle, and what is being read for the next run. */
const TURN_BYTES = 1 << 20;

/** Milliseconds between two words of what is being read. */
const TELL = 200;

/** @type {Reader} */
let reader;
/** @type {import("./sources.js").Source | undefined} */
let source;
let stopped = new AbortController();
/** Chunks are checked in the order in which they were asked for, whichever bytes come first. */
let turn = Promise.resolve();
const { port1, port2 } = new MessageChannel();
/** Lets what waits for this thread go first. */
const others = () => new Promise((resolve) => {
  port1.onmessage = resolve;
  port2.postMessage(undefined);
});

/** @type {Record<string, (...args: any[]) => any>} */
const functions = {
  /**
   * @param {WebAssembly.Module} module
   * @param {number | undefined} size
   * @param {import("./sources.js").Handle | undefined} handle
   * @param {number | undefined} memory Bytes that the bundle may take.
   */
  start(module, size, handle, memory) {
    initSync({ module });
    reader = new Reader(size, memory);
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
    const other = new Reader(undefined, reader.memoryLeft());
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
   * @param {Uint8Array | undefined} given The bytes, where only the other thread can read them.
   * @param {(bytes: number) => void} came Is told how many were read, where that takes long.
   */
  async check(first, lengths, offset, length, given, came) {
    const { signal } = stopped;
    const reading = given ?? source?.read(offset, length, signal, came);
    const before = turn;
    /** @type {() => void} */
    let done = () => {};
    turn = new Promise((resolve) => (done = resolve));
    try {
      const bytes = await reading;
      await before;
      if (!bytes) throw new TypeError("there is nothing to read from");
      const found = [];
      for (const part of parts(lengths, bytes.length)) {
        if (part.from > 0) await others();
        signal.throwIfAborted();
        found.push(reader.check(first + part.chunk, bytes.subarray(part.from, part.end)));
      }
      return { found: joined(found), read: bytes.length };
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
 * The chunks that are whole, in parts of which each is checked at once.
 * @param {Uint32Array} lengths
 * @param {number} length
 */
function parts(lengths, length) {
  const all = [];
  let part = { chunk: 0, from: 0, end: 0 };
  for (const [chunk, next] of lengths.entries()) {
    if (part.end + next > length) break;
    if (part.end - part.from >= TURN_BYTES) {
      all.push(part);
      part = { chunk, from: part.end, end: part.end };
    }
    part.end += next;
  }
  all.push(part);
  return all;
}

/** @param {Uint8Array[]} found */
function joined(found) {
  const all = new Uint8Array(found.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of found) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

/**
 * Tells not oftener than somebody looks.
 * @param {(bytes: number) => void} tell
 * @returns {(bytes: number) => void}
 */
function paced(tell) {
  let last = performance.now();
  return (bytes) => {
    const now = performance.now();
    if (now - last < TELL) return;
    last = now;
    tell(bytes);
  };
}

/**
 * @param {{ id: number, name: string, args: any[] }} message
 * @param {(data: unknown, moved?: any) => void} post
 */
async function serve({ id, name, args }, post) {
  try {
    const own = functions[name];
    const result = await (own ? own(...args, paced((came) => post({ id, came }))) : /** @type {any} */ (reader)[name](...args));
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
