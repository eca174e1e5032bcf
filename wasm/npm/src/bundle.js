// A bundle that was opened, and its check by workers.

import { ofBase, refuse, SealiftError } from "./errors.js";
import { lookInto } from "./inside.js";
import { judgement, known } from "./options.js";
import { mostReads, RunCheck, runsOf } from "./run-check.js";
import { shares } from "./shares.js";
import { cores, Thread } from "./threads.js";
import { until } from "./until.js";

/** Memory for the readers of all workers. */
const MEMORY_BYTES = 256 << 20;

/** The average number of objects in a chunk above which checking one takes so long that queries must not wait for it. */
const LONG_CHUNK = 1000;

/** @typedef {import("./opening.js").Opening} Opening */

/** @typedef {{ bytes: Uint8Array, handle: import("./sources.js").Handle, digests: Uint8Array }} AsBase The bytes before the chunks, the file, and what the check found. */

/** @typedef {{ object: number, part: number, chunk?: number, base?: number, offset: number, length: number }} Part A part of a file, and the place of its chunk. */

/** An open bundle. Its first worker keeps index and layout. */
export class Bundle {
  /** @type {Opening} */
  #opening;
  #places;
  /** The current policy: that of the opening, with what later judgements changed. */
  #policy;
  #memory;
  /** @type {Thread[]} */
  #others = [];
  #checking = false;
  /** The number of writes begun so far. */
  #writes = 0;
  /** A copy in memory, if workers cannot open the source. @type {Promise<import("./sources.js").Handle> | undefined} */
  #copy;
  /** What a worker needs to open the bases, once this delta bundle is completed with them. @type {AsBase[]} */
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
   * Judges the bundle again. Options that are left out keep their values.
   * @param {import("../types.js").Policy} options
   */
  async judge(options) {
    this.#policy = { ...this.#policy, ...known(options) };
    this.verdict = await this.#keeper.call("judge", judgement(this.#policy));
    return this.verdict;
  }

