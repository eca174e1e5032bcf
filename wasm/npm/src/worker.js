// The code of each worker: a reader whose functions are called by messages.

import { checkPolicy, initSync, Reader, sha256 as sha256Of } from "../pkg/sealift_wasm.js";
import { giveBack, litter, takeSpare } from "./blobs.js";
import { ofBase, packed } from "./errors.js";
import { fromHandle } from "./sources.js";

/** Bytes checked before others get a turn: queries of the bundle, and reads for the next run. */
const TURN_BYTES = 1 << 20;

/** Milliseconds between two progress reports of reading. */
const TELL = 200;

/** @type {Reader} */
let reader;
/** @type {import("./sources.js").Source | undefined} */
let source;
/** What the reader was made with. @type {{ size?: number, memory?: number }} */
let made = {};
/** The files of a delta bundle's bases, once it was completed with them. @type {import("./sources.js").Source[]} */
let bases = [];
/** Whether chunks are decoded, so that some need parts of the bases. */
let isDecoding = false;
/** Bytes that are read but not hashed yet, by their first chunk. @type {Map<number, Uint8Array>} */
const unhashed = new Map();
/** The files being written, by the numbers that their writers assigned. @type {Map<number, Out>} */
const written = new Map();
let stopped = new AbortController();
/** Chunks are checked in the order of the requests, regardless of the order in which bytes arrive. */
let turn = Promise.resolve();
/** The reader holds one prefix at a time: a chunk that needs one waits for those before it. */
let prefixed = Promise.resolve();
const { port1, port2 } = new MessageChannel();
/** Messages to this port are discarded. */
const { port1: nowhere, port2: closed } = new MessageChannel();
closed.close();
/** Sends a message to the other thread. @type {(data: unknown, moved?: any[]) => void} */
let post;
/** Callbacks that yield to other work, in order. @type {((event: unknown) => void)[]} */
const patient = [];
/** Yields to other work of this thread. */
const others = () => new Promise((resolve) => {
  port1.onmessage ??= (event) => patient.shift()?.(event);
  patient.push(resolve);
  port2.postMessage(undefined);
});

/** Tells the other thread of the requests to servers. @type {import("./line.js").Teller} */
const line = {
  asked: (attempts) => post({ line: ["asked", attempts] }),
  came: paced(() => post({ line: ["came"] })),
  failed: (...failure) => post({ line: ["failed", ...failure] }),
  ended: () => post({ line: ["ended"] }),
};

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
    made = { size, memory };
    source = handle && fromHandle(handle, line);
  },

  checkPolicy,

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
   * Completes the delta bundle with its bases; without any it becomes a delta again. If that fails, it stays what it was.
   * @param {Uint8Array} bytes The bytes before its chunks.
   * @param {{ bytes: Uint8Array, handle: import("./sources.js").Handle, digests: Uint8Array }[]} given For each base, in the order of the root, the
   *   bytes before its chunks, its file, and what its check found.
   */
  rebase(bytes, given) {
    const whole = new Reader(made.size, made.memory);
    try {
      openFrom(whole, bytes);
      for (const base of given) {
        const other = new Reader(undefined, whole.memoryLeft());
        try {
          openFrom(other, base.bytes);
          whole.addBase(other, base.digests);
        } catch (error) {
          throw ofBase(error);
        }
      }
      const places = given.length > 0 ? whole.complete() : whole.open();
      bases = given.map(({ handle }) => fromHandle(handle, line));
      reader.free();
      reader = whole;
      return places;
    } catch (error) {
      whole.free();
      throw error;
    }
  },

  /** @param {string} depth */
  begin(depth) {
    stopped = new AbortController();
    unhashed.clear();
    isDecoding = depth === "objects";
    return reader.begin(/** @type {any} */ (depth));
  },

  /** Reads the next base chunk with contents of OSTree files whose checksums are new, and checks those. Returns whether more may be left. */
  async checkRenamed() {
    const { signal } = stopped;
    const next = reader.nextRenamed();
    if (!next) return false;
    const [base, [offset, length]] = next;
    const stored = await readBase(base, offset, length, signal);
    try {
      reader.checkRenamed(stored);
    } catch (error) {
      // A base that was valid a moment ago must not make the delta bundle look damaged.
      throw /** @type {any} */ (error).code === "chunk" ? ofBase(error) : error;
    }
    return true;
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
      const isOver = isDecoding && bases.length > 0;
      for (const part of parts(lengths, bytes.length, isOver ? 1 : TURN_BYTES)) {
        if (part.from > 0) await others();
        signal.throwIfAborted();
        const check = () => reader.check(first + part.chunk, bytes.subarray(part.from, part.end));
        found.push(isOver && part.end > part.from ? await withPrefix(first + part.chunk, signal, check) : check());
      }
      if (isHashed) unhashed.set(first, bytes);
      else if (!given) giveBack(bytes);
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
    const next = await hashed(bytes, state, signal);
    giveBack(bytes);
    return next;
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
      giveBack(bytes);
      if (bytes.length > 0 && offset !== source.size) continue;
      rest();
      return ended(state);
    }
  },

  /**
   * Returns the bytes of the next part of a file of the bundle.
   * @param {Part} part
   * @param {Uint8Array | undefined} given Its stored bytes, if only the other thread can read them.
   */
  readPart: (part, given) => contentOf(part, given),

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
   * @param {Part} part
   * @param {Uint8Array | undefined} given Its stored bytes, if only the other thread can read them.
   */
  async writePart(number, part, given) {
    const to = written.get(number);
    if (!to) throw new TypeError("there is nothing to write to");
    const stored = given ?? (await storedOf(part));
    const bytes = await contentOf(part, stored);
    const { length: count } = bytes;
    await to.write(bytes);
    if (!giveBack(stored)) release(stored.buffer);
    release(bytes.buffer);
    return count;
  },

  /**
   * @param {number} number
   * @param {boolean} isWhole
   */
  async endWrite(number, isWhole) {
    const to = written.get(number);
    written.delete(number);
    rest();
    await (isWhole ? to?.close() : to?.abort());
  },

  rest,

  stop() {
    stopped.abort();
  },
};

