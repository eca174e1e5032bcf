// Workers in browsers and in Node.

import { unpacked } from "./errors.js";
import { Wait } from "./line.js";
import { isNode, node } from "./node.js";
import { WHERE, absolute, browserWorker } from "./worker-script.js";

/** The first bytes of a module: a zero byte, and "asm". */
const MAGIC = 0x0061736d;

/** Milliseconds without a byte of the reader's code after which it counts as missing. */
const SILENCE = 30_000;

/** Milliseconds after which a worker that has not begun is not one of this package. */
const START = 30_000;

/** @type {Map<string, Promise<{ module: WebAssembly.Module, bytes: Uint8Array }>>} */
const compiled = new Map();

/** SHA-256 of each module by URL, once a worker has computed it. @type {Map<string, string>} */
const digests = new Map();

/**
 * Returns the reader's code, compiled once for all workers. The server's media type does not matter.
 * @param {string | URL} [wasmUrl] Its URL, if it is not beside this module.
 */
export function code(wasmUrl) {
  return codeAt(place(wasmUrl), "the reader's code", "the option wasmUrl or the attribute wasm-url");
}

/**
 * Returns the code that looks into images, archives and compressed files.
 * @param {string | URL} [insideUrl] Its URL, if it is not beside this module.
 */
export async function codeInside(insideUrl) {
  const url = insideUrl === undefined ? new URL("../pkg/sealift_inside_bg.wasm", import.meta.url) : absolute(insideUrl);
  return (await codeAt(url, "the code that looks into images", "the option insideUrl or the attribute inside-url")).module;
}

/**
 * @param {URL} url
 * @param {string} what
 * @param {string} where What sets its address.
 */
function codeAt(url, what, where) {
  const known = compiled.get(url.href);
  if (known) return known;
  const module = load(url, what, where);
  compiled.set(url.href, module);
  module.catch(() => compiled.delete(url.href));
  return module;
}

/** @param {string | URL} [wasmUrl] */
function place(wasmUrl) {
  return wasmUrl === undefined ? new URL("../pkg/sealift_wasm_bg.wasm", import.meta.url) : absolute(wasmUrl);
}

/**
 * Returns the SHA-256 of the reader's code, if a worker with it was started.
 * @param {string | URL} [wasmUrl]
 */
export function codeDigest(wasmUrl) {
  return digests.get(place(wasmUrl).href);
}

/**
 * @param {URL} url
 * @param {string} what
 * @param {string} where
 */
async function load(url, what, where) {
  const failed = (/** @type {unknown} */ why) =>
    new Error(`${what} at ${url} cannot be loaded: ${why}; ${where} sets its address`);
  let bytes;
  try {
    bytes = isNode && url.protocol === "file:" ? await (await node("fs/promises")).readFile(url) : await fetched(url);
  } catch (error) {
    throw failed(/** @type {Error} */ (error).message);
  }
  // A server may answer a request for a missing file with a page.
  if (bytes.length < 4 || new DataView(bytes.buffer, bytes.byteOffset).getUint32(0) !== MAGIC) throw failed("it is not a WebAssembly module");
  return { module: await WebAssembly.compile(/** @type {BufferSource} */ (bytes)), bytes };
}

/** @param {URL} url */
async function fetched(url) {
  const wait = new Wait(SILENCE);
  const response = await wait.next(() => fetch(url, { signal: wait.signal }));
  if (!response.ok || !response.body) throw new Error(`the server answers ${response.status}`);
  const reader = response.body.getReader();
  const parts = [];
  for (let { done, value } = await wait.next(() => reader.read()); !done; { done, value } = await wait.next(() => reader.read())) {
    wait.came();
    parts.push(/** @type {Uint8Array<ArrayBuffer>} */ (value));
  }
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}

/** Returns the number of workers that the cores allow. */
export async function cores() {
  return isNode ? (await node("os")).availableParallelism() : navigator.hardwareConcurrency || 2;
}

