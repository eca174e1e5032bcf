// The reader in Node, as `cargo xtask web` builds it. Run by: node --test wasm/tests/node.test.mjs

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { bytes as words } from "../npm/src/page/words.js";
import { instantiate } from "../npm/pkg/sealift_wasm.js";
import { bundleVectors, feed, packed, sealift, vectors } from "./bundle.mjs";
import { expectationOf, isRead, policyOf } from "./policy.mjs";

const { Reader, checkPolicy } = instantiate(new WebAssembly.Module(readFileSync(new URL("../npm/pkg/sealift_wasm_bg.wasm", import.meta.url))));

const { bytes, key, contents } = packed();
/** A key that did not sign it. */
const { key: otherKey } = packed();
const SIZES = [Infinity, 1, 1000];

/** The code of what `run` throws, or what it returns. */
function outcome(run) {
  try {
    return run();
  } catch (error) {
    assert(error instanceof Error && error.code, error);
    return error.code;
  }
}

/** The verdict on the packed bundle. */
function judged(signers, options) {
  let verdict;
  feed(new Reader(bytes.length), bytes, { judge: (reader) => (verdict = reader.judge(signers, options)) });
  return verdict;
}

test("no function returns a bare reference, on which Node 20's optimizer ends the process", () => {
  const types = readFileSync(new URL("../npm/pkg/sealift_wasm_bg.wasm.d.ts", import.meta.url), "utf8");
  const functions = types.match(/^export const .*=>.*;$/gm);
  assert(functions.length > 5);
  assert.deepEqual(functions.filter((line) => line.endsWith("=> any;")), []);
});

test("a good bundle, however it comes", () => {
  for (const size of SIZES) {
    for (const depth of ["objects", "stored"]) {
      for (const length of [bytes.length, undefined]) {
        const summary = feed(new Reader(length), bytes, { size, depth });
        assert.deepEqual(summary, { entries: 5, files: 4, bytes: 330_000 });
      }
    }
  }
});

test("chunks are checked in any order, by several readers", () => {
  const readers = () => [0, 1, 2].map(() => new Reader(bytes.length));
  const [first, ...others] = readers();
  assert.deepEqual(feed(first, bytes, { depth: "objects", group: 1, others }), { entries: 5, files: 4, bytes: 330_000 });

  const reader = new Reader(bytes.length);
  feed(reader, bytes);
  reader.begin("objects");
  const { chunksAt, lengths } = reader.open();
  assert(lengths.length > 3);
  const offsets = [...lengths].map((_, at) => chunksAt + lengths.slice(0, at).reduce((sum, length) => sum + length, 0));
  for (let at = lengths.length - 1; at >= 0; at -= 1) {
    reader.take(reader.check(at, bytes.subarray(offsets[at], offsets[at] + lengths[at])));
  }
  while (reader.checkBare());
  assert.equal(reader.finish(bytes.length).entries, 5);
});

