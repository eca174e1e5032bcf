/**
 * A reader of Sealift bundles in plain JavaScript, without WebAssembly, for Node and browsers. It follows spec/core.md, whose sections are
 * in brackets, and reads full bundles of trees. Delta bundles and OSTree commits are `unsupported`. It ignores images and checks no
 * signature: `bundle.envelopes` has those of the file.
 *
 *     const bundle = new Bundle(new Uint8Array(await file.arrayBuffer())); // or a Rejected, which has the kind of failure
 *     for (const { depth, name, inode } of bundle.index.order) console.log(depth, name, bundle.index.inodes[inode].type);
 *     bundle.checkObjects(); // bundle.read(inode) checks what it returns, too
 */
import { Decompress } from "fzstd";
import { blake3, blockHashes, chainingValue, merge, verity, verityOf } from "./hashes.mjs";
import { hasEndlessWeights } from "./zstd.mjs";

/** A bundle is rejected: `kind` is a word of 11.1. */
export class Rejected extends Error {
  constructor(kind, message) { Object.assign(super(message), { kind }); }
}

export const need = (holds, kind, message) => {
  if (!holds) throw new Rejected(kind, message);
};

// The limits of this reader (4.3).
const [INDEX, CHUNK] = [2 ** 30, 2 ** 27];
const LIMITS = { index_len: INDEX, layout_len: INDEX, index_stored: INDEX + 2 ** 20, layout_stored: INDEX + 2 ** 20, chunk_len: CHUNK,
  chunk_stored: CHUNK + 2 ** 20, window_log: 27, depth: 4096, entries: 2 ** 24, paths: 2 ** 31, logical: 2 ** 42 };
const NAME = /^[A-Za-z0-9][A-Za-z0-9._+-]{0,127}$/;
const REF = /^[A-Za-z0-9_][A-Za-z0-9_.-]*(\/[A-Za-z0-9_][A-Za-z0-9_.-]*)*$/;
const COMPONENT = /^(?!\.{0,2}$)[^\0/]+$/;
const TYPES = { 1: "fifo", 2: "char", 4: "dir", 6: "block", 8: "file", 10: "symlink", 12: "socket" };
export const UTF8 = new TextDecoder("utf-8", { ignoreBOM: true });

export const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
export const latin1 = (bytes) => Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
export const equal = (a, b) => a.length === b.length && a.every((byte, at) => byte === b[at]);
const sum = (values) => values.reduce((total, value) => total + value, 0);
const largest = (values) => values.reduce((most, value) => (value > most ? value : most), 0);
export const isUtf8 = (bytes) => equal(new TextEncoder().encode(UTF8.decode(bytes)), bytes);
const ascends = (items, before) => items.every((item, at) => at === 0 || before(items[at - 1], item));

function bytesBefore(a, b) {
  const at = a.findIndex((byte, index) => byte !== b[index]);
  return at < 0 ? a.length < b.length : at < b.length && a[at] < b[at];
}

export function concat(parts) {
  const whole = new Uint8Array(sum(parts.map((part) => part.length)));
  parts.reduce((at, part) => (whole.set(part, at), at + part.length), 0);
  return whole;
}

/** The fields of one structure, one after the other (1). Numbers of 64 bits are BigInt. */
export class Cursor {
  constructor(bytes, kind) { Object.assign(this, { bytes, kind, at: 0 }); }
  get left() { return this.bytes.length - this.at; }
  u8() { return this.take(1)[0]; }
  u16() { return this.u8() + this.u8() * 2 ** 8; }
  u32() { return this.u16() + this.u16() * 2 ** 16; }
  u64() { return BigInt(this.u32()) + (BigInt(this.u32()) << 32n); }
  i64() { return BigInt.asIntN(64, this.u64()); }
  end() { need(this.left === 0, this.kind, "bytes are left after a structure's last field"); }

  take(count) {
    need(count <= this.left, this.kind, "a structure ends before its last field");
    const start = this.at;
    this.at += Number(count);
    return this.bytes.subarray(start, this.at);
  }

  /** The integers of `planes`: first the lowest byte of each, then the second-lowest. */
  planes(size, count) {
    const planes = Array.from({ length: size }, () => this.take(count));
    return Array.from({ length: Number(count) }, (_, at) => planes.reduceRight((value, plane) => value * 256 + plane[at], 0));
  }

