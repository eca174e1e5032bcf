// The check of a bundle's chunks by workers, run by run.

import { until } from "./until.js";

/** The most bytes that a worker reads and checks at once, unless a chunk is longer. With fewer, the cost of each read would matter. */
const RUN_BYTES = 8 << 20;

/** Runs that each worker has at a time: it reads one while it checks the other. */
const RUNS_AHEAD = 2;

/** The most requests to a server at once. Browsers open no more connections to it: another request would wait for one, as if the server were silent. */
const REQUESTS = 6;

/**
 * @typedef {object} Run
 * @property {number} order Its number, in the order of the file.
 * @property {number} first Its first chunk.
 * @property {Uint32Array} lengths The stored bytes of each chunk.
 * @property {number} offset
 * @property {number} length
 * @property {boolean} own Whether the first worker has to check it.
 */

/**
 * Groups the chunks into runs, each of which is read at once.
 * @param {import("../pkg/sealift_wasm.js").Places} places
 * @param {Set<number>} own The chunks that the first worker must check.
 * @returns {Run[]}
 */
export function runsOf({ lengths, chunksAt }, own) {
  const runs = [];
  let offset = chunksAt;
  for (let first = 0; first < lengths.length; ) {
    const isOwn = own.has(first);
    let end = first + 1;
    let length = lengths[first];
    while (end < lengths.length && own.has(end) === isOwn && length + lengths[end] <= RUN_BYTES) length += lengths[end++];
    runs.push({ order: runs.length, first, lengths: lengths.slice(first, end), offset, length, own: isOwn });
    offset += length;
    first = end;
  }
  return runs;
}

/**
 * Returns how many runs may be read at once.
 * @param {import("./sources.js").Handle | undefined} handle
 */
export function mostReads(handle) {
  return handle && "url" in handle ? REQUESTS : Infinity;
}

/** One check of all runs, by several workers. Of several failures, the one that lies first in the file is thrown. */
export class RunCheck {
  /** Where the file ended, if that is before the end of the last run. @type {number | undefined} */
  endsAt;
  /** @type {{ order: number, error: unknown } | undefined} */
  #failure;
  #done = 0;
  /** Wakes the run of each number when it is its turn to be hashed. @type {Map<number, () => void>} */
  #waiting = new Map();
  #hashed = 0;
  /** Bytes that were read of runs that are not checked yet. @type {Map<Run, number>} */
  #coming = new Map();
  #turn = Promise.resolve();

  /**
   * @param {import("./opening.js").Opening} opening
   * @param {Promise<import("./threads.js").Thread>[]} threads Each begins to check when it is ready.
   * @param {Run[]} runs
   * @param {AbortSignal | undefined} signal
   * @param {(bytes: number) => void} report
   * @param {Uint8Array} [state] The state of the file's SHA-256 after the bytes before the chunks, if the digest is wanted.
   */
  constructor(opening, threads, runs, signal, report, state) {
    this.opening = opening;
    this.threads = threads;
    this.signal = signal;
    this.report = report;
    this.state = state;
    this.own = runs.filter((run) => run.own);
    this.any = runs.filter((run) => !run.own);
  }

