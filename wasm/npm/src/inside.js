// Looks into the images, archives and compressed files of a bundle, by a module of its own that is loaded only then.

import { codeInside } from "./threads.js";

/** @typedef {import("../types.js").InnerEntry} InnerEntry */
/** @typedef {(offset: number, length: number) => Promise<Uint8Array>} Read Reads checked bytes of a file of the bundle. */

/** Bytes that are read at once if fewer are needed: a chunk holds as many, and is checked as a whole. */
const WINDOW = 1 << 20;

/** The most bytes of a file in a container that are passed at once. */
const PORTION = 4 << 20;

/** A call is repeated with the bytes that it lacked. What it can use at once ends sooner than this. */
const ROUNDS = 4096;

/** The number of the last file that was looked into, whatever its bundle. */
let last = 0;

/**
 * Opens a file as a container.
 * @param {import("./threads.js").Thread} thread
 * @param {number} size
 * @param {Read} read
 * @param {string | URL | undefined} insideUrl
 * @param {AbortSignal | undefined} signal
 */
export async function lookInto(thread, size, read, insideUrl, signal) {
  const module = await codeInside(insideUrl);
  const file = new LookedInto(thread, read);
  await thread.call("beginInside", [file.number, module, size]);
  const found = await file.open([], signal);
  if (!(found instanceof Container)) await thread.call("endInside", [file.number]);
  return found;
}

/** A file of a bundle, and how its containers are asked. */
class LookedInto {
  number = (last += 1);
  #thread;
  #read;
  /** What was read last. @type {{ offset: number, bytes: Uint8Array }} */
  #window = { offset: 0, bytes: new Uint8Array(0) };
  /** Calls follow each other: each may be repeated. @type {Promise<unknown>} */
  #turn = Promise.resolve();

  /**
   * @param {import("./threads.js").Thread} thread
   * @param {Read} read
   */
  constructor(thread, read) {
    this.#thread = thread;
    this.#read = read;
  }

  /**
   * Calls a function of the module, as often as it lacks bytes.
   * @param {string} name
   * @param {unknown[]} args
   * @param {AbortSignal} [signal]
   * @returns {Promise<any>}
   */
  call(name, args, signal) {
    const run = this.#turn.then(() => this.#repeated(name, args, signal));
    this.#turn = run.catch(() => {});
    return run;
  }

  /**
   * @param {[container?: number, file?: number]} of
   * @param {AbortSignal} [signal]
   * @returns {Promise<Container | import("../types.js").Opaque | undefined>}
   */
  async open(of, signal) {
    const { container, kind, entries, opaque } = await this.call("open", of, signal);
    if (opaque !== undefined) return { opaque };
    return container === undefined ? undefined : new Container(this, container, kind, entries);
  }

  /**
   * @param {string} name
   * @param {unknown[]} args
   * @param {AbortSignal} [signal]
   */
  async #repeated(name, args, signal) {
    for (let round = 0; round < ROUNDS; round += 1) {
      signal?.throwIfAborted();
      const found = await this.#thread.call("inside", [this.number, name, args]);
      if (!found.need) return found;
      const [offset, length] = found.need;
      const bytes = await this.#bytes(offset, length);
      await this.#thread.call("giveInside", [this.number, offset, bytes], [bytes.buffer]);
    }
    throw new Error("it needs bytes over and over");
  }

  /**
   * Returns a copy of checked bytes.
   * @param {number} offset
   * @param {number} length
   */
  async #bytes(offset, length) {
    const { offset: start, bytes } = this.#window;
    if (offset < start || offset + length > start + bytes.length) {
      const from = Math.floor(offset / WINDOW) * WINDOW;
      const end = Math.ceil((offset + length) / WINDOW) * WINDOW;
      this.#window = { offset: from, bytes: await this.#read(from, end - from) };
    }
    const at = offset - this.#window.offset;
    return this.#window.bytes.slice(at, at + length);
  }
}

/** A container in a bundle. */
export class Container {
  #file;
  #number;

  /**
   * @param {LookedInto} file
   * @param {number} number
   * @param {string} kind
   * @param {number} entries
   */
  constructor(file, number, kind, entries) {
    this.#file = file;
    this.#number = number;
    this.kind = kind;
    this.entries = entries;
  }

  /**
   * Returns entries of a directory; the root is directory 0.
   * @param {number} [directory]
   * @param {number} [from]
   * @param {number} [count]
   * @returns {Promise<InnerEntry[]>}
   */
  children(directory = 0, from = 0, count = 0xffffffff) {
    return this.#file.call("children", [this.#number, directory, from, count]);
  }

  /**
   * Returns bytes of a file, fewer if it ends before.
   * @param {InnerEntry} entry
   * @param {number} offset
   * @param {number} length
   * @param {AbortSignal} [signal]
   * @returns {Promise<Uint8Array>}
   */
  async read({ file }, offset, length, signal) {
    const parts = [];
    for (let at = 0; at < length; ) {
      const { bytes, opaque } = await this.#file.call("read", [this.#number, file, offset + at, Math.min(length - at, PORTION)], signal);
      if (opaque !== undefined) throw new Error(opaque);
      if (bytes.length === 0) break;
      parts.push(bytes);
      at += bytes.length;
    }
    return parts.length === 1 ? parts[0] : new Uint8Array(await new Blob(parts).arrayBuffer());
  }

  /**
   * Opens a file.
   * @param {InnerEntry} entry
   * @param {AbortSignal} [signal]
   * @returns {Promise<ReadableStream<Uint8Array>>}
   */
  async open(entry, signal) {
    let at = 0;
    return new ReadableStream({
      pull: async (controller) => {
        const bytes = await this.read(entry, at, PORTION, signal);
        at += bytes.length;
        if (bytes.length > 0) controller.enqueue(bytes);
        if (bytes.length < PORTION) controller.close();
      },
    }, { highWaterMark: 0 });
  }

  /**
   * Writes a file to a handle.
   * @param {InnerEntry} entry
   * @param {any} handle
   * @param {import("../types.js").WriteOptions} [options]
   */
  async write(entry, handle, { signal, onPart } = {}) {
    const out = await handle.createWritable();
    try {
      for (let at = 0; ; ) {
        const bytes = await this.read(entry, at, PORTION, signal);
        if (bytes.length === 0) break;
        await out.write(bytes);
        at += bytes.length;
        onPart?.(bytes.length);
      }
    } catch (error) {
      await out.abort();
      throw error;
    }
    await out.close();
  }

  /**
   * Opens a file in this container as a container.
   * @param {InnerEntry} entry
   * @param {{ signal?: AbortSignal }} [options]
   */
  async inside({ file }, { signal } = {}) {
    return file === undefined ? undefined : this.#file.open([this.#number, file], signal);
  }
}
