// One bundle, from its choice until it is dropped: the facts that are known of it, and what finds them out.

import { digestOf, openBundle } from "../bundle.js";
import { SealiftError } from "../errors.js";
import { codeDigest } from "../threads.js";
import { finding, report } from "./finding.js";
import { startsAsBundle } from "./kinds.js";
import { forgets, sawVersion } from "./memory.js";
import { barrier } from "./reach.js";
import { utf8 } from "./policy.js";

/** @typedef {import("../../types.js").Bundle} Bundle */
/** @typedef {import("../../types.js").BundleSource} BundleSource */
/** @typedef {import("../../types.js").Policy} Policy */
/** @typedef {import("../../types.js").Progress} Progress */
/** @typedef {import("./finding.js").Facts} Facts */

/** Files that are named where damage hits more. */
const NAMED = 10;

/** Milliseconds after which a bundle is judged by the clock again, at the latest: a timer may be late, or its page asleep. */
const LATEST = 60_000;

/** Milliseconds between a moment and the timer for it; and in which the clock, by whole seconds, has passed it. */
const SOON = 100;
const LATE = 2000;

/** @typedef {{ source: BundleSource, name: string }} Base A base, and how it is called. */

/**
 * Who is told.
 * @typedef {object} Listener
 * @property {(name: string | undefined) => Promise<Policy>} policy By what to judge bundles of a name; rejects where that is not known.
 * @property {() => Base | undefined} base What a delta is checked over, if the page names it.
 * @property {() => { wasmUrl?: string, workerUrl?: string }} places Where the package's parts lie.
 * @property {(check: Check) => void} changed What is known of the bundle changed.
 * @property {(check: Check, progress: Progress) => void} progressed
 */

export class Check {
  /** @type {Facts} */
  #facts;
  /** @type {import("../../element.js").Finding} */
  #finding;
  /** @type {Bundle | undefined} */
  #bundle;
  /** Ends the work that is under way. */
  #work = new AbortController();
  /** The work before, which a bundle has to have ended. @type {Promise<void>} */
  #ended = Promise.resolve();
  /** Later judgements count. */
  #judgement = 0;
  /** @type {Policy | undefined} */
  #policy;
  /** What the person chose for the base. @type {Base | undefined} */
  #base;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  #start = performance.now();
  #seconds = 0;
  #checked = new Date();
  #isClosed = false;
  #isBusy = false;

