// Node only: files by path and by handle.

import { SealiftError } from "./errors.js";

/** Hides the names of Node's modules from bundlers, since browsers have none of them. */
export const node = (/** @type {string} */ name) => import(/* @vite-ignore */ /* webpackIgnore: true */ `node:${name}`);

export const isNode = typeof Worker === "undefined" && Boolean(/** @type {any} */ (globalThis).process?.versions?.node);

/**
 * A file opened in this process; all threads share its descriptor.
 * @typedef {{ fd: number, size: number, changed: number }} OpenFile
 */

/**
 * Returns the path that a string or URL names: any string that is not a URL, or a file URL.
 * @param {string | URL} given
 * @returns {string | URL | undefined}
 */
export function pathOf(given) {
  if (!isNode) return undefined;
  // A single letter before the colon is a drive, not a URL scheme.
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
 * Returns the open file of a handle, or `undefined` if it has no size, like a pipe or a device.
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
 * Reads from an open file. The result is shorter only at the end of the file.
 * @param {OpenFile} file
 * @param {number} offset
 * @param {number} length
 * @returns {Promise<Uint8Array>}
 */
export async function readFile({ fd, size, changed }, offset, length) {
  const [{ read, fstat }, { promisify }, { Buffer }] = await Promise.all(["fs", "util", "buffer"].map(node));
  const wanted = Math.min(length, Math.max(0, size - offset));
  // A separate buffer, which can be transferred to another thread.
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
