// Workers as browsers and as Node have them.

import { unpacked } from "./errors.js";

/** Node's own modules are named where no bundler looks: for a browser there are none. */
const node = (/** @type {string} */ name) => import(/* @vite-ignore */ /* webpackIgnore: true */ `node:${name}`);
const isNode = typeof Worker === "undefined";

/** @type {Promise<WebAssembly.Module> | undefined} */
let compiled;

/** The reader's code, compiled once for all workers. Whatever media type the server gives it is as good as another. */
export function code() {
  compiled ??= load().then((bytes) => WebAssembly.compile(bytes));
  compiled.catch(() => (compiled = undefined));
  return compiled;
}

/** @returns {Promise<BufferSource>} */
async function load() {
  const url = new URL("../pkg/sealift_wasm_bg.wasm", import.meta.url);
  if (isNode) return (await node("fs/promises")).readFile(url);
  const response = await fetch(url);
  if (!response.ok) throw new Error(`cannot load ${url}: ${response.status}`);
  return response.arrayBuffer();
}

/** How many workers there are cores for. */
export async function cores() {
  return isNode ? (await node("os")).availableParallelism() : navigator.hardwareConcurrency || 2;
}

/** Something that cannot be copied to another thread. */
export class NotSent extends Error {}

/** A worker with a reader of its own. */
export class Thread {
  /** @type {Map<number, { resolve(value: any): void, reject(error: Error): void }>} */
  #calls = new Map();
  #last = 0;
  #worker;
  /** @type {Error | undefined} */
  #broken;

  /**
   * @param {import("./sources.js").Handle | undefined} handle
   * @param {number} [size] Bytes of the file.
   */
  static async start(handle, size) {
    const module = await code();
    const thread = new Thread(isNode ? (await node("worker_threads")).Worker : Worker);
    try {
      await thread.call("start", [module, size, handle]);
      return thread;
    } catch (error) {
      thread.close();
      throw error;
    }
  }

  /** @param {any} Kind The class of workers. */
  constructor(Kind) {
    const broken = (/** @type {any} */ event) =>
      this.#end(new Error(`a worker failed: ${event?.message ?? event?.error?.message ?? "its script cannot be loaded"}`));
    const answer = (/** @type {any} */ data) => this.#answer(data);
    if (isNode) {
      const worker = new Kind(new URL("./worker.js", import.meta.url));
      worker.on("message", answer);
      worker.on("error", broken);
      // Only a call keeps the process alive.
      worker.unref();
      this.#worker = worker;
    } else {
      // Bundlers look for this very form.
      const worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module", name: "sealift" });
      worker.onmessage = ({ data }) => answer(data);
      worker.onerror = broken;
      this.#worker = worker;
    }
  }

  /**
   * Calls a function of the worker.
   * @param {string} name
   * @param {unknown[]} [args]
   * @param {ArrayBufferLike[]} [moved] Buffers among them that the worker gets and this thread loses.
   * @returns {Promise<any>}
   */
  call(name, args = [], moved = []) {
    if (this.#broken) return Promise.reject(this.#broken);
    const id = ++this.#last;
    return new Promise((resolve, reject) => {
      try {
        this.#worker.postMessage({ id, name, args }, moved);
      } catch (error) {
        throw new NotSent("this cannot be given to a worker", { cause: error });
      }
      this.#calls.set(id, { resolve, reject });
      this.#worker.ref?.();
    });
  }

  close() {
    this.#end(new Error("the bundle was closed"));
    this.#worker.terminate();
  }

  /** @param {{ id: number, result?: unknown, error?: any }} data */
  #answer({ id, result, error }) {
    const call = this.#calls.get(id);
    this.#calls.delete(id);
    if (this.#calls.size === 0) this.#worker.unref?.();
    if (error) call?.reject(unpacked(error));
    else call?.resolve(result);
  }

  /** @param {Error} error */
  #end(error) {
    this.#broken ??= error;
    for (const { reject } of this.#calls.values()) reject(this.#broken);
    this.#calls.clear();
    this.#worker.unref?.();
  }
}
