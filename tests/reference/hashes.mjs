/** Hashes that libraries do not offer: the chaining values of BLAKE3 (core 7.3), and fs-verity (core 1). */
import { sha256 } from "@noble/hashes/sha2.js";

const IV = Uint32Array.of(0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19);
const [START, END, PARENT, ROOT] = [1, 2, 4, 8];
const CHUNK = 1024;

/** The order in which each of the seven rounds takes the words of a block. */
const ORDERS = [[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]];
while (ORDERS.length < 7) ORDERS.push([2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8].map((at) => ORDERS.at(-1)[at]));
const [state, message, block] = [new Uint32Array(16), new Uint32Array(16), new Uint8Array(64)];
const words = new DataView(block.buffer);
const rotate = (value, by) => (value >>> by) | (value << (32 - by));

function mix(a, b, c, d, x, y) {
  state[a] += state[b] + x;
  state[d] = rotate(state[d] ^ state[a], 16);
  state[c] += state[d];
  state[b] = rotate(state[b] ^ state[c], 12);
  state[a] += state[b] + y;
  state[d] = rotate(state[d] ^ state[a], 8);
  state[c] += state[d];
  state[b] = rotate(state[b] ^ state[c], 7);
}

/** Compresses at most 64 bytes into a chaining value of eight words. */
function compress(chain, bytes, counter, flags) {
  block.fill(0);
  block.set(bytes);
  for (let at = 0; at < 16; at += 1) message[at] = words.getUint32(4 * at, true);
  state.set(chain);
  state.set(IV.subarray(0, 4), 8);
  state.set([counter, counter / 2 ** 32, bytes.length, flags], 12);
  for (const order of ORDERS) {
    const word = (at) => message[order[at]];
    mix(0, 4, 8, 12, word(0), word(1)); // columns
    mix(1, 5, 9, 13, word(2), word(3));
    mix(2, 6, 10, 14, word(4), word(5));
    mix(3, 7, 11, 15, word(6), word(7));
    mix(0, 5, 10, 15, word(8), word(9)); // diagonals
    mix(1, 6, 11, 12, word(10), word(11));
    mix(2, 7, 8, 13, word(12), word(13));
    mix(3, 4, 9, 14, word(14), word(15));
  }
  return state.slice(0, 8).map((low, at) => low ^ state[at + 8]);
}

function chunk(bytes, counter, flags) {
  let chain = IV;
  for (let at = 0; at === 0 || at < bytes.length; at += 64) {
    const edges = (at === 0 ? START : 0) | (at + 64 >= bytes.length ? END | flags : 0);
    chain = compress(chain, bytes.subarray(at, at + 64), counter, edges);
  }
  return toBytes(chain);
}

/** The node over `count` leaves, at least one: the left subtree has the largest power of two below `count`. */
function node(first, count, flags, leaf) {
  if (count === 1) return leaf(first, flags);
  const left = 2 ** (31 - Math.clz32(count - 1));
  const pair = new Uint8Array(64);
  pair.set(node(first, left, 0, leaf));
  pair.set(node(first + left, count - left, 0, leaf), 32);
  return toBytes(compress(IV, pair, 0, PARENT | flags));
}

function tree(bytes, start, flags) {
  const leaf = (at, edge) => chunk(bytes.subarray(at * CHUNK, (at + 1) * CHUNK), start / CHUNK + at, edge);
  return node(0, Math.max(1, Math.ceil(bytes.length / CHUNK)), flags, leaf);
}

function toBytes(chain) {
  chain.forEach((word, at) => words.setUint32(4 * at, word, true));
  return block.slice(0, 32);
}

/** The hash of some bytes. */
export const blake3 = (bytes) => tree(bytes, 0, ROOT);

/** The chaining value of a piece that begins at the offset `start` of its object. */
export const chainingValue = (bytes, start) => tree(bytes, start, 0);

/** The hash of an object from the chaining values of its pieces, of which there are at least two. */
export const merge = (values) => node(0, values.length, ROOT, (at) => values[at]);

/** The SHA-256 of each block of 4096 bytes, one after the other; the last block is padded with zeros. */
export function blockHashes(bytes) {
  const hashes = new Uint8Array(Math.ceil(bytes.length / 4096) * 32);
  for (let at = 0; at < bytes.length; at += 4096) {
    const filled = new Uint8Array(4096);
    filled.set(bytes.subarray(at, at + 4096));
    hashes.set(sha256(filled), at / 128);
  }
  return hashes;
}

/** The fs-verity digest of `size` bytes whose blocks have these hashes. */
export function verityOf(size, hashes) {
  while (hashes.length > 32) hashes = blockHashes(hashes);
  const descriptor = new Uint8Array(256);
  descriptor.set([1, 1, 12]);
  new DataView(descriptor.buffer).setBigUint64(8, BigInt(size), true);
  descriptor.set(hashes, 16);
  return sha256(descriptor);
}

export const verity = (bytes) => verityOf(bytes.length, blockHashes(bytes));