  planes64(count) {
    const [low, high] = [this.planes(4, count), this.planes(4, count)];
    return low.map((value, at) => BigInt(value) + (BigInt(high[at]) << 32n));
  }

  /** `count` values, each of at least one byte. */
  each(count, read) {
    need(count <= this.left, this.kind, "more rows than the bytes that follow can hold");
    return Array.from({ length: Number(count) }, read);
  }
}

/**
 * Gives `parse` the payloads of a section list by name (3.1), and checks that it reads each to its end. `names` has those that this reader
 * knows, from id 1 on; one with a question mark is a hint and may be absent. `beyond` names, by id, those of other parts of the format.
 */
export function sections(bytes, kind, names, beyond, parse) {
  const [cursor, found] = [new Cursor(bytes, kind), {}];
  for (let last = -1, id; cursor.left > 0; last = id) {
    id = cursor.u16();
    const flags = cursor.u16();
    const payload = new Cursor(cursor.take(cursor.u64()), kind);
    need(last < id && flags <= 1, kind, "section ids do not ascend, or unknown flags");
    const name = names[id - 1];
    if (name) {
      need(flags === (name.endsWith("?") ? 0 : 1), kind, `the flags of section ${id}`);
      found[name.replace("?", "")] = payload;
    } else {
      need(flags === 0, "unsupported", beyond[id] ?? `section ${id} of the ${kind} is not known`);
      need(kind !== "index" && !beyond[id], kind, `the flags of section ${id}, or an index has none`);
    }
  }
  need(names.every((name) => name.endsWith("?") || found[name]), kind, "a section is missing");
  const parsed = parse(found);
  for (const name of names) found[name?.replace("?", "")]?.end();
  return parsed;
}

/** The root: identity, contents, maxima and the rest (4). Fields have the names of the specification. */
function parseRoot(bytes) {
  const names = ["identity", "contents", "maxima", "annotations?"];
  return sections(bytes, "header", names, { 5: "a delta bundle", 9: "recipes" }, ({ identity, contents, maxima, annotations }) => {
    const root = { version: identity.u64(), created: identity.i64(), expires: identity.i64() };
    root.name = latin1(identity.take(identity.u8()));
    root.compatible = identity.each(identity.u16(), () => latin1(identity.take(identity.u8())));
    root.index = { digest: contents.take(32), len: contents.u64(), stored: contents.u64(), blake3: contents.take(32) };
    root.layout = { len: contents.u64(), stored: contents.u64(), blake3: contents.take(32) };
    root.maxima = { piece_log2: maxima.u8(), window_log: maxima.u8(), refs: maxima.u16(), depth: maxima.u32() };
    for (const name of ["entries", "paths", "inodes", "objects", "logical", "disk", "chunks", "chunks_stored"]) root.maxima[name] = maxima.u64();
    Object.assign(root.maxima, { chunk_len: maxima.u32(), chunk_stored: maxima.u32() });
    const pair = () => [latin1(annotations.take(annotations.u8())), annotations.take(annotations.u16())];
    const pairs = annotations ? annotations.each(annotations.u16(), pair) : [];
    const keys = pairs.map(([key]) => key);
    root.annotations = pairs.map(([key, value]) => [key, UTF8.decode(value)]);
    const isGood = (!annotations || pairs.length > 0) && pairs.every(([, value]) => isUtf8(value));
    need(isGood, "header", "no annotations, or one that is not UTF-8");
    need([root.name, ...root.compatible, ...keys].every((name) => NAME.test(name)), "header", "the form of a name, tag or key");
    need([root.compatible, keys].every((names) => ascends(names, (a, b) => a < b)), "header", "tags or annotations do not ascend");
    const { piece_log2: piece, window_log: window } = root.maxima;
    need(piece >= 12 && piece <= 26 && window >= 10 && window <= 31, "header", "piece_log2 or window_log is out of its range");
    return root;
  });
}