/** Transfers a buffer to a closed port: its memory is freed at once, not at the next garbage collection. @param {any} buffer */
function release(buffer) {
  litter(buffer.byteLength);
  nowhere.postMessage(undefined, [buffer]);
}

/** Frees the buffers that were kept for the next read. */
function rest() {
  takeSpare().forEach(release);
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
      if (count === 0) throw new Error("the browser gives this page no more space");
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
 * A part of a file's content: the place of its chunk, in the bundle's file or in that of a base.
 * @typedef {{ object: number, part: number, chunk?: number, base?: number, offset: number, length: number }} Part
 */

/** @param {Part} part */
async function storedOf({ base, offset, length }) {
  const { signal } = new AbortController();
  const stored = base === undefined ? await source?.read(offset, length) : await readBase(base, offset, length, signal);
  if (!stored) throw new TypeError("there is nothing to read from");
  return stored;
}

/**
 * @param {Part} part
 * @param {Uint8Array} [given]
 * @returns {Promise<Uint8Array>}
 */
async function contentOf(part, given) {
  const stored = given ?? (await storedOf(part));
  const read = () => reader.contentPart(part.object, part.part, stored);
  return part.chunk === undefined || part.base !== undefined ? read() : withPrefix(part.chunk, new AbortController().signal, read);
}

/**
 * Reads the parts of the bases that a chunk is decoded with, and then decodes it.
 * @template T
 * @param {number} chunk
 * @param {AbortSignal} signal
 * @param {() => T} decode
 * @returns {Promise<T>}
 */
function withPrefix(chunk, signal, decode) {
  if (bases.length === 0) return Promise.resolve().then(decode);
  const decoded = prefixed.then(async () => {
    for (const [base, number, [offset, length]] of reader.beginPrefix(chunk)) {
      const stored = await readBase(base, offset, length, signal);
      try {
        reader.fillPrefix(chunk, base, number, stored);
      } catch (error) {
        throw ofBase(error);
      }
    }
    return decode();
  });
  prefixed = decoded.then(() => {}, () => {});
  return decoded;
}

/**
 * @param {number} base
 * @param {number} offset
 * @param {number} length
 * @param {AbortSignal} signal
 */
async function readBase(base, offset, length, signal) {
  try {
    return await bases[base].read(offset, length, signal);
  } catch (error) {
    signal.throwIfAborted();
    throw ofBase(error);
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
 * @template {unknown[]} Args
 * @param {(...args: Args) => void} tell
 * @returns {(...args: Args) => void}
 */
function paced(tell) {
  let last = performance.now();
  return (...args) => {
    const now = performance.now();
    if (now - last < TELL) return;
    last = now;
    tell(...args);
  };
}

/** @param {{ id: number, name: string, args: any[] }} message */
async function serve({ id, name, args }) {
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
    post = (data, moved) => parentPort.postMessage(data, moved);
    parentPort.on("message", serve);
  });
} else {
  post = (data, moved = []) => self.postMessage(data, { transfer: moved });
  self.onmessage = ({ data }) => void serve(data);
}