/** Thrown for a value that cannot be copied to another thread. */
export class NotSent extends Error {}

const CLOSED = "the bundle was closed";

/** Workers by the addresses of their parts; each ends when its last reader is closed. @type {Map<string, Set<Host>>} */
const pools = new Map();

/**
 * Returns the error of a worker that cannot be used, with what mends it.
 * @param {string} address
 * @param {string} why
 */
function ofWorker(address, why) {
  return new Error(`a worker of ${address} failed: ${why}; ${WHERE}`);
}

/** A worker, which holds readers of several bundles. */
class Host {
  /** @type {Map<number, Thread>} */
  #readers = new Map();
  /** @type {Map<number, { reader: number, resolve(value: any): void, reject(error: Error): void, came?: (bytes: number) => void }>} */
  #calls = new Map();
  #last = 0;
  #worker;
  #address;
  #ended;
  /** @type {Error | undefined} */
  #broken;

  /**
   * @param {{ worker: any, address: string }} started
   * @param {() => void} ended
   */
  constructor({ worker, address }, ended) {
    this.#worker = worker;
    this.#address = address;
    this.#ended = ended;
    const broken = (/** @type {any} */ event) => {
      const why = event?.message ?? event?.error?.message ?? "its script cannot be loaded, or a policy of the page forbids it";
      this.#end(ofWorker(address, why));
    };
    const answer = (/** @type {any} */ data) => this.#answer(data);
    if (isNode) {
      worker.on("message", answer);
      worker.on("error", broken);
      // Only a pending call keeps the process alive.
      worker.unref();
    } else {
      worker.onmessage = (/** @type {MessageEvent} */ { data }) => answer(data);
      worker.onerror = broken;
    }
  }