/** The envelopes of the signature area (5): `before` is everything in the file before area_blake3. */
function parseArea(area, before, digest) {
  const envelopes = [];
  for (let kind; (kind = area.u16()) !== 0;) envelopes.push({ kind, body: area.take(area.u32()) });
  const isBefore = (a, b) => a.kind < b.kind || (a.kind === b.kind && bytesBefore(a.body, b.body));
  need(ascends(envelopes, isBefore), "header", "envelopes do not ascend");
  need(area.take(area.left).every((byte) => byte === 0), "header", "fill that is not zero");
  need(equal(blake3(before), digest), "header", "area_blake3 does not agree");
  return envelopes;
}

/** Decodes one zstd frame, after checking the headers of the frame and of its blocks (8.1). */
export function unzstd(bytes, size, windowLog, kind) {
  const frame = new Cursor(bytes, kind);
  need(frame.u32() === 0xfd2fb528, kind, "not a zstd frame");
  const descriptor = frame.u8();
  need((descriptor & 0x1f) === 0, kind, "the frame has a dictionary id, a checksum or reserved bits");
  const [isSingle, width] = [(descriptor & 0x20) !== 0, descriptor >> 6];
  const exponent = isSingle ? 0 : frame.u8();
  need(isSingle || width > 0, kind, "the frame does not state its content size");
  const content = [() => frame.u8(), () => frame.u16() + 256, () => frame.u32(), () => frame.u64()][width]();
  need(BigInt(content) === BigInt(size), kind, "the frame's content size is not the declared one");
  const window = isSingle ? Number(content) : 2 ** (10 + (exponent >> 3)) * (1 + (exponent & 7) / 8);
  need(window <= 2 ** windowLog, kind, "the frame's window is over the bundle's");
  for (let isLast = 0; !isLast;) {
    const header = frame.u16() + frame.u8() * 2 ** 16;
    isLast = header & 1;
    const [type, length] = [(header >> 1) & 3, header >> 3];
    need(type !== 3 && length <= Math.min(window, 2 ** 17), kind, "a block of a reserved type, or of too many bytes");
    const block = frame.take(type === 1 ? 1 : length); // type 1 is one repeated byte
    need(type !== 2 || !hasEndlessWeights(block), kind, "weights of a Huffman tree that are read from no bits");
  }
  frame.end();
  const parts = [];
  let left = Number(size);
  try {
    new Decompress((part) => {
      left -= part.length;
      if (left >= 0) parts.push(part);
    }).push(bytes, true);
  } catch (error) {
    throw new Rejected(kind, `zstd: ${error.message}`);
  }
  need(left === 0, kind, "the frame does not hold what it states");
  return concat(parts);
}

/** The index (6): the tables' columns, the fields of inodes by type, and the entries in tree order. */
function parseIndex(bytes) {
  const names = ["refs", "entries", "inodes", "directories", "regulars", "symlinks", "devices", "attributes", "objects", "verity"];
  const index = sections(bytes, "index", names, { 11: "OSTree" }, (found) => {
    const index = { refs: parseRefs(found.refs) };
    const objects = found.objects.u64();
    index.sizes = found.objects.planes64(objects);
    index.ids = found.objects.each(objects, () => found.objects.take(32));
    found.objects.end();
    need(index.sizes.every((size) => size < 2n ** 63n), "limit", "an object of more than 2^63-1 bytes");
    need(new Set(index.ids.map(hex)).size === index.ids.length, "index", "an object stands twice");
    index.verity = found.verity.take(32);
    const rows = parseAttributes(found.attributes);
    const inodes = found.inodes.u64();
    const used = found.inodes.planes(4, inodes);
    index.mtime = found.inodes.planes64(inodes).map((time) => BigInt.asIntN(64, time));
    index.mtimeNs = found.inodes.planes(4, inodes);
    const firsts = [...new Set(used)]; // in the order of their first use by inodes
    need(firsts.length === rows.length && firsts.every((row, at) => row === at), "index", "attribute rows are out of order or left");
    need(index.mtimeNs.every((nanoseconds) => nanoseconds < 10 ** 9), "index", "nanoseconds");
    index.inodes = used.map((row) => rows[row]);
    parseTypes(index, found);
    const entries = found.entries.u64();
    const [lengths, links] = [found.entries.take(entries), found.entries.planes(4, entries)];
    index.entries = links.map((link, at) => ({ name: found.entries.take(lengths[at]), link }));
    return index;
  });
  index.order = layDown(index);
  need(index.entries.every(({ name }) => COMPONENT.test(latin1(name))), "path", "a name that an entry must not have");
  return index;
}

