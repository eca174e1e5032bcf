// The code of each worker: a reader whose functions are called by messages.

import { initSync, Reader, sha256 as sha256Of } from "../pkg/sealift_wasm.js";
import { packed, SealiftError } from "./errors.js";
import { fromHandle, litter } from "./sources.js";

/** Bytes checked before others get a turn: queries of the bundle, and reads for the next run. */
const TURN_BYTES = 1 << 20;

/** Milliseconds between two progress reports of reading. */
const TELL = 200;

/** @type {Reader} */
let reader;
/** @type {import("./sources.js").Source | undefined} */
let source;
/** The base of a delta bundle that is checked over it, and its file. @type {{ reader: Reader, source: import("./sources.js").Source } | undefined} */
let base;
/** Bytes that are read but not hashed yet, by their first chunk. @type {Map<number, Uint8Array>} */
const unhashed = new Map();
/** The files being written, by the numbers that their writers assigned. @type {Map<number, Out>} */
const written = new Map();
let stopped = new AbortController();
/** Chunks are checked in the order of the requests, regardless of the order in which bytes arrive. */
let turn = Promise.resolve();
const { port1, port2 } = new MessageChannel();
/** Messages to this port are discarded. */
const { port1: nowhere, port2: closed } = new MessageChannel();
closed.close();
/** Callbacks that yield to other work, in order. @type {((event: unknown) => void)[]} */
const patient = [];
/** Yields to other work of this thread. */
const others = () => new Promise((resolve) => {
  port1.onmessage ??= (event) => patient.shift()?.(event);
  patient.push(resolve);
  port2.postMessage(undefined);
});

/** @type {Record<string, (...args: any[]) => any>} */
const functions = {
  /**
   * @param {WebAssembly.Module} module
   * @param {number | undefined} size
   * @param {import("./sources.js").Handle | undefined} handle
   * @param {number | undefined} memory The memory limit for the bundle in bytes.
   */
  start(module, size, handle, memory) {
    initSync({ module });
    reader = new Reader(size, memory);
    source = handle && fromHandle(handle);
  },

  /**
   * Opens the same bundle as another worker, from the same bytes.
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

  /**
   * Switches to checking the delta bundle over its base.
   * @param {Uint8Array} bytes The bytes before the base's chunks.
   * @param {import("./sources.js").Handle} handle The base's file.
   */
  rebase(bytes, handle) {
    const other = new Reader(undefined, reader.memoryLeft());
    base = { reader: other, source: fromHandle(handle) };
    openFrom(other, bytes);
    reader.checkOver(other);
  },

  /** @param {string} depth */
  begin(depth) {
    stopped = new AbortController();
    unhashed.clear();
    if (depth !== "over") {
      base?.reader.free();
      base = undefined;
    }
    return reader.begin(/** @type {any} */ (depth));
  },

  /**
   * Reads and checks chunks. If the file is shorter than expected, only complete chunks are checked.
   * @param {number} first
   * @param {Uint32Array} lengths
   * @param {number} offset
   * @param {number} length
   * @param {Uint8Array | undefined} given The bytes, if only the other thread can read them.
   * @param {boolean} isHashed Whether `hash` will be called for them.
   * @param {(bytes: number) => void} came Called with the number of bytes read, if reading takes long.
   */
  async check(first, lengths, offset, length, given, isHashed, came) {
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
      for (const part of parts(lengths, bytes.length, base ? 1 : TURN_BYTES)) {
        if (part.from > 0) await others();
        signal.throwIfAborted();
        if (base && part.end > part.from) await readPrefix(base, first + part.chunk, signal);
        found.push(reader.check(first + part.chunk, bytes.subarray(part.from, part.end)));
      }
      if (isHashed) unhashed.set(first, bytes);
      return { found: joined(found), read: bytes.length };
    } finally {
      done();
    }
  },

  /**
   * Continues the SHA-256 of the file.
   * @param {number} first The first chunk of the `check` call.
   * @param {Uint8Array} state The state after the bytes before.
   */
  async hash(first, state) {
    const { signal } = stopped;
    const bytes = unhashed.get(first) ?? new Uint8Array(0);
    unhashed.delete(first);
    return hashed(bytes, state, signal);
  },

  /** Begins the SHA-256 of the file. @param {Uint8Array} bytes The bytes before the chunks. */
  hashFirst: (bytes) => hashed(bytes, new Uint8Array(0), stopped.signal),

  /** @param {Uint8Array} state */
  hashEnd: (state) => ended(state),

  /**
   * Returns the SHA-256 of these bytes, or of the whole file.
   * @param {Uint8Array | undefined} given
   */
  async sha256(given) {
    const { signal } = stopped;
    /** @type {Uint8Array} */
    let state = new Uint8Array(0);
    // Independent of the check, which may have been stopped.
    if (given) return ended(await hashed(given, state, new AbortController().signal));
    if (!source) throw new TypeError("there is nothing to read from");
    for (let offset = 0; ; ) {
      signal.throwIfAborted();
      const bytes = await source.read(offset, TURN_BYTES * 4, signal);
      state = await hashed(bytes, state, signal);
      offset += bytes.length;
      if (bytes.length === 0 || offset === source.size) return ended(state);
    }
  },

  /**
   * Begins writing to a file. A file in the page's own folder is written in place; another appears when it is complete.
   * @param {number} number
   * @param {any} handle
   * @param {boolean} isOwn
   */
  async beginWrite(number, handle, isOwn) {
    written.set(number, isOwn ? direct(await handle.createSyncAccessHandle()) : await handle.createWritable());
  },

  /**
   * Writes the next part of a file of the bundle. It is read and written in this worker: buffers passed between threads pile up, since no
   * thread accounts for their memory.
   * @param {number} number
   * @param {number} object
   * @param {number} part
   * @param {number} offset
   * @param {number} length
   * @param {Uint8Array | undefined} given Its stored bytes, if only the other thread can read them.
   */
  async writePart(number, object, part, offset, length, given) {
    const to = written.get(number);
    const stored = given ?? (await source?.read(offset, length));
    if (!to || !stored) throw new TypeError("there is nothing to write");
    const bytes = reader.contentPart(object, part, stored);
    const { length: count } = bytes;
    await to.write(bytes);
    for (const { buffer } of [stored, bytes]) release(buffer);
    return count;
  },

  /**
   * @param {number} number
   * @param {boolean} isWhole
   */
  async endWrite(number, isWhole) {
    const to = written.get(number);
    written.delete(number);
    await (isWhole ? to?.close() : to?.abort());
  },

  stop() {
    stopped.abort();
  },
};