  /**
   * Checks every byte, and with `deep` also what the chunks hold.
   * @param {import("../types.js").VerifyOptions} [options]
   * @returns {Promise<import("../types.js").Verified>}
   */
  async verify(options = {}) {
    if (this.#checking) throw new TypeError("this bundle is being checked already");
    this.#checking = true;
    const { deep = false, sha256: isHashed = false, signal, onProgress } = options;
    // This is the only class that implements the type.
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
      const runs = runsOf(this.#places, own);
      // The first worker must check some chunks itself, in order. If the source can only be read in order, it checks all of them.
      const inTurn = this.#opening.source.inOrder && own.size > 0;
      const isLong = depth === "objects" && own.size === 0 && this.head.objects > LONG_CHUNK * this.head.chunks;
      const state = isHashed ? await this.#keeper.call("hashFirst", [this.#opening.bytes()]) : undefined;
      const threads = inTurn ? [Promise.resolve(this.#keeper)] : await this.#team(options, runs.length, isLong, depth);
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
      throw this.#blamed(error);
    } finally {
      this.#checking = false;
      // They have nothing more to do, and hold memory.
      for (const thread of this.#others) thread.close();
      this.#others = [];
      this.#keeper.call("rest").catch(() => {});
    }
  }

  /** Names the volume that has the damaged chunk, if the bundle was split. @param {unknown} error */
  #blamed(error) {
    const { set } = this.#opening.source;
    if (!(error instanceof SealiftError) || error.place?.chunk === undefined) return error;
    return set?.blame(error, this.#places.chunksAt + this.chunkOffsets[error.place.chunk]) ?? error;
  }

  /** The files of a bundle that was split, in order. */
  get volumes() {
    return this.#opening.source.set?.volumes;
  }

  /** Whether the bundle's files can be listed: those of a delta bundle can, once it is completed with its bases. */
  get isWhole() {
    return !this.head.delta || this.#bases.length > 0;
  }

  /**
   * Returns the bases that the root names, in its order. Throws if one is missing, or if another bundle was given.
   * @param {Bundle[]} given
   */
  #inOrder(given) {
    const wanted = this.head.delta?.bases ?? [];
    const isWanted = (/** @type {Bundle} */ { head }) => wanted.some(({ indexDigest }) => indexDigest === head.indexDigest);
    const other = given.find((bundle) => !isWanted(bundle));
    if (other) throw ofBase(new TypeError(`the bundle is not a delta of ${other.head.name} version ${other.head.version}`));
    return wanted.map(({ name, version, indexDigest }) => {
      const found = given.find(({ head }) => !head.delta && head.indexDigest === indexDigest);
      if (!found) throw ofBase(new TypeError(`the bundle needs ${name ? `${name} version ${version}` : `a base with the index ${indexDigest}`} as well`));
      return found;
    });
  }

  /**
   * Checks a base of a delta bundle. Its errors have the code "base", since they say nothing about this bundle.
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
   * Completes this delta bundle with its bases, in the first worker.
   * @param {Bundle[]} bases
   */
  async #complete(bases) {
    const given = await Promise.all(bases.map(async (base) => ({ ...(await base.#asBase()), digests: await base.#keeper.call("digests") })));
    const places = await this.#keeper.call("rebase", [this.#opening.bytes(), given]);
    // The memory of one reader, bases included. Only the first worker needs the digests.
    this.#places = { ...this.#places, memory: places.memory };
    this.#bases = given.map((base) => ({ ...base, digests: new Uint8Array(0) }));
  }

  /** Makes this a delta bundle without bases again, after a base failed. */
  async #leaveBases() {
    this.#bases = [];
    this.#places = await this.#keeper.call("rebase", [this.#opening.bytes(), []]);
  }

  /**
   * Returns the SHA-256 of bytes, in hexadecimal digits.
   * @param {Uint8Array} bytes
   * @returns {Promise<string>}
   */
  sha256(bytes) {
    return this.#keeper.call("sha256", [bytes]);
  }

  /** Returns what a worker of a delta bundle needs to open this bundle as its base. */
  async #asBase() {
    const { source, handle = await (this.#copy ??= source.copy?.()) } = this.#opening;
    if (!handle) throw new TypeError("a base is read by workers: it must be a Blob, a Uint8Array, a URL, a path or a FileHandle, not a stream");
    return { bytes: this.#opening.bytes(), handle };
  }

  /**
   * Returns the files that damage affects.
   * @param {import("../types.js").Place} place The `place` of an error of `verify`.
   * @param {number} [limit]
   * @returns {Promise<import("../types.js").Damage>}
   */
  hit({ chunk, object }, limit = 10) {
    return this.#keeper.call("hit", [chunk, object, limit]);
  }

  /** Returns how many entries the trees have. @returns {Promise<import("../types.js").Listed>} */
  listed() {
    return this.#keeper.call("listed");
  }

  /** Returns the named trees. @returns {Promise<import("../types.js").Ref[]>} */
  refs() {
    return this.#keeper.call("refs");
  }

  /**
   * Returns entries of a directory, whose number is the `directory` of a ref or an entry.
   * @param {number} directory
   * @param {number} [from]
   * @param {number} [count]
   * @returns {Promise<import("../types.js").Entry[]>}
   */
  children(directory, from = 0, count = 0xffffffff) {
    return this.#keeper.call("children", [directory, from, count]);
  }

  /**
   * Returns the entries with these numbers.
   * @param {ArrayLike<number>} numbers
   * @returns {Promise<import("../types.js").Entry[]>}
   */
  entries(numbers) {
    return this.#keeper.call("entries", [Uint32Array.from(numbers)]);
  }

  /**
   * Returns the numbers of the entries with this text in their names or, if it contains a slash, in their paths.
   * @param {string} text
   * @returns {Promise<Uint32Array>}
   */
  search(text) {
    return this.#keeper.call("search", [text]);
  }

  /** Returns the names that a delta bundle lists, each with its change. @returns {Promise<import("../types.js").Edit[]>} */
  edits() {
    return this.#keeper.call("edits");
  }

  /** Returns what a delta bundle changes without listing names. @returns {Promise<import("../types.js").Unlisted | undefined>} */
  unlisted() {
    return this.#keeper.call("unlisted");
  }

  /**
   * Returns the changes from the first base to this delta bundle, once it is completed.
   * @param {number} [limit]
   * @returns {Promise<import("../types.js").Comparison>}
   */
  changes(limit = 10_000) {
    return this.#keeper.call("changes", [limit]);
  }

  /**
   * Returns the changes from an older bundle to this one.
   * @param {Bundle} older
   * @param {number} [limit]
   * @returns {Promise<import("../types.js").Comparison>}
   */
  compare(older, limit = 10_000) {
    return this.#keeper.call("compare", [older.#opening.bytes(), limit]);
  }

  /** Returns what the parts of the file hold. @param {number} columns @returns {Promise<import("../types.js").Picture>} */
  async picture(columns) {
    const { classes, saved, largest } = await this.#keeper.call("picture");
    return { ...shares(classes, this.chunkOffsets, columns), saved, largest };
  }

  /**
   * Opens a file. Only the chunks that hold it are read, and only checked bytes are returned. If the bundle must not be used, throws the verdict's
   * error.
   * @param {string | Uint8Array | import("../types.js").Entry} what `[REF:]PATH`, or an entry.
   * @returns {Promise<ReadableStream<Uint8Array>>}
   */
  async open(what) {
    const { parts } = await this.#parts(what);
    let next = 0;
    return new ReadableStream({
      pull: async (controller) => {
        const bytes = await this.#readPart(parts[next]);
        next += 1;
        if (bytes.length > 0) controller.enqueue(bytes);
        if (next === parts.length) controller.close();
      },
    }, { highWaterMark: 0 });
  }

  /**
   * Returns bytes of a file, fewer if it ends before. Only the chunks that hold them are read, and only checked bytes are returned. If the bundle must
   * not be used, throws the verdict's error.
   * @param {string | Uint8Array | import("../types.js").Entry} what `[REF:]PATH`, or an entry.
   * @param {number} offset
   * @param {number} length
   * @returns {Promise<Uint8Array>}
   */
  async read(what, offset, length) {
    const { size, parts } = await this.#parts(what);
    const end = Math.min(size, offset + length);
    // All parts but the last have the same length, a power of two.
    const each = parts.length > 1 ? 2 ** Math.ceil(Math.log2(size / parts.length)) : size;
    const read = [];
    for (let at = Math.floor(offset / each); at * each < end; at += 1) {
      const start = at * each;
      read.push((await this.#readPart(parts[at])).subarray(Math.max(0, offset - start), end - start));
    }
    return new Uint8Array(await new Blob(/** @type {BlobPart[]} */ (read)).arrayBuffer());
  }

  /**
   * Opens an image, an archive or a compressed file, to list and read the files in it. Only checked bytes are read. If the bundle must not be used, throws
   * the verdict's error; of a file that recipes make, one with the code "unsupported".
   * @param {string | Uint8Array | import("../types.js").Entry} what `[REF:]PATH`, or an entry.
   * @param {{ signal?: AbortSignal }} [options]
   */
  async inside(what, { signal } = {}) {
    const { size } = await this.#parts(what);
    const { insideUrl } = this.#opening.places ?? {};
    return lookInto(this.#keeper, size, (offset, length) => this.read(what, offset, length), insideUrl, signal);
  }

  /**
   * Writes a file to a handle, part by part, in a worker: bytes that do not pass through the page take no memory there.
   * @param {import("../types.js").Entry} entry
   * @param {import("../types.js").FileHandleOfPage} handle
   * @param {import("../types.js").WriteOptions} [options]
   */
  async write(entry, handle, { isOwn = false, signal, onPart } = {}) {
    const { source, handle: own } = this.#opening;
    const { parts } = await this.#parts(entry);
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
   * Returns the checked bytes of a part.
   * @param {Part} part
   * @returns {Promise<Uint8Array>}
   */
  async #readPart(part) {
    // The worker itself reads bases.
    const given = part.base === undefined ? await this.#opening.source.read(part.offset, part.length) : undefined;
    return this.#keeper.call("readPart", [part, given], given && [given.buffer]);
  }

  /**
   * Returns a file's size, and the places of its parts. If the bundle must not be used, throws the verdict's error.
   * @param {string | Uint8Array | import("../types.js").Entry} what
   * @returns {Promise<{ size: number, parts: Part[] }>}
   */
  async #parts(what) {
    refuse(this.verdict);
    if (this.#opening.source.inOrder) throw new TypeError("the bundle came as a stream, which cannot be read again: open the file itself");
    const path = typeof what === "string" ? new TextEncoder().encode(what) : what;
    const entry = path instanceof Uint8Array ? await this.#keeper.call("find", [path]) : path.entry;
    /** @type {import("../pkg/sealift_wasm.js").Content} */
    const { object, size, parts, chunks, base } = await this.#keeper.call("content", [entry]);
    return { size, parts: parts.map(([offset, length], part) => ({ object, part, chunk: chunks[part], base, offset, length })) };
  }

  /** Ends the workers, and closes the source. */
  close() {
    for (const thread of [this.#keeper, ...this.#others]) thread.close();
    this.#others = [];
    this.#opening.source.close?.();
  }

  get #keeper() {
    return this.#opening.thread;
  }

  /**
   * Returns as many workers as cores, memory and work allow. If a chunk takes long and there is memory for one more worker, the first one is not
   * among them, so that it can answer queries meanwhile.
   * @param {import("../types.js").VerifyOptions} options
   * @param {number} runs
   * @param {boolean} isLong Whether a chunk takes long to check.
   * @param {string} depth
   */
  async #team({ jobs, memory = this.#memory ?? MEMORY_BYTES }, runs, isLong, depth) {
    const room = Math.floor(memory / this.#places.memory);
    const wanted = Math.max(1, Math.min(jobs ?? (await cores()), room, runs, mostReads(this.#opening.handle)));
    const first = isLong && runs > 0 && room > wanted ? [] : [Promise.resolve(this.#keeper)];
    const apart = new Set([this.#keeper.host]);
    return [...first, ...Array.from({ length: wanted - first.length }, () => this.#another(depth, apart))];
  }

  /**
   * Starts a reader in another worker to check this bundle.
   * @param {string} depth
   * @param {Set<unknown>} apart The workers that check this bundle already.
   */
  async #another(depth, apart) {
    const { handle, source, places, line } = this.#opening;
    const thread = await Thread.start(places, { handle, size: source.size, memory: this.#memory, line, apart });
    this.#others.push(thread);
    await thread.call("follow", [this.#opening.bytes()]);
    if (this.#bases.length > 0 && depth === "objects") await thread.call("rebase", [this.#opening.bytes(), this.#bases]);
    await thread.call("begin", [depth]);
    return thread;
  }

  /**
   * Returns the length of the file in bytes. If a stream goes on after the bundle, only one byte of that is read and counted.
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
