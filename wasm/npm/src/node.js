// What only Node has: files by path and by handle.

import { SealiftError } from "./errors.js";

/** Node's own modules are named where no bundler looks: for a browser there are none. */
export const node = (/** @type {string} */ name) => import(/* @vite-ignore */ /* webpackIgnore: true */ `node:${name}`);

export const isNode = typeof Worker === "undefined" && Boolean(/** @type {any} */ (globalThis).process?.versions?.node);

/**
 * A file that is open in this process, whose threads share the number.
 * @typedef {{ fd: number, size: number, changed: number }} OpenFile
 */

/**
 * The path that a string or URL names, if it names one: any string that is no URL, and a URL of a file.
 * @param {string | URL} given
 * @returns {string | URL | undefined}
 */
export function pathOf(given) {
  if (!isNode) return undefined;
  // One letter and a colon is a drive, and no URL's scheme.
  const isUrl = given instanceof URL || /^[a-z][a-z0-9+.-]+:/i.test(given);
  if (!isUrl) return given;
  const url = new URL(given);
  return url.protocol === "file:" ? url : undefined;
}

/**
 * Opens a file by its path; `close` closes it.
 * @param {string | URL} path
 */
export async function openPath(path) {
  try {
    const handle = await (await node("fs/promises")).open(path);
    return { handle, close: () => void handle.close().catch(() => {}) };
  } catch (error) {
    throw failed(error);
  }
}

/**
 * What a handle has open, or nothing if that has no size: a pipe, or a device.
 * @param {{ fd: number, stat(): Promise<any> }} handle
 * @returns {Promise<OpenFile | undefined>}
 */
export async function fileOf(handle) {
  try {
    const stat = await handle.stat();
    if (stat.isDirectory()) throw new Error("it is a folder");
    return stat.isFile() ? { fd: handle.fd, size: stat.size, changed: stat.mtimeMs } : undefined;
  } catch (error) {
    throw failed(error);
  }
}

/**
 * Reads from a file that is open; fewer bytes only where it ends.
 * @param {OpenFile} file
 * @param {number} offset
 * @param {number} length
 * @returns {Promise<Uint8Array>}
 */
export async function readFile({ fd, size, changed }, offset, length) {
  const [{ read, fstat }, { promisify }, { Buffer }] = await Promise.all(["fs", "util", "buffer"].map(node));
  const wanted = Math.min(length, Math.max(0, size - offset));
  // One of its own, which can be given to another thread.
  const bytes = Buffer.allocUnsafeSlow(wanted);
  try {
    let filled = 0;
    while (filled < wanted) {
      const { bytesRead } = await promisify(read)(fd, bytes, filled, wanted - filled, offset + filled);
      if (bytesRead === 0) break;
      filled += bytesRead;
    }
    const now = await promisify(fstat)(fd);
    if (now.size !== size || now.mtimeMs !== changed) throw new SealiftError("changed", "the file was changed while it was read");
    return new Uint8Array(bytes.buffer, 0, filled);
  } catch (error) {
    throw failed(error);
  }
}

/** @param {unknown} error */
function failed(error) {
  if (error instanceof SealiftError) return error;
  return new SealiftError("io", `the file cannot be read: ${/** @type {Error} */ (error).message}`, error);
}
