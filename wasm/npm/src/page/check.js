// One bundle, from its selection until it is dropped: the known facts, and the work that establishes them.

import { digestOf, digestsOf, openBundle } from "../open.js";
import { SealiftError } from "../errors.js";
import { codeDigest } from "../threads.js";
import { finding, report } from "./finding.js";
import { forgets, highest, sawVersion } from "./memory.js";
import { barrier } from "./reach.js";
import { utf8 } from "./policy.js";

/** @typedef {import("../../types.js").Bundle} Bundle */
/** @typedef {import("../../types.js").BundleSource} BundleSource */
/** @typedef {import("../../types.js").Policy} Policy */
/** @typedef {import("../../types.js").Progress} Progress */
/** @typedef {import("./finding.js").Facts} Facts */

/** How many damaged files are named. */
const NAMED = 10;

/** Milliseconds after which a bundle is judged again at the latest: timers may be late, and pages asleep. */
const LATEST = 60_000;

/** Milliseconds from the expiry to the next judgement, which is repeated for `LATE` milliseconds since judgements count whole seconds. */
const SOON = 100;
const LATE = 2000;

/** @typedef {{ source: BundleSource, name: string }} Base A bundle that may be a base, and its name. */

/** Whether the browser reads a file that was replaced by another of the same length as if nothing had happened: Firefox does, others fail to read it. */
const MISSES_REPLACED = globalThis.CSS?.supports("-moz-appearance", "none") ?? false;

/** The results of checks, forgotten before the bytes are read again. */
const UNCHECKED = /** @satisfies {Partial<Facts>} */ ({
  isStopped: false, verified: undefined, fault: undefined, sha256: undefined, volumes: undefined, damage: undefined, baseFault: undefined, isBaseRequired: false,
});

/**
 * The receiver of changes.
 * @typedef {object} Listener
 * @property {(name: string | undefined) => Promise<Policy>} policy The policy for bundles of a name; rejects if it is not available.
 * @property {() => Base[]} bases The bases for checking a delta, as far as the page names them.
 * @property {() => { wasmUrl?: string, workerUrl?: string, insideUrl?: string }} places The URLs of the package's parts.
 * @property {(check: Check) => void} started Bytes are read from now on.
 * @property {(check: Check) => void} changed The facts about the bundle changed.
 * @property {(check: Check, progress: Progress) => void} progressed
 * @property {(check: Check, wait: import("../../types.js").Wait | undefined) => void} waits The server sends nothing, or sends again.
 * @property {() => boolean} isLocked Whether the site alone sets the policy.
 */

export class Check {
  /** @type {Facts} */
  #facts;
  /** @type {import("../../element.js").Finding} */
  #finding;
  /** @type {Bundle | undefined} */
  #bundle;
  /** Aborts the current work. */
  #work = new AbortController();
  /** The previous work, which ends before the bundle is used again. @type {Promise<void>} */
  #ended = Promise.resolve();
  /** Only the latest judgement counts. */
  #judgement = 0;
  /** @type {Policy | undefined} */
  #policy;
  /** The bases that the user selected. @type {Base[]} */
  #bases;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  #start = performance.now();
  #seconds = 0;
  #checked = new Date();
  #isClosed = false;
  #isBusy = false;
  #isRead = false;

  /**
   * @param {BundleSource} source
   * @param {string} name
   * @param {boolean} deep
   * @param {Listener} listener
   * @param {Error} [noSource] Why there is nothing to read.
   * @param {Base[]} [bases] Its bases, as far as they are known.
   */
  constructor(source, name, deep, listener, noSource, bases = []) {
    this.source = source;
    this.name = name;
    this.listener = listener;
    this.noSource = noSource;
    this.#bases = bases;
    this.#facts = { deep, isStopped: false, isAddress: source instanceof URL, isLocked: listener.isLocked() };
    this.#finding = finding(this.#facts);
  }

  get finding() {
    return this.#finding;
  }

  get facts() {
    return this.#facts;
  }

