// The code of each worker: readers whose functions are called by messages.

import { packed } from "./errors.js";
import { Hosted } from "./hosted.js";

/** Milliseconds between two reports of reading. */
const TELL = 200;

/** The readers by their numbers. @type {Map<number, Hosted>} */
const readers = new Map();

/** Sends a message to the other thread. @type {(data: unknown, moved?: any[]) => void} */
let post;

/**
 * Tells the other thread of a reader's requests to servers.
 * @param {number} reader
 * @returns {import("./line.js").Teller}
 */
const teller = (reader) => ({
  asked: (attempts) => post({ reader, line: ["asked", attempts] }),
  came: paced(() => post({ reader, line: ["came"] })),
  failed: (...failure) => post({ reader, line: ["failed", ...failure] }),
  ended: () => post({ reader, line: ["ended"] }),
});

/**
 * Limits reports to the rate at which anyone looks at them.
 * @template {unknown[]} Args
 * @param {(...args: Args) => void} tell
 * @returns {(...args: Args) => void}
 */
function paced(tell) {
  let last = performance.now();
  return (...args) => {
    const now = performance.now();
    if (now - last < TELL) return;
    last = now;
    tell(...args);
  };
}

/** @param {{ id: number, reader: number, name: string, args: any[] }} message */
async function serve({ id, reader, name, args }) {
  try {
    const result = await answer(reader, name, args, paced((came) => post({ id, came })));
    const bytes = result?.found ?? result;
    post({ id, result }, bytes instanceof Uint8Array ? [bytes.buffer] : []);
  } catch (error) {
    post({ id, error: packed(error) });
  }
}

/**
 * @param {number} number
 * @param {string} name
 * @param {any[]} args
 * @param {(bytes: number) => void} came
 */
function answer(number, name, args, came) {
  if (name === "start") return void readers.set(number, new Hosted(teller(number), .../** @type {[WebAssembly.Module]} */ (args)));
  /** @type {any} */
  const hosted = readers.get(number);
  if (name === "close") readers.delete(number);
  return Object.hasOwn(Hosted.prototype, name) ? hosted[name](...args, came) : hosted.reader[name](...args);
}

if (typeof self === "undefined") {
  const name = "node:worker_threads";
  import(/* @vite-ignore */ /* webpackIgnore: true */ name).then(({ parentPort }) => {
    post = (data, moved) => parentPort.postMessage(data, moved);
    parentPort.on("message", serve);
  });
} else {
  post = (data, moved = []) => self.postMessage(data, { transfer: moved });
  self.onmessage = ({ data }) => void serve(data);
}