/** The names of the trees, row by row (6.1). */
function parseRefs(table) {
  const refs = [];
  for (let count = table.u16(); count > 0; count -= 1) {
    const kind = table.u8();
    need(kind === 0, "unsupported", `a ref of kind ${kind}`);
    const name = latin1(table.take(table.u8()));
    need(REF.test(name) && (refs.at(-1) ?? "") < name, "index", "the form of a ref's name, or they do not ascend");
    refs.push(name);
  }
  need(refs.length > 0, "index", "no refs");
  table.end();
  return refs;
}

/** Type, permissions, owner and extended attributes (6.4). */
function parseAttributes(table) {
  const isForm = ({ name, value }) => name.length > 0 && !name.includes(0) && value.length <= 65536;
  const texts = new Set();
  const rows = table.each(table.u32(), () => {
    const start = table.at;
    const row = { mode: table.u16(), uid: table.u32(), gid: table.u32() };
    row.type = TYPES[row.mode >> 12];
    need(row.type && Math.max(row.uid, row.gid) < 2 ** 32 - 1, "index", "a mode or an owner that is none");
    row.xattrs = table.each(table.u16(), () => ({ name: table.take(table.u8()), value: table.take(table.u32()) }));
    const isGood = row.xattrs.every(isForm) && ascends(row.xattrs, (a, b) => bytesBefore(a.name, b.name));
    need(isGood, "index", "the form of an extended attribute, or they do not ascend");
    texts.add(hex(table.bytes.subarray(start, table.at)));
    return row;
  });
  need(texts.size === rows.length, "index", "an attribute row stands twice");
  return rows;
}

/** By inode, the fields of its type (6.3). */
function parseTypes(index, found) {
  const inodes = (...types) => [...index.inodes.keys()].filter((inode) => types.includes(index.inodes[inode].type));
  const byInode = (numbers, values) => new Map(numbers.map((inode, at) => [inode, values[at]]));
  const [directories, files, links, devices] = [inodes("dir"), inodes("file"), inodes("symlink"), inodes("char", "block")];
  index.children = byInode(directories, found.directories.planes(4, directories.length));
  const [major, minor] = [found.devices.planes(4, devices.length), found.devices.planes(4, devices.length)];
  index.device = byInode(devices, major.map((number, at) => ({ major: number, minor: minor[at] })));
  const targets = found.symlinks.planes(2, links.length).map((length) => found.symlinks.take(length));
  need(targets.every((target) => target.length > 0 && target.length < 4096 && !target.includes(0)), "index", "the form of a symbolic link's target");
  index.target = byInode(links, targets);
  let next = 0;
  const numbers = found.regulars.planes(4, files.length).map((value) => {
    need(value <= next, "index", "an object is used before it has come");
    return value > 0 ? value - 1 : next++;
  });
  need(next === index.ids.length, "index", "objects are left over or missing");
  index.object = byInode(files, numbers);
}

/** The bytes of all paths (4.3). An entry is after that of its directory. */
function pathsLen(order) {
  const [lens, isRoot] = [new Map(), ({ above }) => above === undefined];
  let total = 0;
  for (const entry of order) {
    const len = isRoot(entry) ? 0 : lens.get(entry.above) + entry.name.length;
    lens.set(entry.inode, isRoot(entry) ? 0 : len + 1);
    total += len;
  }
  return total;
}

/** Each root and entry in tree order (6.1), with the inode of the directory above it. */
function layDown({ refs, inodes, entries, children }) {
  const order = [];
  let [inode, entry] = [0, 0];
  for (const ref of refs) {
    const root = inode++;
    need(inodes[root]?.type === "dir", "index", "a ref's root is not a directory");
    order.push({ ref, depth: 0, above: undefined, name: new Uint8Array(), inode: root });
    const waiting = [{ above: root, depth: 1 }]; // the directories whose blocks are still to come, the next one last
    while (waiting.length > 0) {
      const { above, depth } = waiting.pop();
      const block = entries.slice(entry, entry + children.get(above));
      entry += children.get(above);
      const isGood = entry <= entries.length && ascends(block, (a, b) => bytesBefore(a.name, b.name));
      need(isGood, "index", "entries are missing, or the names of a directory do not ascend");
      const below = [];
      for (const { name, link } of block) {
        const number = link > 0 ? link - 1 : inode++;
        need(root <= number && number < inode && inode <= inodes.length, "index", "a link to no earlier inode of its ref, or too few");
        const isDirectory = inodes[number].type === "dir";
        need(!isDirectory || link === 0, "index", "a link to a directory");
        if (isDirectory) below.push({ above: number, depth: depth + 1 });
        order.push({ ref, depth, above, name, inode: number });
      }
      while (below.length > 0) waiting.push(below.pop());
    }
  }
  need(entry === entries.length && inode === inodes.length, "index", "entries or inodes are left over");
  return order;
}

