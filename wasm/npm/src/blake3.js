// BLAKE3 of a few bytes, such as the header of a volume. The compiled code hashes everything else: it has no room for one more function.
// The BLAKE3 paper, sections 2.1 to 2.4: https://github.com/BLAKE3-team/BLAKE3-specs

/** The most bytes that are hashed without a tree. */
const CHUNK_BYTES = 1024;
const BLOCK_BYTES = 64;

const IV = [0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19];
const [CHUNK_START, CHUNK_END, ROOT] = [1, 2, 8];
const ROUNDS = 7;
/** Which word of the message stands where in the next round. */
const NEXT = [2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8];
/** The columns, and then the diagonals, that a round mixes. */
const LINES = [[0, 4, 8, 12], [1, 5, 9, 13], [2, 6, 10, 14], [3, 7, 11, 15], [0, 5, 10, 15], [1, 6, 11, 12], [2, 7, 8, 13], [3, 4, 9, 14]];

/**
 * Returns the hash of at most 1024 bytes.
 * @param {Uint8Array} bytes
 */
export function blake3(bytes) {
  if (bytes.length > CHUNK_BYTES) throw new RangeError(`at most ${CHUNK_BYTES} bytes are hashed here`);
  let chain = Uint32Array.from(IV);
  for (let at = 0; at === 0 || at < bytes.length; at += BLOCK_BYTES) {
    const isLast = at + BLOCK_BYTES >= bytes.length;
    chain = compress(chain, bytes.subarray(at, at + BLOCK_BYTES), (at === 0 ? CHUNK_START : 0) | (isLast ? CHUNK_END | ROOT : 0));
  }
  const hash = new DataView(new ArrayBuffer(32));
  chain.forEach((word, at) => hash.setUint32(4 * at, word, true));
  return new Uint8Array(hash.buffer);
}

/**
 * @param {Uint32Array} chain
 * @param {Uint8Array} bytes At most a block.
 * @param {number} flags
 */
function compress(chain, bytes, flags) {
  const block = new Uint8Array(BLOCK_BYTES);
  block.set(bytes);
  const view = new DataView(block.buffer);
  let message = Array.from({ length: 16 }, (_, at) => view.getUint32(4 * at, true));
  // The first chunk is the only one: its counter is 0.
  const state = Uint32Array.from([...chain, ...IV.slice(0, 4), 0, 0, bytes.length, flags]);
  for (let round = 0; round < ROUNDS; round += 1) {
    LINES.forEach((line, at) => mix(state, line, message[2 * at], message[2 * at + 1]));
    message = NEXT.map((at) => message[at]);
  }
  return state.slice(0, 8).map((low, at) => low ^ state[at + 8]);
}

/**
 * @param {Uint32Array} state
 * @param {number[]} line
 * @param {number} x
 * @param {number} y
 */
function mix(state, [a, b, c, d], x, y) {
  state[a] += state[b] + x;
  state[d] = turned(state[d] ^ state[a], 16);
  state[c] += state[d];
  state[b] = turned(state[b] ^ state[c], 12);
  state[a] += state[b] + y;
  state[d] = turned(state[d] ^ state[a], 8);
  state[c] += state[d];
  state[b] = turned(state[b] ^ state[c], 7);
}

/**
 * @param {number} word
 * @param {number} by
 */
const turned = (word, by) => (word >>> by) | (word << (32 - by));
