// The volumes of a bundle that was split: several files that are a bundle together (volumes.md).

import { blake3 } from "./blake3.js";
import { ofBlob } from "./blobs.js";
import { SealiftError } from "./errors.js";
import { isNode } from "./node.js";

/** The first bytes of a volume and of a recovery file. */
const MAGIC = [0x89, 0x53, 0x4c, 0x56, 0x4c, 0x0d, 0x0a, 0x1a];

/** Where their header says which of the two it is. */
const KIND_AT = 12;
const [DATA, RECOVERY] = [0, 1];

/** The bytes of a header, and of what its digest covers. */
export const HEADER_BYTES = 112;
const DIGEST_AT = 80;

/** The most bytes of a bundle's head: preamble, root and signature area. */
const MAX_HEAD_BYTES = 32 + (1 << 16) + (1 << 20);

/** The first bytes by which `startsAsVolume` knows a file. */
export const START_BYTES = KIND_AT + 2;

/** How many numbers are listed before the rest is only counted. */
const LISTED = 20;

/**
 * @typedef {object} Header The fields of volumes 2; `end` is where the slice ends in the bundle.
 * @property {number} number
 * @property {number} count
 * @property {number} headBytes
 * @property {number} offset
 * @property {number} end
 * @property {number} fileBytes
 * @property {string} set In hexadecimal digits.
 */

/** @typedef {{ file: Blob, header: Header }} Read A volume whose header was read. */

/** @typedef {import("../types.js").VolumeFault} VolumeFault */

/**
 * Whether these are the first bytes of a volume or of a recovery file, and of which.
 * @param {Uint8Array} first
 * @returns {"volume" | "recovery" | undefined}
 */
export function startsAsVolume(first) {
  if (!MAGIC.every((byte, at) => first[at] === byte)) return undefined;
  return first[KIND_AT] === RECOVERY && first[KIND_AT + 1] === 0 ? "recovery" : "volume";
}

/**
 * Reads a volume's header, and checks what can be checked of it without the bundle's head.
 * @param {Blob} file
 * @returns {Promise<Read>}
 */