/** The data between two offsets of an object, without its holes (7.1). */
function spans(holes, start, end) {
  const runs = [];
  for (const [hole, after] of holes) {
    if (hole >= end) break;
    if (start < hole) runs.push([start, hole]);
    start = Math.max(start, after);
  }
  if (start < end) runs.push([start, end]);
  return runs;
}

/** By object the start and end of each of its holes (7.1). */
function parseHoles(table, sizes) {
  const count = table.u32();
  const [objects, extents] = [table.planes(4, count), table.planes(4, count)];
  const [starts, lens] = [table.planes64(sum(extents)), table.planes64(sum(extents))];
  const isLong = extents.every((many) => many > 0) && lens.every((len) => len >= 16n);
  need(isLong && ascends(objects, (a, b) => a < b), "layout", "objects with holes do not ascend, or have none of 16 blocks");
  const holes = new Map();
  let at = 0;
  for (const [row, object] of objects.entries()) {
    const own = starts.slice(at, at + extents[row]).map((start, hole) => [start * 4096n, (start + lens[at + hole]) * 4096n]);
    at += extents[row];
    const isInside = object < sizes.length && own.at(-1)[1] <= BigInt(sizes[object]); // whole blocks, since both ends are
    need(isInside && ascends(own, (a, b) => a[1] < b[0]), "layout", "holes touch, do not ascend or pass an object's whole blocks");
    holes.set(object, own.map(([start, end]) => [Number(start), Number(end)]));
  }
  return holes;
}

/** How the file stores the objects (7): its chunks, and by object its parts, each with the chunk that holds its data. */
function parseLayout(bytes, sizes, ids, piece) {
  return sections(bytes, "layout", ["chunks", "groups", "pieces", "holes", "landmark?", , "repository?"], { 6: "prefixes", 8: "recipes" }, (found) => {
    const { chunks, groups, pieces } = found;
    const count = chunks.u32();
    const [codecs, stored, lens, objects] = [chunks.take(count), ...[0, 1, 2].map(() => chunks.planes(4, count))];
    const digests = chunks.each(count, () => chunks.take(32));
    chunks.end();
    for (const codec of codecs) need(codec <= 1, "unsupported", `codec ${codec}`, codec <= 3 ? "prefixes" : undefined);
    const isLen = (len, at) => stored[at] > 0 && len > 0 && (codecs[at] > 0 || stored[at] === len);
    need(lens.every(isLen), "layout", "the lengths of a chunk");
    const steps = groups.planes(4, sum(objects));
    const rows = sum(sizes.filter((size) => size > piece).map((size) => Math.ceil(size / piece)));
    const [named, values] = [pieces.planes(4, rows), pieces.each(rows, () => pieces.take(32))];
    const holes = parseHoles(found.holes, sizes);
    need(found.landmark === undefined || found.landmark.u32() + found.landmark.u32() <= count, "layout", "the landmark is beyond the chunks");
    need(!found.repository, "layout", "the files of a repository, and no commit of it");
    const layout = { codecs, stored, lens, digests, holes, parts: new Map() };
    const dataLen = (object, start, end) => sum(spans(holes.get(object) ?? [], start, end).map(([from, to]) => to - from));
    layout.data = sizes.map((size, object) => dataLen(object, 0, size));

    // Whole objects in groups (7.2).
    let [last, step] = [-1, 0];
    const lone = new Map([[0, 0]]); // the chunks that are pieces, by number + 1, and their lengths; 0 names none
    for (const [chunk, members] of objects.entries()) {
      let at = 0;
      for (const end = step + members; step < end; step += 1) {
        last = (last + 1 + steps[step]) % 2 ** 32;
        const isGood = sizes[last] <= piece && layout.data[last] > 0 && !layout.parts.has(last);
        need(isGood, "layout", "a group has an object that is not small, has no data or stands twice");
        layout.parts.set(last, [{ chunk, at, start: 0, end: sizes[last] }]);
        at += layout.data[last];
      }
      if (members === 0) lone.set(chunk + 1, lens[chunk]);
      else need(at === lens[chunk], "layout", "a group of another length");
    }

    // Objects in pieces (7.3), and those without data, which are in no chunk.
    let row = 0;
    for (const [object, size] of sizes.entries()) {
      const [parts, first] = [[], row];
      for (let start = 0; size > piece && start < size; start += piece, row += 1) {
        const end = Math.min(start + piece, size);
        need(lone.get(named[row]) === dataLen(object, start, end), "layout", "a piece of another length, or in no such chunk");
        parts.push({ chunk: named[row] > 0 ? named[row] - 1 : undefined, at: 0, start, end, value: values[row] });
      }
      if (size > piece) {
        layout.parts.set(object, parts);
        need(equal(merge(values.slice(first, row)), ids[object]), "layout", "chaining values of another object");
      } else if (layout.data[object] === 0) {
        layout.parts.set(object, [{ chunk: undefined, at: 0, start: 0, end: size }]);
      }
    }
    need(layout.parts.size === sizes.length, "layout", "an object is in no group");
    need(new Set([0, ...named]).size === lone.size, "layout", "a chunk that no piece names");
    return layout;
  });
}

