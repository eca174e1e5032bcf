// Bundles in volumes, by the package in Node. Run by: node --test wasm/tests/package-volumes.test.mjs

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtempSync, openAsBlob, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";

import { blake3 } from "../npm/src/blake3.js";
import { openBundle, verify } from "../npm/src/index.js";
import { packed, sealift, volumeVectors } from "./bundle.mjs";
import { wordOf } from "./policy.mjs";

const { bytes, key, contents } = packed({ more: 20 << 20 });
const trust = { allowedSigners: `os namespaces="sealift" ${key}`, compatible: ["board"] };
const folder = mkdtempSync(join(tmpdir(), "sealift-volumes-"));
after(() => rmSync(folder, { recursive: true }));
writeFileSync(join(folder, "os.sealift"), bytes);
execFileSync(sealift, ["split", join(folder, "os.sealift"), "--size", "6MiB", "-o", join(folder, "parts")], { stdio: "pipe" });
const paths = readdirSync(join(folder, "parts")).sort().map((name) => join(folder, "parts", name));
/** Each volume, as a file that has its name. */
const files = paths.map((path) => new File([readFileSync(path)], path.slice(path.lastIndexOf("/") + 1)));
const changed = (file, change) => file.arrayBuffer().then((buffer) => new File([change(Buffer.from(buffer))], file.name));
const flipped = (file, at) => changed(file, (bytes) => ((bytes[at < 0 ? bytes.length + at : at] ^= 1), bytes));

test("the vectors", async (context) => {
  const all = volumeVectors();
  assert.deepEqual(all.filter(({ expected }) => expected === "ok").map(({ name }) => name), [1, 2, 3, 4].map((number) => `good-volume-${number}.vec`).concat("good-volume-only.vec", "good-volumes.vec"));
  for (const { name, keys, files, expected } of all) {
    await context.test(name, async () => {
      const blobs = files.map((bytes) => new Blob([bytes]));
      for (const order of [blobs, [...blobs].reverse()]) assert.equal(await wordOf(openBundle, order, keys, { jobs: 2 }), expected);
    });
  }
  const { files: set, content } = all.find(({ name }) => name === "good-volumes.vec");
  const bundle = await openBundle(set.map((bytes) => new Blob([bytes])));
  assert.deepEqual([bundle.head.indexDigest, (await bundle.listed()).entries], [content.index_digest, content.entries.filter(({ path }) => path !== ".").length]);
  bundle.close();
});

test("all volumes in any order are the bundle that was split", async () => {
  assert.equal(files.length, 4);
  for (const order of [files, [...files].reverse(), await Promise.all(paths.map((path) => openAsBlob(path)))]) {
    const { head, deep, sha256 } = await verify(order, { ...trust, deep: true, sha256: true });
    assert.deepEqual([head.fileBytes, deep, sha256], [bytes.length, true, createHash("sha256").update(bytes).digest("hex")]);
  }
  const bundle = await openBundle([files[2], files[0], files[3], files[1]], trust);
  assert.deepEqual(bundle.volumes.map(({ file, number }) => [file, number]), files.map((file, at) => [file, at + 1]));
  for (const [path, content] of Object.entries(contents)) {
    assert(Buffer.from(await new Response(await bundle.open(path)).arrayBuffer()).equals(content), path);
  }
  bundle.close();
});

