// A reader of a worker, whose functions are called by messages.

import { instantiate as instantiateInside } from "../pkg/sealift_inside.js";
import { instantiate } from "../pkg/sealift_wasm.js";
import { giveBack, litter, takeSpare } from "./blobs.js";
import { ofBase, SealiftError } from "./errors.js";
import { fromHandle } from "./sources.js";
import { HEADER_BYTES } from "./volumes.js";

/** @typedef {import("../pkg/sealift_wasm.js").Reader} Reader */

/** Bytes checked before others get a turn: queries, other bundles, and reads for the next run. */
const TURN_BYTES = 1 << 20;

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

/**
 * A part of a file's content: the place of its chunk, in the bundle's file or in that of a base.
 * @typedef {{ object: number, part: number, chunk?: number, base?: number, offset: number, length: number }} Part
 */

/**
 * A reader with an instance of the code, and so with memory, of its own: what one bundle takes, or breaks, does not concern the worker's others.
 */
export class Hosted {
  /** @type {Reader} */
  reader;
  #wasm;
  #source;
  #line;
  /** What the reader was made with. */
  #made;
  /** The files of a delta bundle's bases, once it was completed with them. @type {import("./sources.js").Source[]} */
  #bases = [];
  /** Whether chunks are decoded, so that some need parts of the bases. */
  #isDecoding = false;
  /** Bytes that are read but not hashed yet, by their first chunk. @type {Map<number, Uint8Array>} */
  #unhashed = new Map();
  /** The files being written, by the numbers that their writers assigned. @type {Map<number, Out>} */
  #written = new Map();
  /** The files that are looked into, each in an instance of its own, by the numbers that were assigned. @type {Map<number, any>} */
  #insides = new Map();
  #stopped = new AbortController();
  /** Chunks are checked in the order of the requests, regardless of the order in which bytes arrive. */
  #turn = Promise.resolve();
  /** The reader holds one prefix at a time: a chunk that needs one waits for those before it. */
  #prefixed = Promise.resolve();

  /**
   * @param {import("./line.js").Teller} line Told of the requests to a URL.
   * @param {WebAssembly.Module} module
   * @param {number} [size]
   * @param {import("./sources.js").Handle} [handle]
   * @param {number} [memory] The memory limit for the bundle in bytes.
   */
  constructor(line, module, size, handle, memory) {
    this.#wasm = instantiate(module);
    this.reader = new this.#wasm.Reader(size, memory);
    this.#made = { size, memory };
    this.#line = line;
    this.#source = handle && fromHandle(handle, line);
  }

  /**
   * Opens the same bundle as another worker, from the same bytes.
   * @param {Uint8Array} bytes
   */
  follow(bytes) {
    openFrom(this.reader, bytes);
  }

  /**
   * @param {Uint8Array} older The bytes before the chunks of another bundle.
   * @param {number} limit
   */
  compare(older, limit) {
    const other = new this.#wasm.Reader(undefined, this.reader.memoryLeft());
    try {
      openFrom(other, older);
      return this.reader.compare(other, limit);
    } finally {
      other.free();
    }
  }

  /**
   * Completes the delta bundle with its bases; without any it becomes a delta again. If that fails, it stays what it was.
   * @param {Uint8Array} bytes The bytes before its chunks.
   * @param {{ bytes: Uint8Array, handle: import("./sources.js").Handle, digests: Uint8Array }[]} given For each base, in the order of the root, the
   *   bytes before its chunks, its file, and what its check found.
   */
  rebase(bytes, given) {
    const whole = new this.#wasm.Reader(this.#made.size, this.#made.memory);
    try {
      openFrom(whole, bytes);
      for (const base of given) {
        const other = new this.#wasm.Reader(undefined, whole.memoryLeft());
        try {
          openFrom(other, base.bytes);
          whole.addBase(other, base.digests);
        } catch (error) {
          throw ofBase(error);
        }
      }
      const places = given.length > 0 ? whole.complete() : whole.open();
      this.#bases = given.map(({ handle }) => fromHandle(handle, this.#line));
      this.reader.free();
      this.reader = whole;
      return places;
    } catch (error) {
      whole.free();
      throw error;
    }
  }

  /** @param {string} depth */
  begin(depth) {
    this.#stopped = new AbortController();
    this.#unhashed.clear();
    this.#isDecoding = depth === "objects";
    return this.reader.begin(/** @type {any} */ (depth));
  }

