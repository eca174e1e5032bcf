// One bundle, from its choice until it is dropped: the facts that are known of it, and what finds them out.

import { openBundle } from "../bundle.js";
import { SealiftError } from "../errors.js";
import { finding, report } from "./finding.js";
import { startsAsBundle } from "./kinds.js";
import { forgets, sawVersion } from "./memory.js";
import { barrier } from "./reach.js";

/** @typedef {import("../../types.js").Bundle} Bundle */
/** @typedef {import("../../types.js").BundleSource} BundleSource */
/** @typedef {import("../../types.js").Policy} Policy */
/** @typedef {import("../../types.js").Progress} Progress */
/** @typedef {import("./finding.js").Facts} Facts */

/**
 * Who is told.
 * @typedef {object} Listener
 * @property {(name: string | undefined) => Promise<Policy>} policy By what to judge bundles of a name; rejects where that is not known.
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
  #start = performance.now();
  #seconds = 0;
  #isClosed = false;
  #isBusy = false;

  /**
   * @param {BundleSource} source
   * @param {string} name
   * @param {boolean} deep
   * @param {Listener} listener
   * @param {Error} [noSource] Why there is nothing to read.
   */
  constructor(source, name, deep, listener, noSource) {
    this.source = source;
    this.name = name;
    this.listener = listener;
    this.noSource = noSource;
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
    return report(this.#finding, this.#facts, { name: this.name, bytes, seconds: this.#seconds, policy: this.#policy, forgets: forgets() });
  }

  /** Checks the bundle, or what is left to be checked of it. */
  run() {
    this.#work.abort();
    this.#work = new AbortController();
    const { signal } = this.#work;
    const before = this.#bundle ? {} : { head: undefined, verdict: undefined, unjudged: undefined };
    this.#isBusy = true;
    this.#start = performance.now();
    this.#set({ ...before, isStopped: false, verified: undefined, fault: undefined, isOther: undefined });
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
      const verified = await bundle.verify({ deep: this.#facts.deep, signal, onProgress: (progress) => signal.aborted || this.listener.progressed(this, progress) });
      this.#set({ verified });
    } catch (fault) {
      if (signal.aborted) return;
      const more = await this.#explain(fault);
      if (!signal.aborted) this.#set(more);
    }
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
      const verdict = await bundle.judge(policy);
      if (!isLast()) return;
      this.#policy = policy;
      this.#set({ head: bundle.head, verdict, floor: policy.floor, tags: policy.compatible });
    } catch (unjudged) {
      if (isLast()) this.#set({ unjudged });
    }
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
    this.#work.abort();
    this.#bundle?.close();
  }

  /** @param {Partial<Facts>} more */
  #set(more) {
    if (this.#isClosed) return;
    const facts = { ...this.#facts, ...more };
    if (facts.verified && !this.#facts.verified) this.#seconds = (performance.now() - this.#start) / 1000;
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
