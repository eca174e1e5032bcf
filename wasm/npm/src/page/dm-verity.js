// The dm-verity root hash of a disk image, as `sealift info --dm-verity` prints it: by the superblock of its hash tree and the top block.

/** @typedef {import("../../types.js").Bundle} Bundle */
/** @typedef {import("../../types.js").Entry} Entry */

/** Bytes at the start of an image that hold the file system's superblock. */
const HEAD_BYTES = 2048;

/** Superblocks of dm-verity have this length, and lie at multiples of it. */
const SECTOR = 512;

/** What file systems are padded to. */
const PADDING = 4096;

const MAGIC = "verity\0\0";

const ALGORITHMS = ["sha256", "sha512"];

/** @typedef {{ from: Entry | string, offset: number }} Place Where a superblock is. */

/**
 * Returns the root hash of an image with a hash tree, or why it is not known. `undefined` if the file is no such image.
 * @param {Bundle} bundle
 * @param {Entry} entry
 * @returns {Promise<{ algorithm: string, rootHash: string } | { fault: string } | undefined>}
 */
export async function dmVerity(bundle, entry) {
  if ((entry.size ?? 0) < 2 * PADDING) return undefined;
  const place = (await beside(bundle, entry)) ?? (await appended(bundle, entry));
  if (!place) return undefined;
  const { from, offset } = place;
  const superblock = view(await bundle.read(from, offset, SECTOR));
  const dataSize = from === entry ? offset : entry.size ?? 0;
  try {
    const { algorithm, hashBlock, dataBlock, dataBlocks, salt, isSaltFirst } = parsed(superblock);
    const found = Math.floor(dataSize / dataBlock);
    if (dataBlocks === 0 || dataBlocks > found) throw new RangeError(`its superblock states ${dataBlocks} data blocks, and there are ${found}`);
    const top = dataBlocks === 1 ? await bundle.read(entry, 0, dataBlock) : await bundle.read(from, Math.ceil((offset + SECTOR) / hashBlock) * hashBlock, hashBlock);
    if (dataBlocks > 1 && top.length < hashBlock) throw new RangeError("its hash tree is cut");
    return { algorithm, rootHash: await hash(bundle, algorithm, isSaltFirst ? [salt, top] : [top, salt]) };
  } catch (error) {
    if (error instanceof RangeError) return { fault: error.message };
    throw error;
  }
}

/**
 * Looks for a tree in a file beside the image.
 * @param {Bundle} bundle
 * @param {Entry} entry
 * @returns {Promise<Place | undefined>}
 */
async function beside(bundle, { ref, path }) {
  const stem = path.replace(/\.[^./]*$/, "");
  for (const from of [`${path}.verity`, `${stem}.verity`, `${path}.hash`, `${stem}.hash`].filter((name) => name !== path)) {
    const bytes = await bundle.read(`${ref}:${from}`, 0, SECTOR).catch(() => new Uint8Array(0));
    if (isSuperblock(bytes)) return { from: `${ref}:${from}`, offset: 0 };
  }
  return undefined;
}

/**
 * Looks for a tree behind the image's file system.
 * @param {Bundle} bundle
 * @param {Entry} entry
 * @returns {Promise<Place | undefined>}
 */
async function appended(bundle, entry) {
  const end = fileSystemEnd(view(await bundle.read(entry, 0, HEAD_BYTES)));
  if (!end || end >= (entry.size ?? 0)) return undefined;
  const start = Math.ceil(end / SECTOR) * SECTOR;
  const bytes = await bundle.read(entry, start, Math.ceil(start / PADDING) * PADDING + SECTOR - start);
  for (let at = 0; at < bytes.length; at += SECTOR) {
    if (isSuperblock(bytes.subarray(at))) return { from: entry, offset: start + at };
  }
  return undefined;
}

/**
 * Returns how long the file system is, by its own superblock.
 * @param {DataView} head
 */
function fileSystemEnd(head) {
  if (head.byteLength < HEAD_BYTES) return undefined;
  if (head.getUint32(0) === 0x68737173) return long(head, 40); // squashfs
  if (head.getUint32(1024, true) === 0xe0f5e1e2) {
    const upper = head.getUint32(1104, true) & 0x80 ? head.getUint16(1038, true) : 0; // EROFS
    return (upper * 2 ** 32 + head.getUint32(1060, true)) * 2 ** head.getUint8(1036);
  }
  if (head.getUint16(1080, true) !== 0xef53) return undefined;
  const upper = head.getUint32(1120, true) & 0x80 ? head.getUint32(1360, true) : 0; // ext4
  return (upper * 2 ** 32 + head.getUint32(1028, true)) * 2 ** (10 + head.getUint32(1048, true));
}

/** @param {Uint8Array} bytes */
function isSuperblock(bytes) {
  return bytes.length >= SECTOR && String.fromCharCode(...bytes.subarray(0, 8)) === MAGIC;
}

/**
 * Parses a superblock. Throws a RangeError if `veritysetup` does not write such a one, or its algorithm is not supported.
 * @param {DataView} of
 */
function parsed(of) {
  const [version, type] = [of.getUint32(8, true), of.getUint32(12, true)];
  if (version !== 1) throw new RangeError(`its superblock has version ${version}; only version 1 is known`);
  if (type > 1) throw new RangeError(`its hash format ${type} is unknown`);
  const algorithm = String.fromCharCode(...new Uint8Array(of.buffer, of.byteOffset + 32, 32)).split("\0")[0];
  if (!ALGORITHMS.includes(algorithm)) throw new RangeError(`its hash algorithm ${algorithm.replace(/[^!-~]/g, "")} is not supported; sha256 and sha512 are`);
  const block = (/** @type {string} */ what, /** @type {number} */ at) => {
    const length = of.getUint32(at, true);
    if (length < SECTOR || length > 1 << 19 || length & (length - 1)) throw new RangeError(`its ${what} blocks have ${length} bytes; a power of two from 512 to 524288 is allowed`);
    return length;
  };
  const saltBytes = of.getUint16(80, true);
  if (saltBytes > 256) throw new RangeError(`its salt has ${saltBytes} bytes; at most 256 are possible`);
  const salt = new Uint8Array(of.buffer, of.byteOffset + 88, saltBytes);
  return { algorithm, dataBlock: block("data", 64), hashBlock: block("hash", 68), dataBlocks: long(of, 72), salt, isSaltFirst: type === 1 };
}

/**
 * @param {Bundle} bundle
 * @param {string} algorithm
 * @param {Uint8Array[]} parts
 */
async function hash(bundle, algorithm, parts) {
  const bytes = new Uint8Array(await new Blob(/** @type {BlobPart[]} */ (parts)).arrayBuffer());
  if (algorithm === "sha256") return bundle.sha256(bytes);
  // Browsers have this only on pages from https and from this computer.
  if (!globalThis.crypto?.subtle) throw new RangeError("browsers compute sha512 only on a page from https");
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-512", bytes));
  return [...digest].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** @param {Uint8Array} bytes */
function view(bytes) {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/**
 * Returns a number of 64 bits; beyond 2^53 its value is rounded, and larger than any file.
 * @param {DataView} of
 * @param {number} at
 */
function long(of, at) {
  return of.getUint32(at + 4, true) * 2 ** 32 + of.getUint32(at, true);
}