  /**
   * @param {BundleSource} source
   * @param {string} name
   * @param {boolean} deep
   * @param {Listener} listener
   * @param {Error} [noSource] Why there is nothing to read.
   * @param {Base} [base] What it is a delta of.
   */
  constructor(source, name, deep, listener, noSource, base) {
    this.source = source;
    this.name = name;
    this.listener = listener;
    this.noSource = noSource;
    this.#base = base;
    this.#facts = { deep, isStopped: false };
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

  /** As soon as its index was read. */
  get bundle() {
    return this.#bundle;
  }

  get report() {
    const bytes = this.source instanceof Blob ? this.source.size : this.#facts.head?.fileBytes;
    const module = codeDigest(this.places.wasmUrl);
    return report(this.#finding, this.#facts, { name: this.name, bytes, seconds: this.#seconds, policy: this.#policy, forgets: forgets(), module, checked: this.#checked.toISOString() });
  }

  /** Checks the bundle, or what is left to be checked of it. */
  run() {
    this.#work.abort();
    this.#work = new AbortController();
    const { signal } = this.#work;
    const before = this.#bundle ? {} : { head: undefined, verdict: undefined, unjudged: undefined };
    this.#isBusy = true;
    this.#start = performance.now();
    this.#set({ ...before, isStopped: false, verified: undefined, fault: undefined, isOther: undefined, sha256: undefined, damage: undefined, baseFault: undefined });
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
      // Hashed as it is checked again: so it is of these bytes and of no others.
      if (!verified.sha256) this.#set({ sha256: (await bundle.verify({ sha256: true, signal })).sha256 });
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
    // SHA-256 has one order, and takes longer than much else: the verdict on a file does not wait for it. A line is slower anyway.
    const sha256 = !(this.source instanceof Blob);
    const onProgress = (/** @type {Progress} */ progress) => void (signal.aborted || this.listener.progressed(this, progress));
    const given = bundle.head.delta && deep ? (this.#base ?? this.listener.base()) : undefined;
    if (given) {
      /** @type {Bundle | undefined} */
      let base;
      try {
        base = await openBundle(given.source, { ...this.places, signal });
        return await bundle.verify({ base, sha256, signal, onProgress });
      } catch (fault) {
        if (signal.aborted || (base && !(fault instanceof SealiftError && fault.code === "base"))) throw fault;
        this.#set({ baseFault: fault });
      } finally {
        base?.close();
      }
    }
    return bundle.verify({ deep, sha256, signal, onProgress });
  }

  /**
   * Of a file that is not a sound bundle, too, it is to be known which one it is. What would have to be fetched once more is not.
   * @param {AbortSignal} signal
   */
  async #hash(signal) {
    if (!(this.source instanceof Blob)) return;
    const sha256 = await digestOf(this.source, this.places, signal).catch(() => undefined);
    if (!signal.aborted) this.#set({ sha256 });
  }

  /**
   * Checks a delta over its base.
   * @param {BundleSource} source
   * @param {string} name
   */
  checkOver(source, name) {
    this.#base = { source, name };
    this.#facts = { ...this.#facts, deep: true };
    return this.run();
  }

  /** The page names another base. */
  rebase() {
    if (this.#bundle?.head.delta && !this.#base) this.run();
  }

  /**
   * What a failure means, where it does not say it itself.
   * @param {unknown} fault
   * @returns {Promise<Partial<Facts>>}
   */
  async #explain(fault) {
    const { source } = this;
    if (!(fault instanceof SealiftError)) return { fault };
    if (fault.code === "header" && source instanceof Blob) return { fault, isOther: !(await startsAsBundle(source).catch(() => true)) };
    if (fault.place) return { fault, damage: await this.#bundle?.hit(fault.place, NAMED).catch(() => undefined) };
    if (fault.code === "io" && source instanceof URL) return { fault: (await barrier(source)) ?? fault };
    return { fault };
  }

  /**
   * @param {AbortSignal} signal
   * @returns {Promise<Bundle | undefined>} None where there is nothing to judge by.
   */
  async #open(signal) {
    const judgement = (this.#judgement += 1);
    let policy;
    try {
      policy = await this.listener.policy(undefined);
    } catch (unjudged) {
      if (!signal.aborted) this.#set({ unjudged });
      return undefined;
    }
    signal.throwIfAborted();
    try {
      const bundle = await openBundle(this.source, {
        ...policy, ...this.places, signal,
        // What versions were seen of this name is asked when it is open.
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
      this.#set({ unjudged: error });
      return undefined;
    }
    await this.#judge();
    return this.#bundle;
  }

  /** Judges by the policy as it is now. Until that is done nothing is known. */
  async judge() {
    this.#judgement += 1;
    if (!this.#bundle) {
      // What could not be opened for want of a policy is begun anew.
      if (this.#facts.unjudged && !this.#facts.isStopped) this.run();
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
      const [found, allowedSigners, revoked] = await Promise.all([
        bundle.judge(policy),
        ...[policy.allowedSigners, policy.revoked].map((text) => (text === undefined ? undefined : bundle.sha256(utf8(text)))),
      ]);
      if (!isLast()) return;
      this.#policy = policy;
      // What had expired before is not told again for the moment that stands in its words.
      const { verdict: known } = this.#facts;
      const verdict = known?.error?.code === "expired" && found.error?.code === "expired" ? known : found;
      this.#set({ head: bundle.head, verdict, floor: policy.floor, tags: policy.compatible, judged: judged.toISOString(), digests: { allowedSigners, revoked }, unjudged: undefined });
      this.#wait(bundle.head.expires);
    } catch (unjudged) {
      if (isLast()) this.#set({ unjudged });
    }
  }

  /**
   * Sees to it that what expires is found expired. A key's time may end as well, of which nothing is known here.
   * @param {number} [expires]
   */
  #wait(expires = Infinity) {
    clearTimeout(this.#timer);
    const left = expires * 1000 - Date.now();
    this.#timer = setTimeout(() => this.look(), left > -LATE ? Math.min(Math.max(left, 0) + SOON, LATEST) : LATEST);
  }

  /** Judges by the clock: by the same policy, so that what is known stays so until it is known otherwise. */
  look() {
    if (this.#bundle && this.#facts.verdict && !this.#isClosed) this.#judge();
  }

  /** Ends the check. What was found of signatures and entries stays. */
  stop() {
    if (!this.#isBusy) return;
    this.#work.abort();
    this.#isBusy = false;
    this.#set({ isStopped: true });
  }

  /** Checks contents, too, if they were not. */
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
    const facts = { ...this.#facts, ...more };
    if (facts.verified && !this.#facts.verified) this.#seconds = (performance.now() - this.#start) / 1000;
    if (more.verified || more.fault) this.#checked = new Date();
    let next = finding(facts);
    if (next.ok && facts.head) {
      // It is not safe before a later one that is older would be told.
      try {
        sawVersion(facts.head.name, facts.head.version);
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