/** The space that the inodes take on a disk (4.4). */
function diskLen({ order, inodes, sizes, object, target }, { holes }) {
  const names = new Map();
  for (const { above, name } of order) names.set(above, (names.get(above) ?? 0) + 16 + name.length);
  const ofObject = sizes.map((size, number) => Math.ceil(size / 4096) - sum((holes.get(number) ?? []).map(([start, end]) => (end - start) / 4096)));
  return 4096 * sum(inodes.map(({ type, xattrs }, inode) => {
    const own = type === "file" ? ofObject[object.get(inode)] : type === "dir" ? 1 + Math.floor((names.get(inode) ?? 0) / 4096) : 0;
    const beside = sum(xattrs.map(({ name, value }) => name.length + value.length)) - 64;
    return own + (target.get(inode)?.length > 59 ? 1 : 0) + Math.ceil(Math.max(0, beside) / 4096);
  }));
}

/** The head (2 to 5): root, envelopes, its length and the signed bytes. */
export function readHead(bytes) {
  const file = new Cursor(bytes, "truncated");
  need("89534c46540d0a1a".startsWith(hex(bytes.subarray(0, 8))), "header", "not a Sealift bundle"); // (11.2)
  const preamble = new Cursor(file.take(32), "header"); // (3)
  const [, version, rootLen, reserved] = [preamble.take(8), preamble.u32(), preamble.u32(), preamble.take(16)];
  need(version === 0, "unsupported", `version ${version} of the format`);
  need(rootLen >= 1 && rootLen <= 65536 && reserved.every((byte) => byte === 0), "header", "root_len or reserved bytes");
  const [rootBytes, signed, areaLen] = [file.take(rootLen), bytes.subarray(0, file.at), file.u32()];
  need(areaLen >= 64 && areaLen <= 2 ** 20, "header", "area_len is out of its range");
  const [area, before, digest] = [file.take(areaLen - 36), bytes.subarray(0, file.at), file.take(32)];
  const root = parseRoot(rootBytes);
  const envelopes = parseArea(new Cursor(area, "header"), before, digest);
  const { index, layout, maxima } = root;
  const parts = { index_len: index.len, layout_len: layout.len, index_stored: index.stored, layout_stored: layout.stored };
  const wanted = { ...maxima, ...parts };
  for (const [name, limit] of Object.entries(LIMITS)) need(wanted[name] <= limit, "limit", name);
  need(BigInt(file.at) + layout.stored + index.stored + maxima.chunks_stored < 2n ** 64n, "limit", "the file's length");
  return { root, envelopes, len: file.at, signed };
}

/** A bundle whose head, index and layout are good (2). */
export class Bundle {
  #decoded = {};

