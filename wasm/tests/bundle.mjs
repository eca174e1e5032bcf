// Bundles and the loop that feeds them to a reader, for the tests in this folder.

import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));
/** Where cargo builds. */
export const target = resolve(root, process.env.CARGO_TARGET_DIR ?? "target");
/** The program that `cargo build` makes. */
export const sealift = join(target, "debug/sealift");

/** A small signed bundle, the public half of its key, and its files' contents; with `more` bytes in a file of its own. */
export function packed({ more = 0 } = {}) {
  const desk = mkdtempSync(join(tmpdir(), "sealift-wasm-"));
  try {
    const [tree, key, file] = ["tree", "key", "os.sealift"].map((name) => join(desk, name));
    mkdirSync(join(tree, "folder"), { recursive: true });
    writeFileSync(join(tree, "empty"), "");
    writeFileSync(join(tree, "text"), "some text ".repeat(1000));
    writeFileSync(join(tree, "folder/large"), randomBytes(20_000));
    writeFileSync(join(tree, "folder/hole"), "");
    truncateSync(join(tree, "folder/hole"), 300_000);
    if (more > 0) writeFileSync(join(tree, "more"), randomBytes(more));
    execFileSync(sealift, ["key", "generate", "-o", key]);
    const identity = ["--name", "os", "--bundle-version", "7", "--compatible", "board", "--expires", "2100-01-01"];
    execFileSync(sealift, ["pack", tree, "-o", file, "--key", key, "--chunk-size", more > 0 ? "65536" : "4096", "--annotate", "by=\u202eme", ...identity]);
    const paths = ["empty", "text", "folder/large", "folder/hole", ...(more > 0 ? ["more"] : [])];
    const contents = Object.fromEntries(paths.map((path) => [path, readFileSync(join(tree, path))]));
    return { bytes: readFileSync(file), key: readFileSync(`${key}.pub`, "utf8").trim(), contents };
  } finally {
    rmSync(desk, { recursive: true });
  }
}

/** The vectors of the specification: what stands in their headers, by key, the input's bytes, and the content of one that is accepted. */
export function vectors() {
  const folder = join(root, "spec/vectors");
  return readdirSync(folder).filter((name) => name.endsWith(".vec")).map((name) => {
    const file = readFileSync(join(folder, name));
    const end = file.indexOf("\n\n");
    const keys = {};
    for (const line of file.subarray(0, end).toString().split("\n")) {
      const [key, value] = [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 1).trim()];
      (keys[key] ??= []).push(value);
    }
    const content = keys.expect[0] === "ok" ? JSON.parse(readFileSync(join(folder, name.replace(/vec$/, "json")), "utf8")) : undefined;
    return { name, keys, bytes: file.subarray(end + 2), content };
  });
}

/** What only a reader of one volume alone finds: here, the others of such a bundle are missing. */
const OF_ONE_ALONE = ["blake3", "list", "chunk", "left", "codec"].map((what) => `volume-layout-${what}.vec`).concat("volume-chunks.vec");

/** Returns the vectors of volumes, each with the files of its set. One that is for a volume alone has the good ones of its set beside it. */
export function volumeVectors() {
  const all = new Map(vectors().map((vector) => [vector.name, vector]));
  const ofName = (name) => all.get(`${name}.vec`).bytes;
  const good = [1, 2, 3, 4].map((number) => ofName(`good-volume-${number}`));
  const setOf = (bytes) => bytes.subarray(48, 80).toString("hex");
  const beside = ({ bytes }) => good.filter((other) => setOf(other) === setOf(bytes) && bytes.readUInt16LE(18) === 4 && other.readUInt16LE(16) !== bytes.readUInt16LE(16));
  const ofVolumes = [...all.values()].filter(({ keys }) => keys.check?.[0] === "volume");
  return ofVolumes.map((vector) => ({
    ...vector,
    files: [vector.bytes, ...(vector.keys.base?.map(ofName) ?? beside(vector))],
    expected: OF_ONE_ALONE.includes(vector.name) ? "truncated" : vector.keys.expect[0],
  }));
}

/** Returns the vectors that are bundles. The others are volumes, or for devices and publishers: requests, channels' lists, recovery files. */
export function bundleVectors() {
  return vectors().filter(({ keys }) => [undefined, "apply", "verify"].includes(keys.check?.[0]));
}

/**
 * Supplies a file, `size` bytes at a time at most until it is open, checks its chunks and finishes. `judge` sees the reader as soon as
 * there is a head. The chunks are given in groups of `group`, to each of `others` in turn.
 */
export function feed(reader, bytes, { size = Infinity, depth = "stored", judge, group = Infinity, others = [] } = {}) {
  const readers = [reader, ...others];
  for (const each of readers) supplyHead(each, bytes, size, each === reader ? judge : undefined);
  const { chunksAt, lengths } = reader.open();
  for (const each of others) each.open();
  const [own] = readers.map((each) => new Set(each.begin(depth)));
  let [offset, turn] = [chunksAt, 0];
  for (let first = 0; first < lengths.length; turn += 1) {
    let [end, length] = [first, 0];
    while (end < lengths.length && end - first < group && own.has(end) === own.has(first) && offset + length + lengths[end] <= bytes.length) {
      length += lengths[end++];
    }
    if (end === first) break; // the file has ended
    const worker = own.has(first) ? reader : readers[turn % readers.length];
    reader.take(worker.check(first, bytes.subarray(offset, offset + length)));
    [first, offset] = [end, offset + length];
  }
  while (reader.checkBare());
  return reader.finish(bytes.length);
}

function supplyHead(reader, bytes, size, judge) {
  let unjudged = judge;
  for (let step = reader.next(); !step.done; step = reader.next()) {
    const [offset, length] = step.need;
    const part = bytes.subarray(offset, offset + Math.min(length, size));
    if (part.length === 0) break; // a stream that has ended
    reader.supply(offset, part);
    if (unjudged && reader.head()) {
      unjudged(reader);
      unjudged = undefined;
    }
  }
}
