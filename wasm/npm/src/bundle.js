// A bundle that was opened, and its check by workers.

import { SealiftError } from "./errors.js";
import { kindOf, openSource } from "./sources.js";
import { cores, NotSent, Thread } from "./threads.js";

/** Bytes that a worker reads and checks at once, unless a chunk is longer: below, the cost of each read counts. */
const RUN_BYTES = 8 << 20;

/** Bytes that are read beyond what opening asks for, so that the heads of most bundles come with one read. */
const AHEAD_BYTES = 1 << 18;

/** Memory for the readers of all workers. */
const MEMORY_BYTES = 256 << 20;

/** Runs that are with a worker at a time: it reads one while it checks the other. */
const RUNS_AHEAD = 2;

/** The first bytes of a bundle. */
export const MAGIC = [0x89, 0x53, 0x4c, 0x46, 0x54, 0x0d, 0x0a, 0x1a];

/** Objects in one chunk, on the average, of which the check takes so long that nothing else is to wait for it. */
const LONG_CHUNK = 1000;

/** @typedef {{ wasmUrl?: string | URL, workerUrl?: string | URL }} Places Where the package's parts lie. */

/** @typedef {{ bytes: Uint8Array, handle: import("./sources.js").Handle, digests: Uint8Array }} AsBase The bytes before the chunks, the file, and what the check found. */

/**
 * @typedef {object} Run
 * @property {number} order Its place in the file.
 * @property {number} first Its first chunk.
 * @property {Uint32Array} lengths The stored bytes of each chunk.
 * @property {number} offset
 * @property {number} length
 * @property {boolean} own Whether the first worker has to check it.
 */

/**
 * Opens a bundle: head, layout and index, each of which is checked before it is read. Whether anybody vouches for it says its `verdict`.
 * @param {import("../types.js").BundleSource} source
 * @param {import("../types.js").OpenOptions} [options]
 */
export async function openBundle(source, options = {}) {
  return open(source, options, () => {});
}

/**
 * Checks a bundle's signatures and every byte, as `sealift verify` does.
 * @param {import("../types.js").BundleSource} source
 * @param {import("../types.js").OpenOptions & import("../types.js").VerifyOptions} [options]
 */
export async function verify(source, options = {}) {
  const bundle = await open(source, options, refuse);
  try {
    return await bundle.verify(options);
  } finally {
    bundle.close();
  }
}

/** @param {import("../types.js").Verdict} verdict */
function refuse({ error }) {
  if (error) throw new SealiftError(error.code, error.message);
}

/**
 * @param {import("../types.js").BundleSource} given
 * @param {import("../types.js").OpenOptions} options
 * @param {(verdict: import("../types.js").Verdict) => void} judged
 */
async function open(given, options, judged) {
  const { signal, onHead, wasmUrl, workerUrl, memory, ...policy } = known(options);
  const places = { wasmUrl, workerUrl };
  signal?.throwIfAborted();
  const source = await until(signal, openSource(given, signal));
  /** @type {Thread | undefined} */
  let thread;
  /** @type {Opening | undefined} */
  let opening;
  try {
    const { worker, handle } = await startFirst(source, places, memory);
    thread = worker;
    opening = new Opening(source, thread, handle, places, signal);
    const head = await opening.readHead();
    const verdict = await thread.call("judge", judgement(policy));
    onHead?.(head, verdict);
    judged(verdict);
    const layout = await opening.readRest();
    return new Bundle(opening, head, verdict, layout, policy, memory);
  } catch (error) {
    thread?.close();
    source.close?.();
    signal?.throwIfAborted();
    if (error instanceof SealiftError && error.code === "header") error.isForeign = opening?.isForeign ?? false;
    throw error;
  }
}

/**
 * Whether these bytes are the beginning of a bundle.
 * @param {Uint8Array} first
 */
export function startsAsBundle(first) {
  return MAGIC.every((byte, at) => first[at] === byte);
}