  async run() {
    const stop = () => {
      for (const thread of this.threads) thread.then((ready) => ready.call("stop")).catch(() => {});
      for (const goOn of this.#waiting.values()) goOn();
    };
    this.signal?.addEventListener("abort", stop);
    try {
      const lanes = Array.from({ length: RUNS_AHEAD }, () => this.threads).flat();
      await Promise.all(lanes.slice(0, mostReads(this.opening.handle)).map((thread) => this.#lane(thread)));
    } finally {
      this.signal?.removeEventListener("abort", stop);
    }
    this.signal?.throwIfAborted();
    if (this.#failure) throw this.#failure.error;
  }

  /**
   * @param {Run} run
   * @param {number} bytes
   */
  #came(run, bytes) {
    this.#coming.set(run, bytes);
    this.#report();
  }

  #report() {
    let bytes = this.#done;
    for (const part of this.#coming.values()) bytes += part;
    this.report(bytes);
  }

  /** @param {Promise<import("./threads.js").Thread>} ready */
  async #lane(ready) {
    let thread;
    try {
      thread = await ready;
    } catch (error) {
      this.#fail({ order: -1 }, error);
      return;
    }
    for (;;) {
      const begun = await this.#begin(thread);
      if (!begun) return;
      try {
        const { found, read } = await begun.answer;
        if (found.length > 0) await this.opening.thread.call("take", [found], [found.buffer]);
        if (this.state) await this.#hash(thread, begun.run);
        this.#noteEnd(begun.run, read);
        this.#coming.delete(begun.run);
        this.#done += read;
        this.#report();
      } catch (error) {
        this.#fail(begun.run, error);
      }
    }
  }

  /**
   * Hashes a run in the worker that read it, once all runs before it are hashed: SHA-256 is sequential. Until then, this lane reads no other run.
   * @param {import("./threads.js").Thread} thread
   * @param {Run} run
   */
  async #hash(thread, { order, first }) {
    while (this.#hashed < order) {
      if (this.#failure || this.signal?.aborted) return;
      await new Promise((resolve) => this.#waiting.set(order, () => resolve(undefined)));
    }
    this.state = await thread.call("hash", [first, this.state]);
    this.#hashed = order + 1;
    this.#waiting.get(order + 1)?.();
  }

  /**
   * Begins the next run, and returns it with the promise of its result.
   * @param {import("./threads.js").Thread} thread
   * @returns {Promise<{ run: Run, answer: Promise<any> } | undefined>}
   */
  async #begin(thread) {
    if (this.opening.handle) {
      const run = this.#next(thread);
      return run && { run, answer: thread.call("check", [run.first, run.lengths, run.offset, run.length, undefined, Boolean(this.state)], [], (bytes) => this.#came(run, bytes)) };
    }
    // This thread reads for all workers, one run after the other, since the source may be a stream.
    const before = this.#turn;
    let done = () => {};
    this.#turn = new Promise((resolve) => (done = resolve));
    try {
      await before;
      return await this.#readNext(thread);
    } finally {
      done();
    }
  }

  /** @param {import("./threads.js").Thread} thread */
  async #readNext(thread) {
    const run = this.#next(thread);
    if (!run) return undefined;
    const { first, lengths, offset, length } = run;
    try {
      const bytes = await until(this.signal, this.opening.source.read(offset, length, this.signal));
      this.#noteEnd(run, bytes.length);
      return { run, answer: thread.call("check", [first, lengths, offset, length, bytes, Boolean(this.state)], [bytes.buffer]) };
    } catch (error) {
      this.#fail(run, error);
      return undefined;
    }
  }

  /**
   * Returns the next run for a worker. The first worker takes those that only it can check before others.
   * @param {import("./threads.js").Thread} thread
   */
  #next(thread) {
    const isOwn = thread === this.opening.thread && this.own.length > 0;
    // If all runs are hashed in order, one that lies much later in the file would only wait for those before it.
    const isNear = !this.state || this.any.length === 0 || this.own[0]?.order < this.any[0].order;
    const queue = isOwn && isNear ? this.own : this.any;
    const [run] = queue;
    const isLeft = run && !this.signal?.aborted && run.order < (this.#failure?.order ?? Infinity) && run.offset < (this.endsAt ?? Infinity);
    return isLeft ? queue.shift() : undefined;
  }

  /**
   * @param {Run} run
   * @param {number} read
   */
  #noteEnd({ offset, length }, read) {
    if (read < length) this.endsAt = Math.min(this.endsAt ?? Infinity, offset + read);
  }

  /**
   * @param {{ order: number }} run
   * @param {unknown} error
   */
  #fail({ order }, error) {
    if (order < (this.#failure?.order ?? Infinity)) this.#failure = { order, error };
    for (const goOn of this.#waiting.values()) goOn();
  }
}