  /** Whether bytes are being read. */
  get isBusy() {
    return this.#isBusy;
  }

  get places() {
    return this.listener.places();
  }

  /** The bundle, once its index was read. */
  get bundle() {
    return this.#bundle;
  }

  get report() {
    const bytes = this.source instanceof Blob ? this.source.size : this.#facts.head?.fileBytes;
    const module = codeDigest(this.places.wasmUrl);
    return report(this.#finding, this.#facts, { name: this.name, bytes, seconds: this.#seconds, policy: this.#facts.verdict && this.#policy, forgets: forgets(), module, checked: this.#checked.toISOString() });
  }

  /** The report once nothing is read any more: a file's SHA-256 is known only after the verdict. */
  get complete() {
    return this.#ended.then(() => this.report);
  }

  /** Checks the bundle, or the rest of it. */
  run() {
    this.#isRead = true;
    this.#work.abort();
    this.#work = new AbortController();
    const { signal } = this.#work;
    const before = this.#bundle ? {} : { head: undefined, verdict: undefined, unjudged: undefined };
    this.#isBusy = true;
    this.#start = performance.now();
    this.listener.started(this);
    this.#set({ ...before, ...UNCHECKED });
    this.#ended = this.#ended.then(() => this.#run(signal)).finally(() => {
      if (signal.aborted) return;
      this.#isBusy = false;
      this.#set({});
    });
    return this.#ended;
  }

  /** @param {AbortSignal} signal */
  async #run(signal) {
    if (signal.aborted) return;
    try {
      if (this.noSource) throw this.noSource;
      const bundle = this.#bundle ?? (await this.#open(signal));
      if (!bundle) return;
      const verified = await this.#verify(bundle, signal);
      this.#isBusy = false;
      this.#set({ verified, sha256: verified.sha256 });
      if (verified.sha256) return;
      // Hashed while being checked again, so that the digest is of exactly these bytes.
      const { sha256 } = await bundle.verify({ sha256: true, signal });
      const digests = bundle.volumes ? await this.#digests(signal) : { sha256 };
      if (digests.sha256 !== sha256) throw new SealiftError("changed", "a volume was replaced by another since it was checked");
      // What only the volumes have, and not the bundle, was read before it was hashed.
      if (bundle.volumes) (await openBundle(this.source, { ...this.places, signal })).close();
      this.#set(digests);
    } catch (fault) {
      if (signal.aborted) return;
      const more = await this.#explain(fault);
      if (signal.aborted) return;
      this.#isBusy = false;
      this.#set(more);
      await this.#hash(signal);
    }
  }

  /**
   * @param {Bundle} bundle
   * @param {AbortSignal} signal
   */
  async #verify(bundle, signal) {
    const { deep } = this.#facts;
    // SHA-256 is sequential and slow, so the verdict on a file does not wait for it. A network connection is slower anyway.
    const sha256 = !isOnDisk(this.source);
    const onProgress = (/** @type {Progress} */ progress) => void (signal.aborted || this.listener.progressed(this, progress));
    // The bases that the user selected, or else those that the page demands.
    const isBaseRequired = this.#bases.length === 0;
    const given = bundle.head.delta && deep ? (isBaseRequired ? this.listener.bases() : this.#bases) : [];
    if (given.length > 0) {
      /** @type {Bundle[]} */
      let base = [];
      try {
        base = await this.#openBases(bundle, given, signal);
        return await bundle.verify({ base, sha256, signal, onProgress });
      } catch (fault) {
        if (signal.aborted || !(fault instanceof SealiftError && fault.code === "base")) throw fault;
        this.#set({ baseFault: fault, isBaseRequired });
      } finally {
        for (const each of base) each.close();
      }
    }
    return bundle.verify({ deep, sha256, signal, onProgress });
  }

  /**
   * Opens those of the given bundles that are bases of this one. If none is, all are opened, so that the check's error names one.
   * @param {Bundle} bundle
   * @param {Base[]} given
   * @param {AbortSignal} signal
   */
  async #openBases(bundle, given, signal) {
    /** @type {Bundle[]} */
    const open = [];
    try {
      for (const { source, name } of given) open.push(await opened(source, name, { ...this.places, signal }));
    } catch (error) {
      for (const each of open) each.close();
      signal.throwIfAborted();
      throw error;
    }
    const isBase = (/** @type {Bundle} */ { head }) => bundle.head.delta?.bases.some(({ indexDigest }) => indexDigest === head.indexDigest);
    const bases = open.filter(isBase);
    if (bases.length === 0) return open;
    for (const each of open) if (!bases.includes(each)) each.close();
    return bases;
  }

  /**
   * Hashes a file that is not a valid bundle, to identify it, unless it would have to be fetched again.
   * @param {AbortSignal} signal
   */
  async #hash(signal) {
    if (!(this.source instanceof Blob)) return;
    const sha256 = await digestOf(this.source, this.places, signal).catch(() => undefined);
    if (!signal.aborted) this.#set({ sha256 });
  }

  /**
   * Returns the SHA-256 of the file; of a bundle in volumes, that of the bundle and those of its volumes, from the same bytes.
   * @param {AbortSignal} signal
   * @returns {Promise<Pick<Facts, "sha256" | "volumes">>}
   */
  async #digests(signal) {
    const volumes = this.#bundle?.volumes;
    if (!volumes) return { sha256: await digestOf(/** @type {Blob} */ (this.source), this.places, signal) };
    const { sha256, files } = await digestsOf(volumes, this.places, signal);
    return { sha256, volumes: volumes.map(({ file, number }, at) => ({ file, number, sha256: files[at] })) };
  }

  /**
   * Checks a delta over its bases, which are among these bundles.
   * @param {Base[]} bases
   */
  checkOver(bases) {
    this.#bases = bases;
    this.#facts = { ...this.#facts, deep: true };
    return this.run();
  }

  /**
   * Looks whether the file that was checked, or each of its volumes, is still there. Where the browser would not notice that one was replaced, all of
   * them are read again; a file that has no SHA-256 yet, since hashing was stopped, gets one.
   */
  async reread() {
    const { source } = this;
    const { sha256, volumes } = this.#facts;
    await this.#ended;
    if (!isOnDisk(source) || !this.#finding.ok || this.#isClosed) return;
    const { signal } = this.#work;
    try {
      if (sha256 === undefined || MISSES_REPLACED) {
        const now = await this.#digests(signal);
        const isOther = now.sha256 !== sha256 || now.volumes?.some((volume, at) => volume.sha256 !== volumes?.[at].sha256);
        if (sha256 !== undefined && isOther) throw new SealiftError("changed", "the file was replaced by another since it was checked");
        this.#set(now);
      } else {
        for (const file of [source].flat()) await file.slice(-1).arrayBuffer();
      }
    } catch (error) {
      if (signal.aborted || this.#isClosed) return;
      const fault = error instanceof SealiftError ? error : new SealiftError("changed", "the file cannot be read any more: it was changed or removed since it was chosen", error);
      this.#set({ fault });
    }
  }

  /**
   * Tells which other versions of this name are safe in the same choice: if one of them makes this bundle old, it is left aside.
   * @param {string[]} versions
   */
  besides(versions) {
    const { verdict, floor, isBesideNewer } = this.#facts;
    const isOlder = verdict?.error?.code === "downgrade" && floor !== undefined && versions.includes(floor);
    if (isOlder !== (isBesideNewer ?? false)) this.#set({ isBesideNewer: isOlder });
  }

  /** Checks over the bases that the page now names. */
  rebase() {
    if (this.#bundle?.head.delta && this.#bases.length === 0) this.run();
  }

  /**
   * Returns the facts about a failure: the files that damage affects, or that the page's policy blocked the address.
   * @param {unknown} fault
   * @returns {Promise<Partial<Facts>>}
   */
  async #explain(fault) {
    const { source } = this;
    if (!(fault instanceof SealiftError)) return { fault };
    if (fault.place) return { fault, damage: await this.#bundle?.hit(fault.place, NAMED).catch(() => undefined) };
    if (fault.code === "io" && source instanceof URL) return { fault: (await barrier(source)) ?? fault };
    return { fault };
  }

  /**
   * @param {AbortSignal} signal
   * @returns {Promise<Bundle | undefined>} None if there is no policy to judge by.
   */
  async #open(signal) {
    const judgement = (this.#judgement += 1);
    let policy;
    try {
      policy = await this.listener.policy(undefined);
    } catch (unjudged) {
      if (signal.aborted) return undefined;
      // What went wrong may be right by now.
      if (judgement !== this.#judgement) return this.#open(signal);
      this.#set({ unjudged });
      return undefined;
    }
    signal.throwIfAborted();
    try {
      const bundle = await openBundle(this.source, {
        ...policy, ...this.places, signal, onWait: (wait) => this.listener.waits(this, wait),
        // The highest version seen of this name is looked up when the bundle is open.
        onHead: (head, verdict) => signal.aborted || this.#set({ head, verdict: judgement === this.#judgement && verdict.error ? verdict : undefined, tags: policy.compatible }),
      });
      if (this.#isClosed || signal.aborted) {
        bundle.close();
        return undefined;
      }
      this.#bundle = bundle;
    } catch (error) {
      if (signal.aborted) throw error;
      if (!(error instanceof SealiftError && error.code === "trust-file")) throw error;
      if (judgement !== this.#judgement) return this.#open(signal);
      this.#set({ unjudged: error });
      return undefined;
    }
    await this.#judge();
    return this.#bundle;
  }

  /** Judges by the current policy. Until that is done, there is no verdict. */
  async judge() {
    this.#judgement += 1;
    if (!this.#bundle) {
      // A bundle that could not be opened for lack of a policy is opened again.
      if (this.#facts.unjudged && !this.#facts.isStopped) await this.run();
      else this.#set({ verdict: undefined });
      return;
    }
    this.#set({ verdict: undefined, unjudged: undefined });
    await this.#judge();
  }

  async #judge() {
    const bundle = this.#bundle;
    if (!bundle) return;
    const judgement = (this.#judgement += 1);
    const isLast = () => judgement === this.#judgement && !this.#isClosed;
    try {
      const policy = await this.listener.policy(bundle.head.name);
      const judged = new Date();
      const [found, baseRefusal, allowedSigners, revoked] = await Promise.all([
        bundle.judge(policy),
        this.#judgeBases(policy),
        ...[policy.allowedSigners, policy.revoked].map((text) => (text === undefined || text.length === 0 ? undefined : bundle.sha256(utf8(text)))),
      ]);
      if (!isLast()) return;
      this.#policy = policy;
      // A bundle that had expired before keeps its verdict: only the time in the message differs.
      const { verdict: known } = this.#facts;
      const verdict = known?.error?.code === "expired" && found.error?.code === "expired" ? known : found;
      this.#set({ head: bundle.head, verdict, floor: found.floor, tags: policy.compatible, baseRefusal, judged: judged.toISOString(), digests: { allowedSigners, revoked }, unjudged: undefined });
      this.#wait(bundle.head.expires);
    } catch (unjudged) {
      if (isLast()) this.#set({ unjudged });
    }
  }

  /**
   * Judges the signatures of the bases that the user selected. Their versions and expiry say nothing about the delta.
   * @param {Policy} policy
   * @returns {Promise<import("./finding.js").BaseRefusal | undefined>}
   */
  async #judgeBases(policy) {
    for (const { source, name } of this.#bases) {
      let base;
      try {
        base = await openBundle(source, { ...policy, floor: undefined, ...this.places, signal: this.#work.signal });
      } catch {
        continue; // the check of the delta reports it
      }
      const { verdict } = base;
      base.close();
      if (verdict.error && ["signature", "untrusted", "revoked"].includes(verdict.error.code)) return { name, verdict };
    }
    return undefined;
  }

  /**
   * Schedules a check of the expiry. Keys may expire as well, at times that are not known here.
   * @param {number} [expires]
   */
  #wait(expires = Infinity) {
    clearTimeout(this.#timer);
    const left = expires * 1000 - Date.now();
    this.#timer = setTimeout(() => this.look(), left > -LATE ? Math.min(Math.max(left, 0) + SOON, LATEST) : LATEST);
  }

  /** Judges again if a higher version of this name was seen since. */
  compareVersions() {
    const { head, floor } = this.#facts;
    if (!this.#bundle || !head) return;
    let seen;
    try {
      seen = highest(head.name);
    } catch {
      return void this.judge(); // which reports why
    }
    if (seen !== undefined && seen !== floor && BigInt(seen) > BigInt(head.version)) this.judge();
  }

  /** Judges again because time has passed. Unlike `judge`, this keeps the verdict until the new one is known. */
  look() {
    if (this.#bundle && this.#facts.verdict && !this.#isClosed) this.#judge();
  }

  /** Stops the check, but keeps the results about signatures and entries; after the verdict, stops hashing the file. */
  stop() {
    this.#work.abort();
    if (!this.#isBusy && this.#isRead) return;
    this.#isRead = true;
    this.#isBusy = false;
    this.#set({ isStopped: true });
  }

  /** Whether a check was begun, or stopped before it was. */
  get isRead() {
    return this.#isRead;
  }

  /** Checks again from the start with new workers, since the URLs of the package's parts have changed. */
  restart() {
    const before = this.#bundle;
    this.#bundle = undefined;
    this.#work.abort();
    this.#ended = this.#ended.then(() => before?.close());
    return this.run();
  }

  /** Checks contents as well, if not done yet. */
  deepen() {
    if (this.#facts.deep) return;
    this.#facts = { ...this.#facts, deep: true };
    this.run();
  }

  close() {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#work.abort();
    this.#bundle?.close();
  }

  /** @param {Partial<Facts>} more */
  #set(more) {
    if (this.#isClosed) return;
    const facts = { ...this.#facts, ...more, isLocked: this.listener.isLocked() };
    if (facts.verified && !this.#facts.verified) this.#seconds = (performance.now() - this.#start) / 1000;
    if (more.verified || more.fault) this.#checked = new Date();
    let next = finding(facts);
    if (next.ok && facts.head) {
      // It only counts as safe once its version is stored: otherwise an older bundle would not be detected later.
      try {
        sawVersion(facts.head.name, facts.head.version, keysOf(facts.verdict));
      } catch (unjudged) {
        facts.unjudged = unjudged;
        next = finding(facts);
      }
    }
    this.#facts = facts;
    this.#finding = next;
    this.listener.changed(this);
  }
}

/**
 * Returns the keys whose signatures count.
 * @param {import("../../types.js").Verdict | undefined} verdict
 */
function keysOf(verdict) {
  const keys = (verdict?.signers ?? []).filter(({ trusted }) => trusted).map(({ key }) => key ?? "");
  return [...new Set(keys)].sort();
}

/**
 * Whether a bundle is in files: in one, or in volumes.
 * @param {BundleSource} source
 * @returns {source is Blob | Blob[]}
 */
function isOnDisk(source) {
  return source instanceof Blob || Array.isArray(source);
}

/**
 * Opens a bundle that may be a base. Its errors have the code "base", since they say nothing about the delta.
 * @param {BundleSource} source
 * @param {string} name
 * @param {import("../../types.js").OpenOptions} options
 */
async function opened(source, name, options) {
  try {
    return await openBundle(source, options);
  } catch (error) {
    options.signal?.throwIfAborted();
    throw new SealiftError("base", `${name} cannot be opened as a base: ${/** @type {Error} */ (error).message}`, error);
  }
}
