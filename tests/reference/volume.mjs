/** Volumes: a bundle in several files (volumes.md, whose sections are in brackets). Those of delta bundles are `unsupported`, as the bundles are. */
import { blake3 } from "./hashes.mjs";
import { concat, Cursor, equal, hex, need, readHead, sections, unzstd } from "./sealift.mjs";

const HEADER = 112;

/** The fields of a header (2). */
function parseHeader(bytes) {
  need("89534c564c0d0a1a".startsWith(hex(bytes.subarray(0, 8))), "header", "not a volume");
  need(bytes.length >= HEADER, "truncated", "the file ends within its header");
  const fields = new Cursor(bytes.subarray(8, HEADER), "header");
  const version = fields.u32();
  need(version === 0, "unsupported", `version ${version} of volumes`);
  need(equal(blake3(bytes.subarray(0, HEADER - 32)), bytes.subarray(HEADER - 32, HEADER)), "header", "header_blake3 does not agree");
  const [kind, reserved, number, count, headLen] = [fields.u16(), fields.u16(), fields.u16(), fields.u16(), fields.u32()];
  const [offset, len, fileLen, set] = [fields.u64(), fields.u64(), fields.u64(), fields.take(32)];
  const end = offset + len;
  need(kind === 0, "unsupported", `kind ${kind}`);
  need(reserved === 0, "header", "reserved bytes are not zero");
  need(number > 0 && number <= count, "header", "a number that is not between 1 and count");
  need(len > 0n && end <= fileLen, "header", "a slice that is empty or not in the bundle");
  need((number === count) === (end === fileLen), "header", "the last slice alone ends with the bundle");
  return { number, count, headLen, offset, end, fileLen, set };
}

/** A volume whose header and head are good (3, steps 1 and 2). */
function parse(bytes) {
  const header = parseHeader(bytes);
  const front = bytes.subarray(HEADER);
  const { root, len, signed } = readHead(front);
  const frontLen = BigInt(len) + root.layout.stored;
  const chunksAt = frontLen + root.index.stored;
  need(equal(header.set, blake3(signed)), "header", "set is that of another root");
  need(header.headLen === len && header.fileLen === chunksAt + root.maxima.chunks_stored, "header", "a length that is not that of the root");
  need(header.number > 1 || (header.offset === frontLen && header.end >= chunksAt), "header", "volume 1 without the index");
  return { ...header, root, front, head: front.subarray(0, len), frontLen: Number(frontLen), chunksAt };
}

/** Where chunks begin, and their digests (3, steps 4 and 5). */
function readChunks({ root, front, headLen, frontLen, chunksAt, number, offset, end }) {
  const stored = front.subarray(headLen, frontLen);
  need(BigInt(stored.length) === root.layout.stored, "truncated", "the file ends within the layout");
  need(equal(blake3(stored), root.layout.blake3), "layout", "the BLAKE3 of the stored layout does not agree");
  const layout = unzstd(stored, root.layout.len, root.maxima.window_log, "layout");
  const names = ["chunks", "groups", "pieces", "holes", "landmark?", , "repository?"];
  return sections(layout, "layout", names, { 6: "prefixes", 8: "recipes" }, ({ chunks, ...others }) => {
    for (const other of Object.values(others)) other.take(other.left); // they speak of the index
    const count = chunks.u32();
    const [codecs, lens, plain] = [chunks.take(count), chunks.planes(4, count), chunks.planes(4, count)];
    chunks.take(4 * count); // how many objects each has
    const digests = chunks.each(count, () => chunks.take(32));
    need(codecs.every((codec) => codec <= 1), "unsupported", "a chunk of another codec");
    need(lens.every((len, at) => len > 0 && plain[at] > 0 && (codecs[at] > 0 || len === plain[at])), "layout", "the lengths of a chunk");
    const starts = [chunksAt];
    for (const len of lens) starts.push(starts.at(-1) + BigInt(len));
    const isDeclared = BigInt(count) === root.maxima.chunks && starts.at(-1) === chunksAt + root.maxima.chunks_stored;
    need(isDeclared, "header", "the root says something else of the chunks");
    need(number === 1 || starts.includes(offset), "header", "the slice begins within a chunk");
    need(starts.includes(end), "header", "the slice ends within a chunk");
    return { starts, digests };
  });
}

/** The slice, after which the file ends (3, step 6). */
function sliceOf({ front, frontLen, offset, end }) {
  const slice = front.subarray(frontLen);
  need(BigInt(slice.length) >= end - offset, "truncated", "the file ends within its slice");
  need(BigInt(slice.length) === end - offset, "trailing", "bytes after the slice");
  return slice;
}

/** Checks a volume alone (3), and returns its content as the JSON beside a vector. */
export function contentAlone(bytes) {
  const volume = parse(bytes);
  const { root, offset, end, chunksAt, number, count } = volume;
  const { starts, digests } = readChunks(volume);
  const slice = sliceOf(volume);
  const part = (from, to) => slice.subarray(Number(from - offset), Number(to - offset));
  if (number === 1) need(equal(blake3(part(offset, chunksAt)), root.index.blake3), "index", "index_blake3 does not agree");
  const first = starts.indexOf(number === 1 ? chunksAt : offset);
  const chunks = starts.indexOf(end) - first;
  for (let chunk = first; chunk < first + chunks; chunk += 1) {
    need(equal(blake3(part(starts[chunk], starts[chunk + 1])), digests[chunk]), "chunk", `chunk ${chunk} is not what its digest says`);
  }
  const fields = { name: root.name, version: Number(root.version), number, count, first_chunk: first, chunks };
  return `${JSON.stringify(fields, null, 2)}\n`;
}

/** The bundle that is in a set, given in any order (4). */
export function join(files) {
  const volumes = files.map(parse);
  const [any] = volumes;
  need(volumes.every(({ head, count }) => equal(head, any.head) && count === any.count), "header", "a volume of another set");
  volumes.sort((one, other) => one.number - other.number);
  need(volumes.every(({ number }, at) => number !== volumes[at + 1]?.number), "header", "a number that is there twice");
  need(volumes.length === any.count, "truncated", "a number that is not there");
  const slices = volumes.map((volume) => {
    const slice = sliceOf(volume);
    readChunks(volume);
    return slice;
  });
  const follows = ({ offset }, at) => offset === (at > 0 ? volumes[at - 1].end : BigInt(any.frontLen));
  need(volumes.every(follows), "header", "a slice that does not begin where the one before ends");
  return concat([volumes[0].front.subarray(0, any.frontLen), ...slices]);
}
