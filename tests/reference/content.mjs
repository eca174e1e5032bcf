/** What a bundle contains, as the JSON beside a vector (spec/vectors/README.md). */
import { hex, isUtf8, latin1, UTF8 } from "./sealift.mjs";

/** The file's text: one key per line; in a list of objects, one row per line. */
export function content(bundle) {
  const { name, version, created, expires, compatible, annotations, index } = bundle.root;
  const unknown = bundle.envelopes.map(({ kind }) => kind).filter((kind) => kind > 2);
  const fields = { name, version, created, expires, compatible, annotations: new Map(annotations) };
  Object.assign(fields, { unknown_envelopes: unknown, index_digest: hex(index.digest) });
  const lines = Object.entries(fields).map(([key, value]) => `  "${key}": ${json(value)}`);
  const rows = { refs: bundle.index.refs.map((ref) => ({ name: ref, kind: "tree" })), entries: [...entries(bundle.index)] };
  for (const [key, values] of Object.entries(rows)) lines.push(`  "${key}": [\n${values.map((row) => `    ${json(row)}`).join(",\n")}\n  ]`);
  return `{\n${lines.join(",\n")}\n}\n`;
}

/** A row for each root and entry in tree order. */
function* entries({ order, inodes, sizes, ids, object, target, device, mtime, mtimeNs }) {
  const paths = new Map();
  for (const { ref, depth, above, name, inode } of order) {
    const { type, mode, uid, gid, xattrs } = inodes[inode];
    const path = depth > 0 ? paths.get(above) + shown(name) : ".";
    if (type === "dir") paths.set(inode, depth > 0 ? `${path}/` : "");
    const row = { ref, path, type, mode: mode & 0o7777, uid, gid, mtime: mtime[inode], mtime_ns: mtimeNs[inode] };
    if (type === "file") Object.assign(row, { size: sizes[object.get(inode)], id: hex(ids[object.get(inode)]) });
    if (type === "symlink") row.target = shown(target.get(inode));
    Object.assign(row, device.get(inode));
    if (xattrs.length > 0) row.xattrs = new Map(xattrs.map((xattr) => [shown(xattr.name), hex(xattr.value)]));
    yield { ...row, inode };
  }
}

const HIDDEN = /[%\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/;

/** A name as text: `%` and two digits replace each byte that is not UTF-8 or that a terminal or a page would interpret. */
function shown(name) {
  const isPlain = (bytes) => isUtf8(bytes) && !HIDDEN.test(UTF8.decode(bytes));
  if (isPlain(name)) return UTF8.decode(name);
  let text = "";
  for (let at = 0, length; at < name.length; at += length) {
    length = name[at] < 0x80 ? 1 : name[at] < 0xe0 ? 2 : name[at] < 0xf0 ? 3 : 4;
    if (!isUtf8(name.subarray(at, at + length))) length = 1;
    const bytes = name.subarray(at, at + length);
    text += isPlain(bytes) ? UTF8.decode(bytes) : latin1(bytes).replace(/[^]/g, (byte) => `%${hex([byte.charCodeAt(0)]).toUpperCase()}`);
  }
  return text;
}

/** JSON in which a Map is an object whose keys keep their order, and a BigInt is a number. */
function json(value) {
  if (typeof value === "bigint") return String(value);
  if (Array.isArray(value)) return `[${value.map(json).join(",")}]`;
  if (typeof value !== "object") return JSON.stringify(value);
  const pairs = value instanceof Map ? [...value] : Object.entries(value);
  return `{${pairs.map(([key, own]) => `${JSON.stringify(key)}:${json(own)}`).join(",")}}`;
}
