// The rules that a portal sets by attributes. Their files are read again so often that no verdict rests on what the server said long ago.

import { hasAddresses, readFixed } from "./policy.js";

/** @typedef {import("./policy.js").Fixed} Fixed */

/** Milliseconds after which rules that were read are old: they are read again before a form takes a value by them. */
export const OLD = 60_000;

/** Milliseconds within which what was read need not be read again: attributes and bundles often come together. */
const MOMENT = 50;

export class Rules {
  #element;
  #loading = new AbortController();
  /** The rules in force; rejects if they are not available. @type {Promise<Fixed>} */
  #now = Promise.resolve({});
  /** What they were, as text, to notice a change; undefined if they could not be read. @type {string | undefined} */
  #said;
  /** The last reading that was begun. @type {Promise<Fixed> | undefined} */
  #latest;
  /** When the rules in force were requested, in milliseconds since 1970. */
  #since = -Infinity;
  /** When the last reading was begun. */
  #begun = -Infinity;

  /** @param {Element} element */
  constructor(element) {
    this.#element = element;
  }

  /** Returns the rules in force. If they are read anew meanwhile, those count. */
  async current() {
    for (;;) {
      const now = this.#now;
      try {
        return await now;
      } catch (error) {
        if (now === this.#now) throw error;
      }
    }
  }

  /** Whether they may have changed on the server unnoticed for longer than `OLD`. */
  get isOld() {
    return hasAddresses(this.#element) && Date.now() - this.#since > OLD;
  }

  /** Whether they are being read for the first time, or were read this moment. */
  get isNew() {
    return Date.now() - this.#begun < MOMENT;
  }

  stop() {
    this.#loading.abort();
  }

  /** Reads the rules, which count once they are there. Until then nothing can be judged. */
  load() {
    this.#said = undefined;
    this.#now = this.#read();
  }

  /**
   * Reads the rules again. Those in force count until others are there, or until it is known that they cannot be read.
   * @returns {Promise<boolean>} Whether others are in force now.
   */
  async refresh() {
    if (!hasAddresses(this.#element)) return false;
    const before = this.#said;
    if (before === undefined) {
      // They are being read, or could not be.
      this.load();
      await this.#now.catch(() => {});
      return true;
    }
    const next = this.#read();
    await next.catch(() => {});
    if (next !== this.#latest || before === this.#said) return false;
    this.#now = next;
    return true;
  }

  #read() {
    this.#loading.abort();
    this.#loading = new AbortController();
    const { signal } = this.#loading;
    const since = (this.#begun = Date.now());
    const reading = readFixed(this.#element, signal).then(
      (fixed) => {
        signal.throwIfAborted();
        this.#said = JSON.stringify(fixed);
        this.#since = since;
        return fixed;
      },
      (error) => {
        if (!signal.aborted) this.#said = undefined;
        throw error;
      },
    );
    reading.catch(() => {});
    this.#latest = reading;
    return reading;
  }
}
