// The speed of a check, and the remaining time.

import { bytes, duration } from "./words.js";

/** The shortest period in seconds from which a rate is computed, since data arrives in bursts. */
const WINDOW = 3;

export class Pace {
  /** @type {[at: number, bytes: number][]} */
  #marks = [];

  /**
   * @param {number} done
   * @param {number} total
   * @param {number} seconds Since the check began.
   */
  take(done, total, seconds) {
    this.#marks.push([seconds, done]);
    // The last mark before the window is kept: the next report covers all the time since.
    while (this.#marks.length > 2 && seconds - this.#marks[1][0] > WINDOW) this.#marks.shift();
    const [since, before] = this.#marks[0];
    const rate = seconds > since ? (done - before) / (seconds - since) : 0;
    const left = rate > 0 && seconds > 0.5 ? `, ${bytes(rate)}/s, ${duration((total - done) / rate)} left` : "";
    return `${bytes(done)} of ${bytes(total)}${left}`;
  }
}