  /** Ends the worker and all its readers unless what they wait for comes in time. @param {Promise<unknown>} begun */
  async expect(begun) {
    const timer = setTimeout(() => this.#end(ofWorker(this.#address, `its script gave no answer for ${START / 1000} seconds`)), START);
    await begun.finally(() => clearTimeout(timer));
  }

  /** The number of its readers. */
  get count() {
    return this.#readers.size;
  }

  /**
   * Returns the number of another reader.
   * @param {Thread} thread
   */
  add(thread) {
    const reader = ++this.#last;
    this.#readers.set(reader, thread);
    return reader;
  }

  /** Closes a reader, and ends the worker with the last one: its memory is free at once. @param {number} reader */
  remove(reader) {
    if (!this.#readers.delete(reader)) return;
    for (const [id, call] of this.#calls) {
      if (call.reader !== reader) continue;
      this.#calls.delete(id);
      call.reject(new Error(CLOSED));
    }
    if (this.#readers.size === 0) this.#end(new Error(CLOSED));
    else this.#worker.postMessage({ id: ++this.#last, reader, name: "close", args: [] });
  }

  /**
   * Calls a function of a reader.
   * @param {number} reader
   * @param {string} name
   * @param {unknown[]} args
   * @param {ArrayBufferLike[]} moved
   * @param {((bytes: number) => void) | undefined} came
   * @returns {Promise<any>}
   */
  call(reader, name, args, moved, came) {
    if (this.#broken) return Promise.reject(this.#broken);
    if (!this.#readers.has(reader)) return Promise.reject(new Error(CLOSED));
    const id = ++this.#last;
    return new Promise((resolve, reject) => {
      try {
        this.#worker.postMessage({ id, reader, name, args }, moved);
      } catch (error) {
        throw new NotSent("this cannot be sent to a worker", { cause: error });
      }
      this.#calls.set(id, { reader, resolve, reject, came });
      this.#worker.ref?.();
    });
  }

  /** @param {{ id: number, result?: unknown, error?: any, came?: number, reader: number, line?: [keyof import("./line.js").Teller, ...any] }} data */
  #answer({ id, result, error, came, reader, line }) {
    if (line) return this.#readers.get(reader)?.tell(...line);
    const call = this.#calls.get(id);
    if (came !== undefined) return call?.came?.(came);
    this.#calls.delete(id);
    if (this.#calls.size === 0) this.#worker.unref?.();
    if (error) call?.reject(unpacked(error));
    else call?.resolve(result);
  }

  /** @param {Error} error */
  #end(error) {
    if (this.#broken) return;
    this.#broken = error;
    this.#ended();
    for (const { reject } of this.#calls.values()) reject(error);
    this.#calls.clear();
    for (const thread of this.#readers.values()) thread.close();
    this.#worker.terminate();
  }
}

/** A reader in a worker, with memory of its own. */
export class Thread {
  /** Its worker. */
  host;
  #number;
  #line;
  /** Reads of the reader that the line was told of. */
  #reads = 0;

  /**
   * Starts a reader, in a new worker or, if there are as many as cores, in the one with the fewest readers.
   * @param {import("./opening.js").Places} [places]
   * @param {object} [of]
   * @param {import("./sources.js").Handle} [of.handle]
   * @param {number} [of.size] Bytes of the file.
   * @param {number} [of.memory] The memory limit for the bundle in bytes.
   * @param {import("./line.js").Teller} [of.line] Told of the requests to a URL.
   * @param {Set<unknown>} [of.apart] Workers that the reader must not share, to which its own is added.
   */
  static async start({ wasmUrl, workerUrl } = {}, { handle, size, memory, line, apart = new Set() } = {}) {
    const [{ module, bytes }, most, begin] = await Promise.all([code(wasmUrl), cores(), starter()]);
    const { href } = place(wasmUrl);
    const key = `${href} ${workerUrl ?? ""}`;
    const pool = pools.get(key) ?? new Set();
    pools.set(key, pool);
    const [least] = [...pool].filter((host) => !apart.has(host)).sort((one, other) => one.count - other.count);
    /** @type {Host} */
    const host = least && pool.size >= most ? least : new Host(begin(workerUrl), () => void pool.delete(host));
    pool.add(host);
    apart.add(host);
    const thread = new Thread(host, line);
    try {
      await host.expect(thread.call("start", [module, size, handle, memory]));
      // Nothing waits for the digest: it is ready long before a check ends.
      if (!digests.has(href)) thread.call("sha256", [bytes]).then((digest) => digests.set(href, digest)).catch(() => {});
      return thread;
    } catch (error) {
      thread.close();
      throw error;
    }
  }

  /**
   * @param {Host} host
   * @param {import("./line.js").Teller} [line]
   */
  constructor(host, line) {
    this.host = host;
    this.#line = line;
    this.#number = host.add(this);
  }

  /**
   * Calls a function of the reader.
   * @param {string} name
   * @param {unknown[]} [args]
   * @param {ArrayBufferLike[]} [moved] Buffers among them that are transferred to the worker.
   * @param {(bytes: number) => void} [came] Called with the bytes that the reader has read so far.
   * @returns {Promise<any>}
   */
  async call(name, args = [], moved = [], came) {
    return this.host.call(this.#number, name, args, moved, came);
  }

  /**
   * Passes on what the reader tells of its requests.
   * @param {keyof import("./line.js").Teller} what
   * @param {any[]} args
   */
  tell(what, ...args) {
    this.#reads += what === "asked" ? 1 : what === "ended" ? -1 : 0;
    /** @type {any} */ (this.#line)?.[what](...args);
  }

  close() {
    for (; this.#reads > 0; this.#reads -= 1) this.#line?.ended();
    this.host.remove(this.#number);
  }
}

/** Returns the function that starts a worker. */
async function starter() {
  if (!isNode) return browserWorker;
  const { Worker } = await node("worker_threads");
  return (/** @type {string | URL | undefined} */ workerUrl) => {
    // Computed separately: otherwise Vite would copy this file into its output, for browsers too.
    const here = import.meta.url;
    const url = workerUrl === undefined ? new URL("./worker.js", here) : absolute(workerUrl);
    return { worker: new Worker(url), address: url.href };
  };
}