test("files of any number of blocks have the digests that the program found", () => {
  const folder = mkdtempSync(join(tmpdir(), "sealift-wasm-"));
  try {
    mkdirSync(join(folder, "tree"));
    // Blocks of several files are hashed side by side; from the 129th on the tree of a file has several itself.
    const whole = [0, 1, 2, 3, 4, 5, 6, 7, 9, 127, 128, 129, 256].map((blocks) => blocks * 4096);
    const sizes = [...whole, ...whole.map((size) => size + 1), ...whole.slice(1).map((size) => size - 1), 100, 200, 300];
    for (const [number, size] of sizes.entries()) writeFileSync(join(folder, "tree", String(number)), randomBytes(size));
    const file = join(folder, "os.sealift");
    execFileSync(sealift, ["pack", join(folder, "tree"), "-o", file, "--name", "os", "--bundle-version", "7"], { stdio: "pipe" });
    const bytes = readFileSync(file);
    const reader = new Reader(bytes.length);
    // The index has a digest of all of them, with which they are compared.
    const { files } = feed(reader, bytes, { depth: "objects" });
    assert.equal(files, sizes.length);
    assert.equal(reader.digests().length, 32 * new Set(sizes.map((size, number) => size === 0 ? "empty" : number)).size);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("what was not checked is missed", () => {
  const reader = new Reader(bytes.length);
  feed(reader, bytes);
  reader.begin("objects");
  while (reader.checkBare());
  assert.throws(() => reader.finish(bytes.length), { code: "index" });
  assert.throws(() => reader.take(new Uint8Array([1, 2, 3])), TypeError);
});

test("the head says what the root states", () => {
  let head;
  feed(new Reader(), bytes, { judge: (reader) => (head = reader.head()) });
  const { signed, created, indexDigest, rootDigest, fileBytes, layoutBytes, indexBytes, chunksBytes, diskBytes, chunks, ...rest } = head;
  assert.deepEqual(rest, {
    name: "os", version: "7", expires: Date.UTC(2100, 0) / 1000, compatible: ["board"], annotations: [["by", "\\u{202e}me"]], images: [],
    logicalBytes: 330_000, entries: 5, objects: 4,
  });
  for (const digest of [indexDigest, rootDigest]) assert.match(digest, /^[0-9a-f]{64}$/);
  assert.equal(fileBytes, bytes.length);
  assert(layoutBytes + indexBytes + chunksBytes < fileBytes && diskBytes < 330_000 && chunks > 3);
  assert(Math.abs(created - Date.now() / 1000) < 3600 || process.env.SOURCE_DATE_EPOCH);
  assert.deepEqual(Buffer.from(signed), bytes.subarray(0, signed.length));
});

test("a bundle takes on a disk what info says", () => {
  const folder = mkdtempSync(join(tmpdir(), "sealift-wasm-"));
  try {
    const bundles = bundleVectors().filter(({ name, keys }) => name.startsWith("good-") && isRead(keys));
    assert(bundles.some(({ name }) => name === "good-delta.vec") && bundles.some(({ name }) => name === "good-disk.vec"));
    for (const { name, bytes } of bundles) {
      const file = join(folder, name);
      writeFileSync(file, bytes);
      const info = (...options) => execFileSync(sealift, ["info", file, ...options], { encoding: "utf8" });
      let head;
      feed(new Reader(bytes.length), bytes, { judge: (reader) => (head = reader.head()) });
      assert.equal(head.diskBytes, JSON.parse(info("--json")).cost.disk_bytes, name);
      const line = info().split("\n").find((line) => line.startsWith("  Disk "));
      assert(line.includes(`about ${words(head.diskBytes)}`), `${name}: ${line}`);
      assert.equal(line.endsWith(" more than its base"), head.delta !== undefined, `${name}: ${line}`);
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("a flip anywhere, a cut anywhere and a byte more are found", () => {
  const step = Math.ceil(bytes.length / 100);
  for (let at = 0; at < bytes.length; at += step) {
    const flipped = Buffer.from(bytes);
    flipped[at] ^= 1;
    const code = outcome(() => feed(new Reader(bytes.length), flipped));
    assert.equal(typeof code, "string", `a flip at ${at}`);
    for (const size of [1, 1000]) {
      assert.equal(outcome(() => feed(new Reader(bytes.length), flipped, { size })), code, `a flip at ${at}`);
    }
    const cut = bytes.subarray(0, at);
    for (const length of [at, bytes.length, undefined]) {
      assert.equal(outcome(() => feed(new Reader(length), cut)), "truncated", `a cut at ${at} of ${length}`);
    }
  }
  const longer = Buffer.concat([bytes, Buffer.from("x")]);
  for (const length of [longer.length, undefined]) {
    assert.equal(outcome(() => feed(new Reader(length), longer)), "trailing");
  }
});

test("a failure stays, and the head with it", () => {
  const flipped = Buffer.from(bytes);
  const { layoutBytes, indexBytes } = (() => {
    const reader = new Reader();
    feed(reader, bytes);
    return reader.head();
  })();
  const reader = new Reader(bytes.length);
  const { chunksAt } = (() => {
    const whole = new Reader(bytes.length);
    feed(whole, bytes);
    return whole.open();
  })();
  assert(chunksAt > layoutBytes + indexBytes);
  flipped[chunksAt - 1] ^= 1;
  assert.throws(() => feed(reader, flipped), { code: "index" });
  assert.equal(reader.head().name, "os");

  const cut = new Reader();
  assert.throws(() => feed(cut, bytes.subarray(0, chunksAt - 1)), { code: "truncated" });
  assert.throws(() => cut.open(), { code: "truncated" });
  assert.throws(() => cut.supply(0, bytes), { code: "truncated" });
  assert.throws(() => cut.begin("stored"), { code: "truncated" });
});

test("files are found, listed and read by their chunks", () => {
  const reader = new Reader(bytes.length);
  feed(reader, bytes);
  const [main] = reader.refs();
  assert.deepEqual([main.name, main.children], ["main", 3]);
  const names = (entries) => entries.map(({ name, type, size }) => [name, type, size]);
  const top = reader.children(main.directory, 0, 100);
  assert.deepEqual(names(top), [["empty", "file", 0], ["folder", "dir", undefined], ["text", "file", 10_000]]);
  assert.deepEqual(names(reader.children(main.directory, 1, 1)), [["folder", "dir", undefined]]);
  const below = reader.children(top[1].directory, 0, 100);
  assert.deepEqual(below.map(({ path, shown }) => [path, shown]), [["folder/hole", "folder/hole"], ["folder/large", "folder/large"]]);
  assert.deepEqual(reader.entries(Uint32Array.of(below[1].entry)), [below[1]]);

  const found = (text) => reader.entries(reader.search(text)).map(({ path }) => path);
  assert.deepEqual(found("LARGE"), ["folder/large"]);
  assert.deepEqual(found("r/h"), ["folder/hole"]);
  assert.deepEqual(found("nothing"), []);
  assert.equal(found("").length, 5);

  for (const [path, content] of Object.entries(contents)) {
    for (const name of [path, `/${path}`, `main:${path}`]) {
      const { object, size, parts } = reader.content(reader.find(Buffer.from(name)));
      assert.equal(size, content.length);
      const read = parts.map(([offset, length], part) => reader.contentPart(object, part, bytes.subarray(offset, offset + length)));
      assert(Buffer.concat(read).equals(content), path);
    }
  }
  const { object, parts } = reader.content(reader.find(Buffer.from("folder/large")));
  const flipped = Buffer.from(bytes.subarray(parts[0][0], parts[0][0] + parts[0][1]));
  flipped[0] ^= 1;
  assert.throws(() => reader.contentPart(object, 0, flipped), { code: "chunk" });
  for (const path of ["", "folder/", "nothing", "text/below", "other:text"]) {
    assert.throws(() => reader.content(reader.find(Buffer.from(path))), TypeError, path);
  }
});

test("trust is the administrator's", () => {
  const line = `os namespaces="sealift" ${key}`;
  const device = { compatible: ["board"] };

  const trusted = judged(line, device);
  assert.equal(trusted.trusted, true);
  assert.equal(trusted.error, undefined);
  assert.match(trusted.signers[0].key, /^SHA256:/);
  assert.equal(trusted.signers[0].trusted, true);

  const cases = [
    ["", device, "untrusted"],
    [`app namespaces="sealift" ${key}`, device, "untrusted"],
    [`os ${key}`, device, "untrusted"],
    [line, { ...device, threshold: 2 }, "untrusted"],
    [line, { ...device, threshold: ["os=2"] }, "untrusted"],
    [line, { ...device, revoked: key }, "revoked"],
    [line, { ...device, revoked: Buffer.from(key) }, "revoked"],
    [line, { ...device, now: Date.UTC(2100, 0) / 1000 }, "expired"],
    [line, { ...device, floor: "8" }, "downgrade"],
    [line, { compatible: ["other"] }, "incompatible"],
    [line, {}, "incompatible"],
    [line, undefined, "incompatible"],
  ];
  for (const [signers, options, code] of cases) {
    const verdict = judged(signers, options);
    assert.deepEqual([verdict.trusted, verdict.error?.code], [false, code], JSON.stringify(options));
    assert.equal(verdict.signers.length, 1);
  }

  const unsigned = judged("", { ...device, allowUnsigned: true });
  assert.deepEqual([unsigned.trusted, unsigned.error], [false, undefined]);
  assert.equal(judged(line, { ...device, floor: "8", allowDowngrade: true }).trusted, true);
});

test("a floor counts only while the keys that raised it are good", () => {
  const line = `os namespaces="sealift" ${key}`;
  const own = judged(line, {}).signers[0].key;
  const other = `SHA256:${createHash("sha256").update(Buffer.from(otherKey.split(" ")[1], "base64")).digest("base64").replace("=", "")}`;
  const outcomeOf = (floor, options) => judged(line, { compatible: ["board"], floor, ...options }).error?.code;
  const revoked = otherKey;
  for (const [floor, options, code] of [
    [{ version: "8", keys: [other] }, {}, "downgrade"],
    [{ version: "8", keys: [other] }, { revoked }, undefined],
    [{ version: "7", keys: [other] }, {}, undefined],
    [{ version: "8", keys: [] }, { revoked }, "downgrade"],
    // One good key is as many as the threshold.
    [{ version: "8", keys: [other, own] }, { revoked }, "downgrade"],
    [{ version: "8", keys: [other, other] }, { revoked }, undefined],
    [[{ version: "9", keys: [other] }, "8"], { revoked }, "downgrade"],
    [[{ version: "9", keys: [other] }, "7"], { revoked }, undefined],
    [[], {}, undefined],
  ]) assert.equal(outcomeOf(floor, options), code, JSON.stringify([floor, options]));
});

test("a policy is checked without a bundle", () => {
  const line = `os namespaces="sealift" ${key}`;
  checkPolicy(line, { revoked: otherKey, threshold: ["os=2"], compatible: ["board"], floor: "8", now: 0 });
  for (const [signers, options, message] of [
    [`${line}\nos`, {}, /^line 2 of the allowed signers: /],
    ["", { revoked: "\nnone" }, /^line 2 of the revocation list: /],
    ["", { threshold: ["os=0"] }, /^the threshold "os=0" is neither/],
    ["", { compatible: ["board", "a b"] }, /^line 2 of the compatible tags: "a b" is not a tag/],
  ]) {
    assert.throws(() => checkPolicy(signers, options), { name: "Error", code: "trust-file", message });
    assert.throws(() => judged(signers, options), { code: "trust-file", message });
  }
  assert.throws(() => checkPolicy("", { floor: 8 }), TypeError);
});

test("what is misread would be another policy", () => {
  const slips = [
    { thresholds: 2 }, { now: "1" }, { now: 0.5 }, { floor: 8 }, { floor: "8.0" }, { floor: {} }, { floor: { version: "8" } },
    { floor: { version: 8, keys: [] } }, { floor: { version: "8", keys: ["SHA256:x"] } }, { floor: [["8"]] }, { compatible: "a" },
    { compatible: [1] }, { allowUnsigned: "false" }, { threshold: 1.5 }, { revoked: 1 }, "now", null,
  ];
  for (const options of slips) {
    assert.throws(() => judged("", options), TypeError, JSON.stringify(options));
  }
  for (const [signers, options] of [["os", {}], ["", { threshold: 0 }], ["", { revoked: "x" }]]) {
    assert.throws(() => judged(signers, options), { name: "Error", code: "trust-file" }, signers);
  }
  for (const length of [-1, 0.5, 2 ** 53, NaN, Infinity]) {
    assert.throws(() => new Reader(length), TypeError);
  }
  const reader = new Reader(bytes.length);
  assert.throws(() => reader.supply(1, bytes), TypeError);
  assert.throws(() => reader.judge("", {}), TypeError);
  for (const early of [() => reader.begin("stored"), () => reader.refs(), () => reader.finish(0)]) assert.throws(early, TypeError);
  feed(reader, bytes);
  assert.throws(() => reader.begin("deep"), TypeError);
  assert.throws(() => reader.children(99, 0, 1), TypeError);
  assert.throws(() => reader.entries(Uint32Array.of(99)), TypeError);
  assert.throws(() => reader.contentPart(99, 0, bytes), TypeError);
});

test("the vectors", async (context) => {
  const known = ["expect", "needs", "comment", "check", "base", "trust", "revoked", "threshold", "now", "compatible", "floor", "allow-unsigned"];
  const all = bundleVectors();
  assert(all.length > 0);
  for (const { name, keys, bytes, content } of all) {
    await context.test(name, () => {
      assert.deepEqual(Object.keys(keys).filter((key) => !known.includes(key)), []);
      const { expected, deep } = expectationOf(keys);
      const depth = deep ? "objects" : "stored";
      for (const size of SIZES) {
        for (const length of [bytes.length, undefined]) {
          const judge = (reader) => judgeVector(reader, keys, content);
          const found = outcome(() => (feed(new Reader(length), bytes, { size, depth, judge }), "ok"));
          assert.equal(found, expected, `${size} bytes at a time, of ${length}`);
        }
      }
    });
  }
});

test("a signature that cannot be checked is shown by its key, and offers no key to trust", () => {
  const { keys, bytes } = vectors().find(({ name }) => name === "signature-key-type-odd-beside.vec");
  let verdict;
  const judge = (reader) => {
    const { allowedSigners, ...options } = policyOf(keys, reader.head());
    verdict = reader.judge(allowedSigners, options);
  };
  feed(new Reader(bytes.length), bytes, { judge });
  assert.equal(verdict.trusted, true);
  const [unsupported, ...others] = verdict.signers.filter((signer) => signer.unsupported);
  assert.deepEqual([others.length, unsupported.trusted, unsupported.unknown, unsupported.publicKey], [0, false, false, undefined]);
  assert.match(unsupported.key, /^SHA256:/);
  assert.match(unsupported.status, /^this version does not accept keys of type "/);
  // The bundle chose the type's name: more than 64 bytes, control characters and text from right to left.
  assert.match(unsupported.keyType, /^[!-~\ufffd]{64}\.\.\.$/);
});

/** Throws as the reader does if a vector's policy refuses. */
function judgeVector(reader, keys, content) {
  const { allowedSigners = "", ...options } = policyOf(keys, reader.head());
  const { error, unknownEnvelopes } = reader.judge(allowedSigners, options);
  if (content) assert.deepEqual(unknownEnvelopes, content.unknown_envelopes);
  if (error) throw Object.assign(new Error(error.message), { code: error.code });
}

/** A bundle that `cargo run -p sealift-tests --bin vectors` makes. */
const made = (name) => readFileSync(new URL(`bundles/${name}.sealift`, import.meta.url));

test("a few bytes that come to more memory than the engine has are refused for it, and not by its end", () => {
  // Twice as much would take the engine's 4 GiB: RuntimeError, without a code.
  for (const length of [made("doubling").length, undefined]) {
    const reader = new Reader(length);
    const refusal = { code: "limit", message: /declares memory = \d+, which exceeds the limit of 1073741824/ };
    assert.throws(() => feed(reader, made("doubling")), refusal);
    assert.throws(() => reader.refs(), refusal);
  }
});

test("a reader takes no more than its caller lets it", () => {
  const before = process.memoryUsage().rss;
  for (const name of ["xattrs", "doubling-less"]) {
    const bytes = made(name);
    const whole = new Reader(bytes.length);
    const { entries } = feed(whole, bytes);
    const { memory } = whole.open();
    // What it declares is what it takes.
    assert(process.memoryUsage().rss - before < memory, name);
    assert.equal(whole.memoryLeft(), 2 ** 30 - memory);
    assert.equal(feed(new Reader(bytes.length, memory), bytes).entries, entries);
    assert.throws(() => feed(new Reader(bytes.length, memory - 1), bytes), { code: "limit" });
    whole.free();
  }
  for (const wrong of [-1, 0.5, NaN, 2 ** 53]) assert.throws(() => new Reader(0, wrong), TypeError);
});

test("OSTree files that get another mode are read from the base, and compared with their new checksums", () => {
  const folder = mkdtempSync(join(tmpdir(), "sealift-wasm-"));
  try {
    const at = (name) => join(folder, name);
    const files = [["small", "text\n"], ["d/empty", ""], ["large", randomBytes(6 << 20)]];
    mkdirSync(at("tree/d"), { recursive: true });
    for (const [name, content] of files) writeFileSync(at(`tree/${name}`), content);
    const run = (...args) => execFileSync(args[0], args.slice(1), { stdio: "pipe" });
    run("ostree", "init", `--repo=${at("repo")}`, "--mode=archive");
    const release = (name, mode, ...more) => {
      for (const [file] of files) chmodSync(at(`tree/${file}`), mode);
      run("ostree", "commit", `--repo=${at("repo")}`, "--branch=main", "--parent=none", "--owner-uid=0", "--owner-gid=0", `--tree=dir=${at("tree")}`);
      run(sealift, "pack", `ostree:${at("repo")}`, "-o", at(name), "--name", "os", "--bundle-version", name, ...more);
      return readFileSync(at(name));
    };
    const [older, delta] = [release("1", 0o644), release("2", 0o755, "--base", at("1"), "--allow-unsigned")];
    const [base, reader] = [new Reader(older.length), new Reader(delta.length)];
    feed(base, older, { depth: "objects" });
    feed(reader, delta, { depth: "objects" });
    assert.deepEqual(reader.unlisted().commits, ["main"]);
    const digests = base.digests();
    reader.addBase(base, digests);
    reader.complete();
    reader.begin("objects");
    let parts = 0;
    for (let next = reader.nextRenamed(); next; next = reader.nextRenamed(), parts += 1) {
      const [number, [offset, length]] = next;
      assert.equal(number, 0);
      const stored = Uint8Array.from(older.subarray(offset, offset + length));
      if (parts === 0) assert.throws(() => reader.checkRenamed(stored.map((byte) => byte ^ 1)), { code: "chunk" });
      reader.checkRenamed(stored);
    }
    assert(parts > 2, "a piece of the large file is a part");
    while (reader.checkBare());
    assert.equal(reader.finish(delta.length).delta.metadata, 3);

    // The digests of what the base has are those of its own check: they are part of the digest of all.
    const [again, other] = [new Reader(delta.length), new Reader(older.length)];
    feed(again, delta);
    feed(other, older);
    again.addBase(other, digests.map((byte) => byte ^ 1));
    again.complete();
    again.begin("objects");
    assert.throws(() => again.finish(delta.length), { code: "index" });
  } finally {
    rmSync(folder, { recursive: true });
  }
});
