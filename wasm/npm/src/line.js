// The wait for a server: how long nothing came, and what is told of it.

import { SealiftError } from "./errors.js";
import { until } from "./until.js";

/** Milliseconds without a byte after which the wait is told. */
const TOLD_AFTER = 5000;

/** Milliseconds from then on between two reports. */
const TELL = 1000;

/**
 * What is told of the requests to a server.
 * @typedef {object} Teller
 * @property {(attempts: number) => void} asked A read begins: a request that is made as often at most, until it succeeds.
 * @property {() => void} came Bytes came.
 * @property {(reason: string, attempt: number, attempts: number) => void} failed A request failed, and `attempt` is the next of `attempts` in all.
 * @property {() => void} ended The read has ended.
 */

/** An error that may not occur again on a retry. */
export class Passing extends SealiftError {
  /**
   * @param {string} message
   * @param {unknown} [cause]
   */
  constructor(message, cause) {
    super("io", message, cause);
  }
}

/** One request. It ends with the caller's signal, and if no byte comes for too long. */
export class Wait {
  #controller = new AbortController();
  #silence;
  /** Milliseconds left until the server counts as silent. */
  #left;
  #caller;
  #line;
  #stop = () => this.#controller.abort(this.#caller?.reason);

  /**
   * @param {number} silence Milliseconds.
   * @param {AbortSignal} [caller]
   * @param {Teller} [line]
   */
  constructor(silence, caller, line) {
    this.#silence = this.#left = silence;
    this.#caller = caller;
    this.#line = line;
    caller?.addEventListener("abort", this.#stop);
    if (caller?.aborted) this.#stop();
  }

  /** Aborts the request. */
  get signal() {
    return this.#controller.signal;
  }

  /**
   * Waits for what comes next. An answer is no byte: until the first byte of the body, the time goes on.
   * @template T
   * @param {() => Promise<T>} run
   */
  async next(run) {
    const silent = new Passing(`the server sent nothing for ${Math.round(this.#silence / 1000)} seconds`);
    const start = performance.now();
    const timer = setTimeout(() => this.#controller.abort(silent), this.#left);
    try {
      return await until(this.signal, run());
    } finally {
      clearTimeout(timer);
      this.#left = Math.max(0, this.#left - (performance.now() - start));
    }
  }

  /**
   * Notes that bytes came.
   * @param {number} [silence] Milliseconds for the next ones, if they differ.
   */
  came(silence = this.#silence) {
    this.#silence = this.#left = silence;
    this.#line?.came();
  }

  /** Leaves the caller's signal, which may outlive many requests. */
  end() {
    this.#caller?.removeEventListener("abort", this.#stop);
  }
}

/**
 * Tells how long nothing came of what is being read of a bundle, in whichever thread. A byte of any request ends the wait: as long as one of them
 * brings bytes, the line is not silent.
 * @implements {Teller}
 */
export class Line {
  #onWait;
  #reads = 0;
  /** When the last byte came, or the first read began. */
  #last = 0;
  /** @type {{ attempt: number, attempts: number, reason?: string }} */
  #state = { attempt: 1, attempts: 1 };
  /** Of the read that began last. */
  #attempts = 1;
  #isTold = false;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;

  /** @param {(wait: import("../types.js").Wait | undefined) => void} [onWait] */
  constructor(onWait) {
    this.#onWait = onWait;
  }

  /** @param {number} attempts */
  asked(attempts) {
    this.#reads += 1;
    this.#attempts = attempts;
    if (this.#reads > 1 || !this.#onWait) return;
    this.#begin();
  }

  came() {
    if (this.#reads > 0 && this.#onWait) this.#begin();
  }

  /**
   * @param {string} reason
   * @param {number} attempt
   * @param {number} attempts
   */
  failed(reason, attempt, attempts) {
    this.#state = { attempt, attempts, reason };
    if (this.#reads > 0 && this.#onWait) this.#tell();
  }

  ended() {
    this.#reads -= 1;
    if (this.#reads > 0) return;
    clearTimeout(this.#timer);
    this.#clear();
  }

  #begin() {
    this.#clear();
    this.#last = performance.now();
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#tell(), TOLD_AFTER);
  }

  #tell() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#tell(), TELL);
    this.#isTold = true;
    this.#onWait?.({ seconds: Math.floor((performance.now() - this.#last) / 1000), ...this.#state });
  }

  #clear() {
    this.#state = { attempt: 1, attempts: this.#attempts };
    if (!this.#isTold) return;
    this.#isTold = false;
    this.#onWait?.(undefined);
  }
}