/**
 * SHA-256 of a file of which nothing else is known, read by a worker of its own.
 * @param {Blob} blob
 * @param {Places} places
 * @param {AbortSignal} signal
 * @returns {Promise<string>}
 */
export async function digestOf(blob, places, signal) {
  const { handle, size } = await openSource(blob);
  const thread = await Thread.start(handle, size, places);
  try {
    return await until(signal, thread.call("sha256", [undefined]));
  } finally {
    thread.close();
  }
}

const OPEN_OPTIONS = ["allowedSigners", "now", "threshold", "compatible", "revoked", "floor", "allowUnsigned", "allowDowngrade"];
const OTHER_OPTIONS = ["signal", "onHead", "deep", "base", "sha256", "onProgress", "jobs", "memory", "wasmUrl", "workerUrl"];

/**
 * A name that is mistyped would be another policy.
 * @param {import("../types.js").OpenOptions & import("../types.js").VerifyOptions} options
 */
function known(options) {
  const all = [...OPEN_OPTIONS, ...OTHER_OPTIONS];
  for (const name of Object.keys(options)) {
    if (!all.includes(name)) throw new TypeError(`there is no option ${JSON.stringify(name)}; there are ${all.join(", ")}`);
  }
  return options;
}

/** @param {import("../types.js").Policy} options */
function judgement(options) {
  const { allowedSigners = "", ...rest } = options;
  const policy = Object.entries(rest).filter(([name, value]) => OPEN_OPTIONS.includes(name) && value !== undefined);
  return [textOf(allowedSigners), Object.fromEntries(policy)];
}

/** @param {string | Uint8Array} signers */
function textOf(signers) {
  if (typeof signers === "string") return signers;
  if (signers instanceof Uint8Array) return new TextDecoder("utf-8", { ignoreBOM: true }).decode(signers);
  throw new TypeError(`allowedSigners is the file's text, as a string or a Uint8Array; this is ${kindOf(signers)}`);
}

/**
 * The worker that keeps the bundle. Not every Blob can be given to one: Node's that are files cannot.
 * @param {import("./sources.js").Source} source
 * @param {Places} places
 * @param {number} [memory]
 */
async function startFirst(source, places, memory) {
  try {
    return { worker: await Thread.start(source.handle, source.size, places, memory), handle: source.handle };
  } catch (error) {
    if (!source.handle || !(error instanceof NotSent)) throw error;
    return { worker: await Thread.start(undefined, source.size, places, memory), handle: undefined };
  }
}

/** The parts before the chunks, on their way into the first worker. */
class Opening {
  /** What the other workers get, too. @type {Uint8Array[]} */
  #parts = [];
  /** @type {{ at: number, bytes: Uint8Array }} */
  #ahead = { at: 0, bytes: new Uint8Array(0) };