  /** Reads the next base chunk with contents of OSTree files whose checksums are new, and checks those. Returns whether more may be left. */
  async checkRenamed() {
    const { signal } = this.#stopped;
    const next = this.reader.nextRenamed();
    if (!next) return false;
    const [base, [offset, length]] = next;
    const stored = await this.#readBase(base, offset, length, signal);
    try {
      this.reader.checkRenamed(stored);
    } catch (error) {
      // A base that was valid a moment ago must not make the delta bundle look damaged.
      throw /** @type {any} */ (error).code === "chunk" ? ofBase(error) : error;
    }
    return true;
  }

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
    const { signal } = this.#stopped;
    const reading = given ?? this.#source?.read(offset, length, signal, came);
    const before = this.#turn;
    /** @type {() => void} */
    let done = () => {};
    this.#turn = new Promise((resolve) => (done = resolve));
    try {
      const bytes = await reading;
      await before;
      if (!bytes) throw new TypeError("there is nothing to read from");
      const found = [];
      const isOver = this.#isDecoding && this.#bases.length > 0;
      for (const part of parts(lengths, bytes.length, isOver ? 1 : TURN_BYTES)) {
        if (part.from > 0) await others();
        signal.throwIfAborted();
        const check = () => this.reader.check(first + part.chunk, bytes.subarray(part.from, part.end));
        found.push(isOver && part.end > part.from ? await this.#withPrefix(first + part.chunk, signal, check) : check());
      }
      if (isHashed) this.#unhashed.set(first, bytes);
      else if (!given) giveBack(bytes);
      return { found: joined(found), read: bytes.length };
    } finally {
      done();
    }
  }

  /**
   * Continues the SHA-256 of the file.
   * @param {number} first The first chunk of the `check` call.
   * @param {Uint8Array} state The state after the bytes before.
   */
  async hash(first, state) {
    const { signal } = this.#stopped;
    const bytes = this.#unhashed.get(first) ?? new Uint8Array(0);
    this.#unhashed.delete(first);
    const next = await this.#hashed(bytes, state, signal);
    giveBack(bytes);
    return next;
  }

  /** Begins the SHA-256 of the file. @param {Uint8Array} bytes The bytes before the chunks. */
  hashFirst(bytes) {
    return this.#hashed(bytes, new Uint8Array(0), this.#stopped.signal);
  }

  /** @param {Uint8Array} state */
  hashEnd(state) {
    return this.#ended(state);
  }