  constructor(bytes) {
    const { root, envelopes, len } = readHead(bytes);
    Object.assign(this, { root, envelopes });
    const { index, layout, maxima } = root;
    const file = new Cursor(bytes, "truncated");
    file.take(len);

    // The order of 11.2: the index is compared with its maxima before the layout is parsed.
    const storedLayout = this.#part(file, layout, "layout");
    const plain = this.#part(file, index, "index");
    need(equal(verity(plain), index.digest), "index", "index_digest does not agree");
    this.index = parseIndex(plain);
    const { order, sizes } = this.index;
    const logical = [...this.index.object.values()].reduce((total, object) => total + sizes[object], 0n);
    need(logical < 2n ** 64n, "limit", "a sum passes 2^64-1");
    this.#agree({ refs: this.index.refs.length, depth: largest(order.map(({ depth }) => depth)), entries: this.index.entries.length });
    this.#agree({ paths: pathsLen(order) });
    this.#agree({ inodes: this.index.inodes.length, objects: sizes.length, logical });
    this.index.sizes = sizes.map(Number); // none exceeds logical, which has a limit
    this.layout = parseLayout(storedLayout, this.index.sizes, this.index.ids, 2 ** maxima.piece_log2);
    const { lens, stored } = this.layout;
    this.#agree({ disk: diskLen(this.index, this.layout), chunks: lens.length, chunks_stored: sum(stored) });
    this.#agree({ chunk_len: largest(lens), chunk_stored: largest(stored) });
    this.chunks = stored.map((length) => file.take(length));
    need(file.left === 0, "trailing", "bytes after the last chunk");
  }

  /** The decoded layout or index (4.2). */
  #part(file, { len, stored, blake3: digest }, kind) {
    const bytes = file.take(stored);
    need(equal(blake3(bytes), digest), kind, "the BLAKE3 of the stored bytes does not agree");
    return unzstd(bytes, len, this.root.maxima.window_log, kind);
  }

  /** Compares what was found with the root's maxima, which are exact (4.3). */
  #agree(found) {
    for (const [name, value] of Object.entries(found)) {
      need(BigInt(value) === BigInt(this.root.maxima[name]), "header", `${name} is ${value}, and the root says otherwise`);
    }
  }

  /** The content of an inode that is a file. */
  read(inode) { return concat([...this.parts(this.index.object.get(inode))]); }

  /** The content of an object, piece by piece, each of them checked (8). */
  *parts(object) {
    for (const { chunk, at, start, end, value } of this.layout.parts.get(object)) {
      const [plain, data] = [new Uint8Array(end - start), chunk === undefined ? new Uint8Array() : this.#decode(chunk)];
      let from = at;
      for (const [first, after] of spans(this.layout.holes.get(object) ?? [], start, end)) {
        plain.set(data.subarray(from, from + after - first), first - start);
        from += after - first;
      }
      const isGood = value ? equal(chainingValue(plain, start), value) : equal(blake3(plain), this.index.ids[object]);
      need(isGood, "object", `object ${object} is not what its id says`);
      yield plain;
    }
  }

  /** A chunk's stored bytes, compared with their digest (7.2). */
  #stored(chunk) {
    need(equal(blake3(this.chunks[chunk]), this.layout.digests[chunk]), "chunk", `chunk ${chunk} is not what its digest says`);
    return this.chunks[chunk];
  }

  #decode(chunk) {
    if (this.#decoded.chunk === chunk) return this.#decoded.plain;
    const [stored, { codecs, lens }] = [this.#stored(chunk), this.layout];
    const plain = codecs[chunk] === 0 ? stored : unzstd(stored, lens[chunk], this.root.maxima.window_log, "chunk");
    this.#decoded = { chunk, plain };
    return plain;
  }

  /** Compares each chunk with its digest. */
  checkChunks() { this.chunks.forEach((_, chunk) => this.#stored(chunk)); }

  /** Checks all content (8). */
  checkObjects() {
    const digests = [];
    for (const object of this.layout.parts.keys()) { // chunk after chunk, so that each group is decoded once
      const hashes = [];
      for (const plain of this.parts(object)) hashes.push(blockHashes(plain));
      digests[object] = verityOf(this.index.sizes[object], concat(hashes));
    }
    need(equal(verity(concat(digests)), this.index.verity), "index", "verity(T) does not agree");
  }
}