  /**
   * @param {import("./sources.js").Source} source
   * @param {Thread} thread
   * @param {import("./sources.js").Handle | undefined} handle By which workers read for themselves.
   * @param {Places} places
   * @param {AbortSignal} [signal]
   */
  constructor(source, thread, handle, places, signal) {
    this.source = source;
    this.thread = thread;
    this.handle = handle;
    this.places = places;
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

  /** Gives the reader what it needs; false if that is nothing, or the file has ended. */
  async #step() {
    const { need } = await this.thread.call("next");
    if (!need) return false;
    const bytes = await this.#read(need[0], Math.min(need[1], RUN_BYTES));
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

  /** Whether the file begins otherwise than a bundle. */
  get isForeign() {
    return this.#parts.length > 0 && !startsAsBundle(this.#parts[0]);
  }

  /** The bytes before the chunks. */
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

/** An open bundle. Its first worker keeps index and layout. */
export class Bundle {
  /** @type {Opening} */
  #opening;
  #places;
  /** The policy as of the opening. */
  #policy;
  #memory;
  /** @type {Thread[]} */
  #others = [];
  #checking = false;
  /** Files that were begun to be written. */
  #writes = 0;
  /** In memory, where workers cannot open the source. @type {Promise<import("./sources.js").Handle> | undefined} */
  #copy;
  /** Of a delta bundle that was completed, by what a worker opens its bases. @type {AsBase[]} */
  #bases = [];

  /**
   * @param {Opening} opening
   * @param {import("../types.js").Head} head
   * @param {import("../types.js").Verdict} verdict
   * @param {import("../pkg/sealift_wasm.js").Places} places
   * @param {import("../types.js").Policy} policy
   * @param {number} [memory]
   */
  constructor(opening, head, verdict, places, policy, memory) {
    this.#opening = opening;
    this.#places = places;
    this.#policy = policy;
    this.#memory = memory;
    this.head = head;
    this.verdict = verdict;
    /** Whether files can be opened. */
    this.isSeekable = !opening.source.inOrder;
    /** Where each chunk begins, and where the last one ends. */
    this.chunkOffsets = new Float64Array(places.lengths.length + 1);
    places.lengths.forEach((length, at) => (this.chunkOffsets[at + 1] = this.chunkOffsets[at] + length));
  }

  /**
   * Judges the bundle anew; what is left out is as of the opening.
   * @param {import("../types.js").Policy} options
   */
  async judge(options) {
    this.#policy = { ...this.#policy, ...known(options) };
    this.verdict = await this.#keeper.call("judge", judgement(this.#policy));
    return this.verdict;
  }

  /**
   * Checks every byte, and if it is to be deep what the chunks hold as well.
   * @param {import("../types.js").VerifyOptions} [options]
   * @returns {Promise<import("../types.js").Verified>}
   */
  async verify(options = {}) {
    if (this.#checking) throw new TypeError("this bundle is being checked already");
    this.#checking = true;
    const { deep = false, sha256: isHashed = false, signal, onProgress } = options;
    // There is no other class of them.
    const given = /** @type {Bundle[]} */ (/** @type {unknown[]} */ ([options.base ?? []].flat()));
    const start = performance.now();
    const passed = () => (performance.now() - start) / 1000;
    let before = 0;
    const bytesTotal = given.reduce((sum, { head }) => sum + head.chunksBytes, this.head.chunksBytes);
    const report = (/** @type {number} */ bytes) => onProgress?.({ phase: "verifying", bytes: before + bytes, bytesTotal, seconds: passed() });
    try {
      signal?.throwIfAborted();
      report(0);
      const depth = deep || given.length > 0 ? "objects" : "stored";
      const bases = given.length > 0 ? this.#inOrder(given) : [];
      for (const base of bases) {
        await this.#checkBase(base, { ...options, onProgress: ({ bytes }) => report(bytes) });
        before += base.head.chunksBytes;
      }
      if (bases.length > 0) await this.#complete(bases);
      const own = new Set(/** @type {Uint32Array} */ (await this.#keeper.call("begin", [depth])));
      const runs = [...this.#runs(own)];
      // A stream has one order, and so have those chunks that one worker has to see.
      const inTurn = this.#opening.source.inOrder && own.size > 0;
      const isLong = depth === "objects" && own.size === 0 && this.head.objects > LONG_CHUNK * this.head.chunks;
      const threads = inTurn ? [this.#keeper] : await this.#team(options, runs.length, isLong);
      await Promise.all(threads.filter((thread) => thread !== this.#keeper).map(async (thread) => {
        if (this.#bases.length > 0 && depth === "objects") await thread.call("rebase", [this.#opening.bytes(), this.#bases]);
        await thread.call("begin", [depth]);
      }));
      const state = isHashed ? await this.#keeper.call("hashFirst", [this.#opening.bytes()]) : undefined;
      const check = new RunCheck(this.#opening, threads, runs, signal, report, state);
      await check.run();
      while (await this.#keeper.call("checkBare")) signal?.throwIfAborted();
      if (depth === "objects") while (await this.#keeper.call("checkRenamed")) signal?.throwIfAborted();
      const summary = await this.#keeper.call("finish", [await this.#length(check, signal)]);
      report(this.head.chunksBytes);
      const { head, verdict } = this;
      const sha256 = check.state && (await this.#keeper.call("hashEnd", [check.state]));
      return { head, verdict, summary, deep: depth !== "stored", bases: bases.length > 0 ? bases.map(({ head }) => head) : undefined, sha256, seconds: passed() };
    } catch (error) {
      if (this.#bases.length > 0 && error instanceof SealiftError && error.code === "base") await this.#leaveBases();
      signal?.throwIfAborted();
      throw error;
    } finally {
      this.#checking = false;
      // They have nothing more to do, and memory.
      for (const thread of this.#others) thread.close();
      this.#others = [];
    }
  }

  /** Whether this is a bundle whose files can be listed: a delta bundle is one once it was completed with its bases. */
  get isWhole() {
    return !this.head.delta || this.#bases.length > 0;
  }

  /**
   * The bases that the root names, in its order. What else was given is not one.
   * @param {Bundle[]} given
   */
  #inOrder(given) {
    const wanted = this.head.delta?.bases ?? [];
    const isWanted = (/** @type {Bundle} */ { head }) => wanted.some(({ indexDigest }) => indexDigest === head.indexDigest);
    const other = given.find((bundle) => !isWanted(bundle));
    if (other) throw ofBase(new TypeError(`the bundle is no delta of ${other.head.name} version ${other.head.version}`));
    return wanted.map(({ name, version, indexDigest }) => {
      const found = given.find(({ head }) => !head.delta && head.indexDigest === indexDigest);
      if (!found) throw ofBase(new TypeError(`the bundle needs ${name ? `${name} version ${version}` : `a base with the index ${indexDigest}`} as well`));
      return found;
    });
  }

  /**
   * Checks a base of a delta bundle. Whatever is wrong with it says nothing of this bundle.
   * @param {Bundle} base
   * @param {import("../types.js").VerifyOptions} options
   */
  async #checkBase(base, { signal, jobs, memory, onProgress }) {
    try {
      await base.#asBase();
      await base.verify({ deep: true, signal, jobs, memory, onProgress });
    } catch (error) {
      signal?.throwIfAborted();
      throw ofBase(error);
    }
  }

  /**
   * Makes the full bundle that this one is with its bases, in the first worker.
   * @param {Bundle[]} bases
   */
  async #complete(bases) {
    const given = await Promise.all(bases.map(async (base) => ({ ...(await base.#asBase()), digests: await base.#keeper.call("digests") })));
    const places = await this.#keeper.call("rebase", [this.#opening.bytes(), given]);
    // What a reader takes, bases included. Only the first one needs the digests.
    this.#places = { ...this.#places, memory: places.memory };
    this.#bases = given.map((base) => ({ ...base, digests: new Uint8Array(0) }));
  }

  /** A base is not what it was: without it, this is a delta as before. */
  async #leaveBases() {
    this.#bases = [];
    this.#places = await this.#keeper.call("rebase", [this.#opening.bytes(), []]);
  }

  /**
   * SHA-256 of bytes, in hexadecimal digits.
   * @param {Uint8Array} bytes
   * @returns {Promise<string>}
   */
  sha256(bytes) {
    return this.#keeper.call("sha256", [bytes]);
  }

  /** By what a worker of a delta bundle opens this one. */
  async #asBase() {
    const { source, handle = await (this.#copy ??= source.copy?.()) } = this.#opening;
    if (!handle) throw new TypeError("a base is read by workers: it is a Blob, a Uint8Array, an address or a path, and no stream");
    return { bytes: this.#opening.bytes(), handle };
  }

  /**
   * The files that damage hits.
   * @param {import("../types.js").Place} place As an error of `verify` has it.
   * @param {number} [limit]
   * @returns {Promise<import("../types.js").Damage>}
   */
  hit({ chunk, object }, limit = 10) {
    return this.#keeper.call("hit", [chunk, object, limit]);
  }

  /** The named trees. @returns {Promise<import("../types.js").Ref[]>} */
  refs() {
    return this.#keeper.call("refs");
  }

  /**
   * Entries of a directory, by the number that a ref or an entry has for it.
   * @param {number} directory
   * @param {number} [from]
   * @param {number} [count]
   * @returns {Promise<import("../types.js").Entry[]>}
   */
  children(directory, from = 0, count = 0xffffffff) {
    return this.#keeper.call("children", [directory, from, count]);
  }

  /**
   * Entries by their numbers.
   * @param {ArrayLike<number>} numbers
   * @returns {Promise<import("../types.js").Entry[]>}
   */
  entries(numbers) {
    return this.#keeper.call("entries", [Uint32Array.from(numbers)]);
  }

  /**
   * The numbers of the entries with this text in their names; where it has a slash, in their paths.
   * @param {string} text
   * @returns {Promise<Uint32Array>}
   */
  search(text) {
    return this.#keeper.call("search", [text]);
  }

  /** What a delta bundle says of names. @returns {Promise<import("../types.js").Edit[]>} */
  edits() {
    return this.#keeper.call("edits");
  }

  /** What a delta bundle changes without naming it. @returns {Promise<import("../types.js").Unlisted | undefined>} */
  unlisted() {
    return this.#keeper.call("unlisted");
  }

  /**
   * What a delta bundle changes of its first base, once it was completed.
   * @param {number} [limit]
   * @returns {Promise<import("../types.js").Comparison>}
   */
  changes(limit = 10_000) {
    return this.#keeper.call("changes", [limit]);
  }

  /**
   * What this bundle changes of an older one.
   * @param {Bundle} older
   * @param {number} [limit]
   * @returns {Promise<import("../types.js").Comparison>}
   */
  compare(older, limit = 10_000) {
    return this.#keeper.call("compare", [older.#opening.bytes(), limit]);
  }

  /** What lies where in the file. @param {number} columns @returns {Promise<import("../types.js").Picture>} */
  async picture(columns) {
    const { classes, saved, largest } = await this.#keeper.call("picture");
    return { ...shares(classes, this.chunkOffsets, columns), saved, largest };
  }

  /**
   * Opens a file: the chunks that hold it are read, and no others. Only bytes that were checked come, and only of a bundle that may be used.
   * @param {string | Uint8Array | import("../types.js").Entry} what `[REF:]PATH`, or an entry.
   * @returns {Promise<ReadableStream<Uint8Array>>}
   */
  async open(what) {
    const { source } = this.#opening;
    const parts = await this.#parts(what);
    let next = 0;
    return new ReadableStream({
      pull: async (controller) => {
        const part = parts[next];
        // A base is read where its reader is.
        const given = part.base === undefined ? await source.read(part.offset, part.length) : undefined;
        const bytes = await this.#keeper.call("readPart", [part, given], given && [given.buffer]);
        next += 1;
        if (bytes.length > 0) controller.enqueue(bytes);
        if (next === parts.length) controller.close();
      },
    }, { highWaterMark: 0 });
  }

  /**
   * Writes a file to where a handle leads, part by part and by a worker: what does not pass through the page takes no memory there.
   * @param {import("../types.js").Entry} entry
   * @param {import("../types.js").FileHandleOfPage} handle
   * @param {import("../types.js").WriteOptions} [options]
   */
  async write(entry, handle, { isOwn = false, signal, onPart } = {}) {
    const { source, handle: own } = this.#opening;
    const parts = await this.#parts(entry);
    const number = (this.#writes += 1);
    await this.#keeper.call("beginWrite", [number, handle, isOwn]);
    let isWhole = false;
    try {
      for (const part of parts) {
        signal?.throwIfAborted();
        const given = own || part.base !== undefined ? undefined : await source.read(part.offset, part.length, signal);
        onPart?.(await this.#keeper.call("writePart", [number, part, given], given && [given.buffer]));
      }
      signal?.throwIfAborted();
      isWhole = true;
    } finally {
      await this.#keeper.call("endWrite", [number, isWhole]);
    }
  }

  /**
   * Where a file lies, of a bundle that may be used.
   * @param {string | Uint8Array | import("../types.js").Entry} what
   * @returns {Promise<{ object: number, part: number, chunk?: number, base?: number, offset: number, length: number }[]>}
   */
  async #parts(what) {
    refuse(this.verdict);
    if (this.#opening.source.inOrder) throw new TypeError("it came as a stream, from which nothing can be read again: open the file itself");
    const path = typeof what === "string" ? new TextEncoder().encode(what) : what;
    const entry = path instanceof Uint8Array ? await this.#keeper.call("find", [path]) : path.entry;
    /** @type {import("../pkg/sealift_wasm.js").Content} */
    const { object, parts, chunks, base } = await this.#keeper.call("content", [entry]);
    return parts.map(([offset, length], part) => ({ object, part, chunk: chunks[part], base, offset, length }));
  }

  /** Ends the workers. */
  close() {
    for (const thread of [this.#keeper, ...this.#others]) thread.close();
    this.#others = [];
    this.#opening.source.close?.();
  }

  get #keeper() {
    return this.#opening.thread;
  }

  /**
   * As many workers as there are cores, memory and work for: the first one and others, or where there is memory only others, so that the
   * first one answers what it is asked meanwhile.
   * @param {import("../types.js").VerifyOptions} options
   * @param {number} runs
   * @param {boolean} isLong A chunk takes long.
   */
  async #team({ jobs, memory = this.#memory ?? MEMORY_BYTES }, runs, isLong) {
    const room = Math.floor(memory / this.#places.memory);
    const wanted = Math.max(1, Math.min(jobs ?? (await cores()), room, runs));
    const { handle, source, places } = this.#opening;
    const started = [];
    const first = isLong && runs > 0 && room > wanted ? [] : [this.#keeper];
    while (this.#others.length + started.length + first.length < wanted) started.push(Thread.start(handle, source.size, places, this.#memory));
    const fresh = await Promise.all(started);
    this.#others.push(...fresh);
    await Promise.all(fresh.map((thread) => thread.call("follow", [this.#opening.bytes()])));
    return [...first, ...this.#others.slice(0, wanted - first.length)];
  }

  /**
   * The chunks in runs, each of which is read at once.
   * @param {Set<number>} own The chunks that the first worker is to check.
   * @returns {Iterable<Run>}
   */
  *#runs(own) {
    const { lengths, chunksAt } = this.#places;
    let order = 0;
    for (let first = 0; first < lengths.length; order += 1) {
      const isOwn = own.has(first);
      let end = first + 1;
      let length = lengths[first];
      while (end < lengths.length && own.has(end) === isOwn && length + lengths[end] <= RUN_BYTES) length += lengths[end++];
      yield { order, first, lengths: lengths.slice(first, end), offset: chunksAt + this.chunkOffsets[first], length, own: isOwn };
      first = end;
    }
  }

  /**
   * Bytes of the file, or one more than there are to be.
   * @param {RunCheck} check
   * @param {AbortSignal} [signal]
   */
  async #length(check, signal) {
    const { source } = this.#opening;
    if (check.endsAt !== undefined) return check.endsAt;
    if (source.size !== undefined) return source.size;
    const more = await until(signal, source.read(this.#places.fileBytes, 1, signal));
    return this.#places.fileBytes + more.length;
  }
}

/** One check of all runs, by several workers. The failure that lies first in the file is the one that counts. */
class RunCheck {
  /** Where the file ended, before the last run did. @type {number | undefined} */
  endsAt;
  /** @type {{ order: number, error: unknown } | undefined} */
  #failure;
  #done = 0;
  /** What waits for the run of this place in the file to be hashed. @type {Map<number, () => void>} */
  #waiting = new Map();
  #hashed = 0;
  /** What was read of runs that are not checked yet. @type {Map<Run, number>} */
  #coming = new Map();
  #turn = Promise.resolve();

  /**
   * @param {Opening} opening
   * @param {Thread[]} threads
   * @param {Run[]} runs
   * @param {AbortSignal | undefined} signal
   * @param {(bytes: number) => void} report
   * @param {Uint8Array} [state] Of the file's SHA-256, where that is wanted: what is known of the bytes before the chunks.
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
      this.threads.forEach((thread) => void thread.call("stop").catch(() => {}));
      for (const goOn of this.#waiting.values()) goOn();
    };
    this.signal?.addEventListener("abort", stop);
    try {
      await Promise.all(this.threads.flatMap((thread) => Array.from({ length: RUNS_AHEAD }, () => this.#lane(thread))));
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

  /** @param {Thread} thread */
  async #lane(thread) {
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
   * Hashes a run where it was read, when its turn has come: SHA-256 has one order. Until then no other is read in its place.
   * @param {Thread} thread
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
   * Begins the next run, and says what comes of it.
   * @param {Thread} thread
   * @returns {Promise<{ run: Run, answer: Promise<any> } | undefined>}
   */
  async #begin(thread) {
    if (this.opening.handle) {
      const run = this.#next(thread);
      return run && { run, answer: thread.call("check", [run.first, run.lengths, run.offset, run.length, undefined, Boolean(this.state)], [], (bytes) => this.#came(run, bytes)) };
    }
    // This thread reads for all workers: one run after the other, as a stream gives them.
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

  /** @param {Thread} thread */
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
   * The next run for a worker. Those that only the first one can check go before the others there.
   * @param {Thread} thread
   */
  #next(thread) {
    const isOwn = thread === this.opening.thread && this.own.length > 0;
    // Where all are hashed in their order, one that is far behind would wait for those before it.
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
   * @param {Run} run
   * @param {unknown} error
   */
  #fail({ order }, error) {
    if (order < (this.#failure?.order ?? Infinity)) this.#failure = { order, error };
    for (const goOn of this.#waiting.values()) goOn();
  }
}

/** What a chunk holds, in the order of the numbers that the reader has for it. */
const CLASSES = /** @type {const} */ (["hot", "small", "large", "shared"]);

/**
 * The bytes of each class of chunks, and for each of `columns` equal parts of all bytes the class with the largest share.
 * @param {Uint8Array} classes
 * @param {Float64Array} offsets
 * @param {number} columns
 */
function shares(classes, offsets, columns) {
  const total = offsets[classes.length];
  const sums = [0, 0, 0, 0];
  const most = Array.from({ length: columns }, () => [0, 0, 0, 0]);
  classes.forEach((kind, chunk) => {
    const [start, end] = [offsets[chunk], offsets[chunk + 1]];
    sums[kind] += end - start;
    for (let column = Math.floor((start * columns) / total); column < columns && (total * column) / columns < end; column += 1) {
      most[column][kind] += Math.max(0, Math.min(end, (total * (column + 1)) / columns) - Math.max(start, (total * column) / columns));
    }
  });
  const [hot, small, large, shared] = sums;
  return { hot, small, large, shared, columns: most.map((each) => CLASSES[each.indexOf(Math.max(...each))]) };
}

/**
 * What is wrong with a base, or with what was given as one.
 * @param {unknown} error
 */
function ofBase(error) {
  return new SealiftError("base", `the base: ${/** @type {Error} */ (error).message}`, error);
}

/**
 * A promise that ends with the signal at the latest.
 * @template T
 * @param {AbortSignal | undefined} signal
 * @param {Promise<T>} promise
 * @returns {Promise<T>}
 */
function until(signal, promise) {
  if (!signal) return promise;
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason);
    signal.addEventListener("abort", stop, { once: true });
    if (signal.aborted) stop();
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", stop));
  });
}