  /**
   * Returns the SHA-256 of these bytes, or of the whole file.
   * @param {Uint8Array | undefined} given
   */
  async sha256(given) {
    const { signal } = this.#stopped;
    /** @type {Uint8Array} */
    let state = new Uint8Array(0);
    // Independent of the check, which may have been stopped.
    if (given) return this.#ended(await this.#hashed(given, state, new AbortController().signal));
    if (!this.#source) throw new TypeError("there is nothing to read from");
    for (let offset = 0; ; ) {
      signal.throwIfAborted();
      const bytes = await this.#source.read(offset, TURN_BYTES * 4, signal);
      state = await this.#hashed(bytes, state, signal);
      offset += bytes.length;
      giveBack(bytes);
      if (bytes.length > 0 && offset !== this.#source.size) continue;
      rest();
      return this.#ended(state);
    }
  }

  /**
   * Returns the SHA-256 of each volume's file, and of the bundle that they are together. Both are of the same bytes, each of which is read once.
   * @param {import("../types.js").Volume[]} volumes All of them, in order.
   */
  async sha256OfVolumes(volumes) {
    const { signal } = this.#stopped;
    /** @type {Uint8Array} */
    let bundle = new Uint8Array(0);
    const files = [];
    for (const { file, number, sliceAt } of volumes) {
      const { read } = fromHandle({ blob: file });
      // What precedes the slice is the bundle's in volume 1, and a copy of it in the others.
      const own = number === 1 ? HEADER_BYTES : sliceAt;
      /** @type {Uint8Array} */
      let state = new Uint8Array(0);
      for (let offset = 0; offset < file.size; ) {
        const bytes = await read(offset, TURN_BYTES * 4, signal);
        if (bytes.length === 0) throw new SealiftError("changed", "a volume became shorter while it was read");
        state = await this.#hashed(bytes, state, signal);
        bundle = await this.#hashed(bytes.subarray(Math.max(0, own - offset)), bundle, signal);
        offset += bytes.length;
        giveBack(bytes);
      }
      files.push(this.#ended(state));
    }
    rest();
    return { sha256: this.#ended(bundle), files };
  }

  /**
   * Returns the bytes of the next part of a file of the bundle.
   * @param {Part} part
   * @param {Uint8Array | undefined} given Its stored bytes, if only the other thread can read them.
   */
  readPart(part, given) {
    return this.#contentOf(part, given);
  }

  /**
   * Begins writing to a file. A file in the page's own folder is written in place; another appears when it is complete.
   * @param {number} number
   * @param {any} handle
   * @param {boolean} isOwn
   */
  async beginWrite(number, handle, isOwn) {
    this.#written.set(number, isOwn ? direct(await handle.createSyncAccessHandle()) : await handle.createWritable());
  }

  /**
   * Writes the next part of a file of the bundle. It is read and written in this worker: buffers passed between threads pile up, since no
   * thread accounts for their memory.
   * @param {number} number
   * @param {Part} part
   * @param {Uint8Array | undefined} given Its stored bytes, if only the other thread can read them.
   */
  async writePart(number, part, given) {
    const to = this.#written.get(number);
    if (!to) throw new TypeError("there is nothing to write to");
    const stored = given ?? (await this.#storedOf(part));
    const bytes = await this.#contentOf(part, stored);
    const { length: count } = bytes;
    await to.write(bytes);
    if (!giveBack(stored)) release(stored.buffer);
    release(bytes.buffer);
    return count;
  }

  /**
   * @param {number} number
   * @param {boolean} isWhole
   */
  async endWrite(number, isWhole) {
    const to = this.#written.get(number);
    this.#written.delete(number);
    rest();
    await (isWhole ? to?.close() : to?.abort());
  }

  /**
   * Begins to look into a file of the bundle.
   * @param {number} number
   * @param {WebAssembly.Module} module
   * @param {number} length
   */
  beginInside(number, module, length) {
    this.#insides.set(number, new (instantiateInside(module).Inside)(length));
  }

  /**
   * Calls a function for a file that is looked into.
   * @param {number} number
   * @param {string} name
   * @param {unknown[]} args
   */
  inside(number, name, args) {
    return this.#insides.get(number)[name](...args);
  }

  /**
   * Gives it bytes that a call lacked.
   * @param {number} number
   * @param {number} offset
   * @param {Uint8Array} bytes
   */
  giveInside(number, offset, bytes) {
    this.#insides.get(number).give(offset, bytes);
  }

  /** @param {number} number */
  endInside(number) {
    this.#insides.delete(number);
  }

  /** Frees the buffers that were kept for the next read. */
  rest() {
    rest();
  }

  stop() {
    this.#stopped.abort();
  }

  /** Ends what still runs. The instance's memory is freed when nothing refers to it any more. */
  close() {
    this.stop();
    for (const to of this.#written.values()) Promise.resolve(to.abort()).catch(() => {});
  }

  /** @param {string} allowedSigners @param {any} options */
  checkPolicy(allowedSigners, options) {
    this.#wasm.checkPolicy(allowedSigners, options);
  }

  /**
   * @param {Uint8Array} bytes
   * @param {Uint8Array} state
   * @param {AbortSignal} signal
   */
  async #hashed(bytes, state, signal) {
    for (let at = 0; at < bytes.length; at += TURN_BYTES) {
      if (at > 0) await others();
      signal.throwIfAborted();
      state = this.#wasm.sha256(state, bytes.subarray(at, at + TURN_BYTES), false);
    }
    return state;
  }

  /**
   * Returns the digest in hexadecimal digits.
   * @param {Uint8Array} state
   */
  #ended(state) {
    return [...this.#wasm.sha256(state, new Uint8Array(0), true)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  }

  /** @param {Part} part */
  async #storedOf({ base, offset, length }) {
    const { signal } = new AbortController();
    const stored = base === undefined ? await this.#source?.read(offset, length) : await this.#readBase(base, offset, length, signal);
    if (!stored) throw new TypeError("there is nothing to read from");
    return stored;
  }

  /**
   * @param {Part} part
   * @param {Uint8Array} [given]
   * @returns {Promise<Uint8Array>}
   */
  async #contentOf(part, given) {
    const stored = given ?? (await this.#storedOf(part));
    const read = () => this.reader.contentPart(part.object, part.part, stored);
    return part.chunk === undefined || part.base !== undefined ? read() : this.#withPrefix(part.chunk, new AbortController().signal, read);
  }

  /**
   * Reads the parts of the bases that a chunk is decoded with, and then decodes it.
   * @template T
   * @param {number} chunk
   * @param {AbortSignal} signal
   * @param {() => T} decode
   * @returns {Promise<T>}
   */
  #withPrefix(chunk, signal, decode) {
    if (this.#bases.length === 0) return Promise.resolve().then(decode);
    const decoded = this.#prefixed.then(async () => {
      for (const [base, number, [offset, length]] of this.reader.beginPrefix(chunk)) {
        const stored = await this.#readBase(base, offset, length, signal);
        try {
          this.reader.fillPrefix(chunk, base, number, stored);
        } catch (error) {
          throw ofBase(error);
        }
      }
      return decode();
    });
    this.#prefixed = decoded.then(() => {}, () => {});
    return decoded;
  }

  /**
   * @param {number} base
   * @param {number} offset
   * @param {number} length
   * @param {AbortSignal} signal
   */
  async #readBase(base, offset, length, signal) {
    try {
      return await this.#bases[base].read(offset, length, signal);
    } catch (error) {
      signal.throwIfAborted();
      throw ofBase(error);
    }
  }
}

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