export async function readVolume(file) {
  const bytes = await ofBlob(file).read(0, HEADER_BYTES);
  const bad = (/** @type {string} */ what, /** @type {import("../types.js").Kind} */ code = "header") => fault(code, "header", [file], [], `${nameOf(file)}: ${what}`);
  if (!MAGIC.every((byte, at) => at >= bytes.length || bytes[at] === byte)) throw bad("it does not begin like a volume of a bundle");
  if (bytes.length < HEADER_BYTES) throw bad("it ends within the header of the volume", "truncated");
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  const version = view.getUint32(8, true);
  if (version !== 0) throw bad(`version ${version} of volumes is not known here; a newer version of Sealift may know it`, "unsupported");
  if (!isEqual(blake3(bytes.subarray(0, DIGEST_AT)), bytes.subarray(DIGEST_AT))) throw bad("the header of the volume does not match its digest");
  const kind = view.getUint16(KIND_AT, true);
  if (kind !== DATA) throw bad(`volumes of kind ${kind} are not known here; a newer version of Sealift may know them`, "unsupported");
  if (view.getUint16(14, true) !== 0) throw bad("reserved bytes in the header of the volume are not zero");
  const [number, count] = [view.getUint16(16, true), view.getUint16(18, true)];
  if (number === 0 || number > count) throw bad(`the number of the volume is ${number}, and not between 1 and ${count}`);
  const [offset, length, fileBytes] = [24, 32, 40].map((at) => view.getBigUint64(at, true));
  const end = offset + length;
  if (length === 0n || end > fileBytes) throw bad("the volume's part of the bundle is empty, or does not lie in the bundle");
  if ((number === count) !== (end === fileBytes)) throw bad("the last volume, and no other, ends where the bundle does");
  if (fileBytes > BigInt(Number.MAX_SAFE_INTEGER)) throw bad("the bundle is larger than files can be here", "limit");
  const headBytes = view.getUint32(20, true);
  const known = `${nameOf(file)}: the file of volume ${number} of ${count} ends within the head of the bundle`;
  if (file.size < HEADER_BYTES + Math.min(headBytes, MAX_HEAD_BYTES)) throw fault("truncated", "cut", [file], [number], known, count);
  const set = [...bytes.subarray(48, DIGEST_AT)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return { file, header: { number, count, headBytes, offset: Number(offset), end: Number(end), fileBytes: Number(fileBytes), set } };
}

/**
 * Whether two volumes are of one set: of the same bundle, with the same signatures, and split into as many.
 * @param {Read} one
 * @param {Read} other
 */
export async function isOfSet(one, other) {
  const [mine, its] = [one.header, other.header];
  if (mine.set !== its.set || mine.count !== its.count || mine.headBytes !== its.headBytes || mine.fileBytes !== its.fileBytes) return false;
  return isEqual(await headOf(one), await headOf(other));
}

/** @param {Read} volume */
function headOf({ file, header }) {
  return ofBlob(file).read(HEADER_BYTES, Math.min(header.headBytes, MAX_HEAD_BYTES));
}

/**
 * The volumes of one set as the source of their bundle. Their parts are read where they are.
 * @param {Blob[]} files In any order.
 * @returns {Promise<import("./sources.js").Source>}
 */
export async function ofVolumes(files) {
  /** @type {Read[]} */
  const volumes = [];
  for (const file of files) {
    const volume = await readVolume(file);
    const [first] = volumes;
    if (first && !(await isOfSet(first, volume))) {
      const what = `${nameOf(file)} is volume ${volume.header.number} of ${volume.header.count}, and not of the same set as ${nameOf(first.file)}: of another bundle or another split, or of a copy with other signatures`;
      throw fault("header", "other-set", [file], [volume.header.number], what, volume.header.count);
    }
    volumes.push(volume);
  }
  if (volumes.length === 0) throw new TypeError("the list of volumes is empty");
  const set = new VolumeSet(volumes.sort((one, other) => one.header.number - other.header.number));
  const parts = set.parts();
  return { ...(isNode ? ofParts(parts) : ofBlob(new Blob(parts))), set };
}

/**
 * Reads Blobs as one. Node ends if a Blob is read that consists of parts of files.
 * @param {Blob[]} parts
 * @returns {import("./sources.js").Source}
 */
function ofParts(parts) {
  const size = parts.reduce((sum, part) => sum + part.size, 0);
  const read = async (/** @type {number} */ offset, /** @type {number} */ length) => {
    const bytes = new Uint8Array(Math.min(length, Math.max(0, size - offset)));
    let [start, filled] = [0, 0];
    for (const part of parts) {
      const from = offset + filled - start;
      start += part.size;
      if (from >= part.size || filled === bytes.length) continue;
      const some = await ofBlob(part).read(from, bytes.length - filled);
      bytes.set(some, filled);
      filled += some.length;
    }
    return filled === bytes.length ? bytes : bytes.slice(0, filled);
  };
  return { size, inOrder: false, copy: async () => ({ blob: new Blob([await read(0, size)]) }), read };
}

/** The volumes of one set, by their numbers. Where several have one number, or one is missing, they are no bundle: `checkHead` says so. */
export class VolumeSet {
  #volumes;
  /** Bytes of a volume before its slice. */
  #sliceAt;

  /** @param {Read[]} volumes */
  constructor(volumes) {
    this.#volumes = volumes;
    // What volume 1 says of the front is compared with the head; without volume 1, nothing but the head is read.
    this.#sliceAt = HEADER_BYTES + volumes[0].header.offset;
  }

  /** The files with their numbers, in order, and where the slice of each begins in its file. */
  get volumes() {
    return this.#volumes.map(({ file, header }) => ({ file, number: header.number, sliceAt: this.#sliceAt }));
  }

  /** The parts of the files that are the bundle, one after the other. They refer to the files, and copy nothing. */
  parts() {
    const [first, ...others] = this.#volumes;
    if (first.header.number !== 1) return [first.file.slice(HEADER_BYTES)];
    // In volume 1, the slice follows the front as it does in the bundle.
    const slices = others.map(({ file, header }) => file.slice(this.#sliceAt, this.#sliceAt + header.end - header.offset));
    return [first.file.slice(HEADER_BYTES, HEADER_BYTES + first.header.end), ...slices];
  }

  /**
   * Checks that these are the volumes of the bundle with this head, that all of them are there, and that each is as long as it says.
   * @param {import("../types.js").Head} head
   */
  checkHead(head) {
    const front = head.fileBytes - head.indexBytes - head.chunksBytes;
    const chunksAt = head.fileBytes - head.chunksBytes;
    const label = `${head.name} version ${head.version}`;
    for (const { file, header } of this.#volumes) {
      const isOfHead = header.set === head.rootDigest && header.headBytes === front - head.layoutBytes && header.fileBytes === head.fileBytes;
      const isInPlace = header.number === 1 ? header.offset === front && header.end >= chunksAt : header.offset >= chunksAt;
      if (isOfHead && isInPlace) continue;
      const what = isOfHead ? "it has other parts of the bundle than a volume of this number" : "its header is not of the bundle whose head it has";
      throw fault("header", "header", [file], [header.number], `${nameOf(file)} is ${label}, volume ${header.number} of ${header.count}: ${what}`, header.count);
    }
    this.#checkNumbers(label);
    let at = front;
    for (const { file, header } of this.#volumes) {
      const its = `${nameOf(file)} is ${label}, volume ${header.number} of ${header.count}`;
      const bad = (/** @type {import("../types.js").Kind} */ code, /** @type {VolumeFault["what"]} */ what, /** @type {string} */ words) =>
        fault(code, what, [file], [header.number], `${its}${words}`, header.count);
      const bytes = HEADER_BYTES + front + header.end - header.offset;
      if (file.size < bytes) throw bad("truncated", "cut", `, and truncated: it has ${file.size} of ${bytes} bytes`);
      if (file.size > bytes) throw bad("trailing", "longer", `, and continues after its end, at byte ${bytes}`);
      if (header.offset !== at) throw bad("header", "gap", ", and does not begin where the volume before it ends");
      at = header.end;
    }
  }

  /** @param {string} label */
  #checkNumbers(label) {
    const { count } = this.#volumes[0].header;
    const again = this.#volumes.findIndex(({ header }, at) => header.number === this.#volumes[at - 1]?.header.number);
    if (again > 0) {
      const [one, other] = this.#volumes.slice(again - 1, again + 1);
      const { number } = other.header;
      throw fault("header", "twice", [one.file, other.file], [number], `${nameOf(other.file)} is ${label}, volume ${number} of ${count}, and so is ${nameOf(one.file)}`, count);
    }
    const there = new Set(this.#volumes.map(({ header }) => header.number));
    const missing = Array.from({ length: count }, (_, at) => at + 1).filter((number) => !there.has(number));
    if (missing.length === 0) return;
    throw fault("truncated", "missing", [], missing, `${numbersOf(missing)} of ${count} of ${label} ${missing.length === 1 ? "is" : "are"} missing`, count);
  }

  /**
   * Checks that each volume begins and ends where chunks do.
   * @param {import("../pkg/sealift_wasm.js").Places} places
   */
  checkCuts({ chunksAt, lengths }) {
    let [end, chunk] = [chunksAt, 0];
    for (const { file, header } of this.#volumes) {
      while (end < header.end && chunk < lengths.length) end += lengths[chunk++];
      if (end === header.end) continue;
      throw fault("header", "header", [file], [header.number], `${nameOf(file)}: the volume ends within a chunk`, header.count);
    }
  }

  /**
   * Names the volume from which the parts before the chunks are read, if one of them is damaged.
   * @param {SealiftError} error
   */
  blameFront(error) {
    return ["header", "layout", "index", "truncated"].includes(error.code) ? this.blame(error, 0) : error;
  }

  /**
   * Names the volume that has a damaged part of the bundle, unless the error says more.
   * @param {SealiftError} error
   * @param {number} offset Where the part begins in the bundle.
   */
  blame(error, offset) {
    const volume = this.#volumes.find(({ header }) => offset < header.end);
    if (!volume || error.volumes) return error;
    const { number, count } = volume.header;
    error.message = `${nameOf(volume.file)}, volume ${number} of ${count}: ${error.message}`;
    error.volumes = { what: error.code === "truncated" ? "cut" : "damaged", numbers: [number], count, files: [nameOf(volume.file)] };
    return error;
  }
}

/**
 * Returns numbers of volumes in words: `volume 2`, `volumes 2, 3 and 7`.
 * @param {number[]} numbers
 */
export function numbersOf(numbers) {
  const words = numbers.slice(0, LISTED).map(String);
  if (numbers.length > LISTED) words.push(`${numbers.length - LISTED} more`);
  const last = words.pop();
  return words.length === 0 ? `volume ${last}` : `volumes ${words.join(", ")} and ${last}`;
}

/**
 * @param {import("../types.js").Kind} code
 * @param {VolumeFault["what"]} what
 * @param {Blob[]} files The files at fault.
 * @param {number[]} numbers
 * @param {string} message
 * @param {number} [count]
 */
function fault(code, what, files, numbers, message, count) {
  const error = new SealiftError(code, message);
  error.volumes = { what, numbers, count, files: files.map(nameOf) };
  return error;
}

/** @param {Blob} file */
function nameOf(file) {
  return file instanceof File ? file.name : "a volume";
}

/**
 * @param {Uint8Array} one
 * @param {Uint8Array} other
 */
function isEqual(one, other) {
  return one.length === other.length && one.every((byte, at) => byte === other[at]);
}