/** Transfers a buffer to a closed port: its memory is freed at once, not at the next garbage collection. @param {any} buffer */
function release(buffer) {
  litter(buffer.byteLength);
  nowhere.postMessage(undefined, [buffer]);
}

/** @typedef {{ write(bytes: Uint8Array): unknown, close(): unknown, abort(): unknown }} Out */

/**
 * @param {any} file
 * @returns {Out}
 */
function direct(file) {
  let at = 0;
  const write = (/** @type {Uint8Array} */ bytes) => {
    for (let done = 0; done < bytes.length; ) {
      const count = file.write(bytes.subarray(done), { at });
      if (count === 0) throw new Error("this browser gives the page no more space");
      done += count;
      at += count;
    }
  };
  return { write, close: () => file.close(), abort: () => file.close() };
}

/**
 * @param {Uint8Array} bytes
 * @param {Uint8Array} state
 * @param {AbortSignal} signal
 */
async function hashed(bytes, state, signal) {
  for (let at = 0; at < bytes.length; at += TURN_BYTES) {
    if (at > 0) await others();
    signal.throwIfAborted();
    state = sha256Of(state, bytes.subarray(at, at + TURN_BYTES), false);
  }
  return state;
}

/**
 * Returns the digest in hexadecimal digits.
 * @param {Uint8Array} state
 */
function ended(state) {
  return [...sha256Of(state, new Uint8Array(0), true)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/**
 * Reads the parts of the base that a chunk is decoded with.
 * @param {{ reader: Reader, source: import("./sources.js").Source }} base
 * @param {number} chunk
 * @param {AbortSignal} signal
 */
async function readPrefix(base, chunk, signal) {
  for (const [number, [offset, length]] of reader.beginPrefix(base.reader, chunk)) {
    try {
      reader.fillPrefix(base.reader, chunk, number, await base.source.read(offset, length, signal));
    } catch (error) {
      signal.throwIfAborted();
      // The base was valid a moment ago; its fault must not make the delta bundle look damaged.
      throw new SealiftError("base", `the base is not what it was: ${/** @type {Error} */ (error).message}`, error);
    }
  }
}

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
 * Splits the complete chunks into parts that are each checked at once.
 * @param {Uint32Array} lengths
 * @param {number} length
 * @param {number} least The minimum bytes of each part except the last.
 */
function parts(lengths, length, least) {
  const all = [];
  let part = { chunk: 0, from: 0, end: 0 };
  for (const [chunk, next] of lengths.entries()) {
    if (part.end + next > length) break;
    if (part.end - part.from >= least) {
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
 * Limits reports to the rate at which anyone looks at them.
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
