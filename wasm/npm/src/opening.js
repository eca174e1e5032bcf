// The parts of a bundle before its chunks.

import { NotSent, Thread } from "./threads.js";
import { until } from "./until.js";

/** The most bytes that are read at once. */
const STEP_BYTES = 8 << 20;

/** The fewest bytes that are read at once from a random-access source: one read of them brings the head of most bundles. */
const AHEAD_BYTES = 1 << 18;

/** The first bytes of a bundle. */
export const MAGIC = [0x89, 0x53, 0x4c, 0x46, 0x54, 0x0d, 0x0a, 0x1a];

/** @typedef {import("../types.js").Places} Places */

/**
 * Whether these bytes are the beginning of a bundle.
 * @param {Uint8Array} first
 */
export function startsAsBundle(first) {
  return MAGIC.every((byte, at) => first[at] === byte);
}

/**
 * Starts the worker that keeps the bundle. Not every Blob can be sent to a worker: in Node, one that stands for a file cannot.
 * @param {import("./sources.js").Source} source
 * @param {Places} places
 * @param {number} [memory]
 * @param {import("./line.js").Line} [line]
 */
export async function startFirst(source, places, memory, line) {
  try {
    return { worker: await Thread.start(places, { handle: source.handle, size: source.size, memory, line }), handle: source.handle };
  } catch (error) {
    if (!source.handle || !(error instanceof NotSent)) throw error;
    return { worker: await Thread.start(places, { size: source.size, memory }), handle: undefined };
  }
}

/** Reads the parts before the chunks into the first worker. */
export class Opening {
  /** The bytes read so far, which the other workers get as well. @type {Uint8Array[]} */
  #parts = [];
  /** @type {{ at: number, bytes: Uint8Array }} */
  #ahead = { at: 0, bytes: new Uint8Array(0) };

  /**
   * @param {import("./sources.js").Source} source
   * @param {Thread} thread
   * @param {import("./sources.js").Handle | undefined} handle With which workers open the source themselves.
   * @param {Places} places
   * @param {import("./line.js").Line} line
   * @param {AbortSignal} [signal]
   */
  constructor(source, thread, handle, places, line, signal) {
    this.source = source;
    this.thread = thread;
    this.handle = handle;
    this.places = places;
    this.line = line;
    this.signal = signal;
  }

  async readHead() {
    for (;;) {
      const head = await this.thread.call("head");
      if (head) return head;
      if (!(await this.#step())) await this.thread.call("open");
    }
  }

  async readRest() {
    while (await this.#step());
    return this.thread.call("open");
  }

  /** Gives the reader the next bytes that it needs. Returns false if it needs none, or if the file has ended. */
  async #step() {
    const { need } = await this.thread.call("next");
    if (!need) return false;
    const bytes = await this.#read(need[0], Math.min(need[1], STEP_BYTES));
    if (bytes.length === 0) return false;
    this.#parts.push(bytes);
    await this.thread.call("supply", [need[0], bytes]);
    return true;
  }

  /**
   * @param {number} offset
   * @param {number} length
   */
  async #read(offset, length) {
    const { source, signal } = this;
    if (source.inOrder) return until(signal, source.read(offset, length, signal));
    const { at, bytes } = this.#ahead;
    if (offset < at || offset + length > at + bytes.length) {
      this.#ahead = { at: offset, bytes: await until(signal, source.read(offset, Math.max(length, AHEAD_BYTES), signal)) };
    }
    const start = offset - this.#ahead.at;
    return this.#ahead.bytes.slice(start, start + length);
  }

  /** Whether the file does not begin like a bundle. */
  get isForeign() {
    const first = this.#parts.at(0)?.subarray(0, MAGIC.length) ?? [];
    return first.some((byte, at) => byte !== MAGIC[at]);
  }

  /** Returns the bytes before the chunks. */
  bytes() {
    const whole = new Uint8Array(this.#parts.reduce((sum, part) => sum + part.length, 0));
    let at = 0;
    for (const part of this.#parts) {
      whole.set(part, at);
      at += part.length;
    }
    return whole;
  }
}
