// Streams as sources, which can be read once and in order.

import { SealiftError } from "./errors.js";

/** @typedef {import("./sources.js").Source} Source */

/**
 * Node's Readable, or any other iterable of Uint8Arrays.
 * @param {AsyncIterable<Uint8Array> & { destroy?(): void }} parts
 */
export function ofIterable(parts) {
  const iterator = parts[Symbol.asyncIterator]();
  // Destroys a waiting Readable directly: its iterator would only end it after the wait.
  const cancel = async () => void (parts.destroy ? parts.destroy() : await iterator.return?.());
  return ofStream({ read: () => iterator.next(), cancel });
}

/**
 * @param {{ read(): Promise<{ done?: boolean, value?: Uint8Array }>, cancel(): Promise<void> }} reader
 * @returns {Source}
 */
export function ofStream(reader) {
  let at = 0;
  /** @type {Uint8Array} */
  let left = new Uint8Array(0);
  return {
    inOrder: true,
    async read(offset, length) {
      if (offset !== at) throw new TypeError("a stream can be read only once, and in order");
      const bytes = new Uint8Array(length);
      let filled = 0;
      while (filled < length) {
        if (left.length === 0) {
          const { done, value } = await own(() => reader.read());
          if (done) break;
          if (!(value instanceof Uint8Array)) throw new TypeError("the stream does not consist of Uint8Arrays");
          left = value;
        }
        const part = left.subarray(0, length - filled);
        bytes.set(part, filled);
        left = left.subarray(part.length);
        filled += part.length;
      }
      at += filled;
      return filled === length ? bytes : bytes.slice(0, filled);
    },
    close() {
      reader.cancel().catch(() => {});
    },
  };
}

/**
 * Runs code of the caller, and wraps its errors.
 * @template T
 * @param {() => T | Promise<T>} run
 * @param {string} [what]
 * @param {typeof import("./line.js").Passing} [Kind]
 * @returns {Promise<T>}
 */
export async function own(run, what, Kind) {
  try {
    return await run();
  } catch (error) {
    const { name, message } = /** @type {{ name?: string, message?: string }} */ (error ?? {});
    if (error instanceof SealiftError || name === "AbortError" || name === "TimeoutError") throw error;
    const said = `${what ?? "the source failed"}: ${message ?? error}`;
    throw Kind ? new Kind(said, error) : new SealiftError("io", said, error);
  }
}