test("what is wrong is said of each volume by its number", async () => {
  const [one, two, three, four] = files;
  const label = "os version 7, volume 2 of 4";
  const other = join(folder, "other");
  execFileSync(sealift, ["split", join(folder, "os.sealift"), "--size", "8MiB", "-o", other], { stdio: "pipe" });
  const [, stranger] = readdirSync(other).sort();
  const asMany = join(folder, "as-many");
  execFileSync(sealift, ["split", join(folder, "os.sealift"), "--size", "5500KiB", "-o", asMany], { stdio: "pipe" });
  const [, name] = readdirSync(asMany).sort();
  const cases = [
    [[one, two, four], "truncated", "volume 3 of 4 of os version 7 is missing", { what: "missing", numbers: [3], count: 4, files: [] }],
    [[two], "truncated", "volumes 1, 3 and 4 of 4 of os version 7 are missing", { what: "missing", numbers: [1, 3, 4], count: 4, files: [] }],
    [[one, two, three, new File([two], "copy"), four], "header", `copy is ${label}, and so is ${two.name}`, { what: "twice", numbers: [2], count: 4, files: [two.name, "copy"] }],
    [[one, await changed(two, (bytes) => bytes.subarray(0, -1)), three, four], "truncated", `${two.name} is ${label}, and truncated: it has ${two.size - 1} of ${two.size} bytes`, { what: "cut" }],
    [[one, await changed(two, (bytes) => Buffer.concat([bytes, bytes.subarray(0, 1)])), three, four], "trailing", `${two.name} is ${label}, and continues after its end, at byte ${two.size}`, { what: "longer" }],
    [[one, new File([readFileSync(join(asMany, name))], "other"), three, four], "header", `other is ${label}, and does not begin where the volume before it ends`, { what: "gap", numbers: [2], count: 4 }],
    [[one, await flipped(two, 20), three, four], "header", `${two.name}: the header of the volume does not match its digest`, { what: "header", numbers: [] }],
    [[one, await changed(two, (bytes) => bytes.subarray(0, 60)), three, four], "truncated", `${two.name}: it ends within the header of the volume`, { what: "header" }],
    [[one, await flipped(two, -1), three, four], "chunk", undefined, { what: "damaged", numbers: [2], count: 4, files: [two.name] }],
    [[await flipped(one, 112 + 20), two, three, four], "header", undefined, { what: "other-set", numbers: [2] }],
    [[one, new File([readFileSync(join(other, stranger))], stranger), three, four], "header", `${stranger} is volume 2 of 3, and not of the same set as ${one.name}: of another bundle or another split, or of a copy with other signatures`, { what: "other-set", numbers: [2], count: 3 }],
  ];
  for (const [given, code, message, fault] of cases) {
    const error = await verify(given, trust).then(() => undefined, (error) => error);
    assert.equal(error?.code, code, message ?? JSON.stringify(fault));
    if (message) assert.equal(error.message, message);
    if (code === "chunk") assert.match(error.message, new RegExp(`^${two.name}, volume 2 of 4: chunk `));
    for (const [name, value] of Object.entries(fault)) assert.deepEqual(error.volumes[name], value, `${name} of ${error.message}`);
  }
  await assert.rejects(openBundle([]), { name: "TypeError", message: "the list of volumes is empty" });
  await assert.rejects(openBundle(paths), { name: "TypeError", message: /are Blobs/ });
  await assert.rejects(openBundle(new Blob([await two.arrayBuffer()])), { code: "header", message: /a volume of a bundle that was split/ });
});

test("a volume of a bundle that nobody trusts is refused for that, whatever is missing", async () => {
  await assert.rejects(verify([files[1]], { compatible: ["board"] }), { code: "untrusted" });
  let seen;
  await assert.rejects(openBundle([files[1]], { ...trust, onHead: (head, verdict) => (seen = [head.name, verdict.trusted]) }), { code: "truncated" });
  assert.deepEqual(seen, ["os", true]);
});

// https://github.com/BLAKE3-team/BLAKE3/blob/master/test_vectors/test_vectors.json: byte n of the input is n modulo 251.
test("BLAKE3 is the published one", () => {
  const known = {
    0: "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262",
    1: "2d3adedff11b61f14c886e35afa036736dcd87a74d27b5c1510225d0f592e213",
    1023: "10108970eeda3eb932baac1428c7a2163b0e924c9a9e25b35bba72b28f70bd11",
    1024: "42214739f095a406f3fc83deb889744ac00df831c10daa55189b5d121c855af7",
  };
  for (const [length, hash] of Object.entries(known)) {
    assert.equal(Buffer.from(blake3(Uint8Array.from({ length: Number(length) }, (_, at) => at % 251))).toString("hex"), hash, `${length} bytes`);
  }
  assert.throws(() => blake3(new Uint8Array(1025)), RangeError);
});
