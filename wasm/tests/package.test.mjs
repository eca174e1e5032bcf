// The package in Node: each kind of source, each option. Run by: node --test wasm/tests/package.test.mjs

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createReadStream, mkdirSync, mkdtempSync, openAsBlob, rmSync, writeFileSync } from "node:fs";
import { open } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { Readable } from "node:stream";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";

import { checkPolicy, openBundle, ready, verify } from "../npm/src/index.js";
import { bundleVectors, packed, sealift, vectors } from "./bundle.mjs";
import { expectationOf, isRead, wordOf } from "./policy.mjs";
import { serve } from "./server.mjs";

// Large enough for several runs, and for more than what a URL's first request brings.
const { bytes, key, contents } = packed({ more: 20 << 20 });
const trust = { allowedSigners: `os namespaces="sealift" ${key}`, compatible: ["board"] };
const summary = { entries: 6, files: 5, bytes: 330_000 + (20 << 20) };

let server;
let folder;
before(async () => {
  folder = mkdtempSync(join(tmpdir(), "sealift-package-"));
  server = await serve(bytes);
});
after(async () => {
  await server.close();
  rmSync(folder, { recursive: true });
});

/** Bytes in parts of odd lengths, as a stream. */
function streamOf(bytes, size = 65_537) {
  let at = 0;
  return new ReadableStream({
    pull(controller) {
      if (at >= bytes.length) return controller.close();
      controller.enqueue(Uint8Array.from(bytes.subarray(at, (at += size))));
    },
  });
}

const reader = (bytes, size = bytes.length) => ({ size, read: (offset, length) => Uint8Array.from(bytes.subarray(offset, offset + length)) });

/** Each way in which bytes can come. */
function ways(bytes) {
  const file = join(folder, `file-${Math.random()}`);
  writeFileSync(file, bytes);
  return {
    blob: async () => new Blob([bytes]),
    "blob of a file": () => openAsBlob(file),
    stream: async () => streamOf(bytes),
    "stream of bytes": async () => streamOf(bytes.subarray(0, 2_000_000), 1),
    reader: async () => reader(bytes),
    "reader of a few bytes": async () => ({ ...reader(bytes), read: async (offset, length) => bytes.subarray(offset, offset + Math.min(length, 99_991)) }),
    path: async () => file,
    "relative path": async () => relative(process.cwd(), file),
    "URL of a file": async () => pathToFileURL(file),
    "file handle": async () => {
      const handle = await open(file);
      after(() => handle.close());
      return handle;
    },
    Buffer: async () => Buffer.from(bytes),
    Uint8Array: async () => new Uint8Array(bytes),
    Readable: async () => createReadStream(file),
    "Readable of Buffers": async () => Readable.from([bytes.subarray(0, 5000), bytes.subarray(5000)]),
  };
}

for (const [name, source] of Object.entries(ways(bytes))) {
  if (name === "stream of bytes") continue;
  for (const deep of [false, true]) {
    for (const jobs of [1, 3]) {
      test(`a good bundle by ${name}, ${deep ? "deep" : "as stored"}, by ${jobs}`, async () => {
        const { head, verdict, summary: found, deep: wasDeep, seconds } = await verify(await source(), { ...trust, deep, jobs });
        assert.deepEqual(found, summary);
        assert.deepEqual([head.name, verdict.trusted, wasDeep, seconds > 0], ["os", true, deep, true]);
      });
    }
  }
}

test("a URL is read by ranges", async () => {
  for (const url of [server.url("good"), new URL(server.url("good"))]) {
    server.requests.length = 0;
    assert.deepEqual((await verify(url, { ...trust, deep: true })).summary, summary);
    const read = server.requests.map(({ start, last }) => [start, last]).sort(([a], [b]) => a - b);
    assert(read.length > 2);
    // Behind the first one, which is of a fixed length, no byte comes twice.
    for (let at = 2; at < read.length; at += 1) assert(read[at][0] === read[at - 1][1] + 1, JSON.stringify(read));
  }
});

test("a server without ranges is read as a stream", async () => {
  assert.deepEqual((await verify(server.url("whole"), trust)).summary, summary);
  const bundle = await openBundle(server.url("whole"), trust);
  await assert.rejects(bundle.open("text"), TypeError);
  bundle.close();
});

test("bad servers", async () => {
  const cases = [
    ["short", "io"], ["liar", "trailing"], ["other", "io"], ["changed", "changed"], ["gone", "io"], ["silent", "io"], ["missing", "io"],
  ];
  for (const [how, code] of cases) {
    await assert.rejects(verify(server.url(how), trust), { name: "SealiftError", code }, how);
  }
  await assert.rejects(verify("http://127.0.0.1:9/", trust), { code: "io" });
});

test("a flip, a cut and a byte more", async () => {
  const flipped = Uint8Array.from(bytes);
  flipped[bytes.length - 1000] ^= 1;
  const early = Uint8Array.from(flipped);
  early[bytes.length >> 1] ^= 1;
  const cases = [
    [flipped, "chunk"], [early, "chunk"], [bytes.subarray(0, bytes.length - 1), "truncated"], [bytes.subarray(0, bytes.length >> 1), "truncated"],
    [bytes.subarray(0, 100), "truncated"], [bytes.subarray(0, 0), "truncated"], [Buffer.concat([bytes, Buffer.from("x")]), "trailing"],
  ];
  for (const [bad, code] of cases) {
    for (const [name, source] of Object.entries(ways(bad))) {
      for (const jobs of [1, 3]) {
        if (name === "stream of bytes" && (jobs > 1 || bad.length > 200)) continue;
        await assert.rejects(verify(await source(), { ...trust, jobs }), { code }, `${name}, ${bad.length} bytes`);
      }
    }
  }
});

test("the failure that lies first in the file counts, however many workers there are", async () => {
  const bad = Uint8Array.from(bytes);
  for (const at of [0.4, 0.5, 0.6, 0.9]) bad[Math.floor(bytes.length * at)] ^= 1;
  const messages = new Set();
  for (const jobs of [1, 2, 3, 4, 4, 4]) {
    await verify(new Blob([bad]), { ...trust, jobs }).catch(({ message }) => messages.add(message));
  }
  assert.equal(messages.size, 1, [...messages].join("\n"));
});

test("a file that is changed while it is read", async () => {
  const file = join(folder, "changes");
  writeFileSync(file, bytes);
  const bundle = await openBundle(await openAsBlob(file), trust);
  writeFileSync(file, bytes.subarray(1));
  await assert.rejects(bundle.verify(), { code: "changed" });
  bundle.close();

  // One that nobody notices as such.
  let reads = 0;
  const source = { size: bytes.length, read: (offset, length) => bytes.subarray(offset, offset + length).map((byte) => (reads++ > 1e6 ? byte ^ 1 : byte)) };
  await assert.rejects(verify(source, trust), { code: "chunk" });

  const shrinks = { size: bytes.length, read: (offset, length) => bytes.subarray(offset, Math.min(offset + length, 5 << 20)) };
  await assert.rejects(verify(shrinks, trust), { code: "truncated" });
});

test("a source that fails, or is none", async () => {
  const failing = (read) => verify({ size: bytes.length, read }, trust);
  await assert.rejects(failing(() => { throw new Error("the stick was pulled"); }), { code: "io", message: /the stick was pulled/ });
  await assert.rejects(failing((offset, length) => new Uint8Array(length + 1)), { code: "io" });
  await assert.rejects(failing(() => "text"), TypeError);
  const late = { size: bytes.length, read: (offset, length) => {
    if (offset > 5 << 20) throw new Error("late");
    return bytes.subarray(offset, offset + length);
  } };
  await assert.rejects(verify(late, trust), { code: "io", message: /late/ });
  await assert.rejects(verify(new ReadableStream({ pull() { throw new Error("broken"); } }), trust), { code: "io", message: /broken/ });
  await assert.rejects(verify(new ReadableStream({ pull: (controller) => controller.enqueue("text") }), trust), TypeError);
  await assert.rejects(verify(Readable.from(["text"]), trust), TypeError);
  const kinds = [
    [undefined, /this is undefined/], [null, /this is null/], [1, /this is a number/], [{}, /this is an object of Object/], [{ size: -1, read() {} }, /of Object/],
    [{ size: 1 }, /of Object/], ["", /name is empty/], [Promise.resolve(bytes), /a promise: await it/], [new Response("x"), /a Response: give its body/],
    [() => bytes, /this is a function/], [new Map(), /an object of Map/], [[1, 2], /volumes of a bundle are Blobs, .*; this is a number/], [[undefined], /are Blobs, .*; this is undefined/],
  ];
  for (const [none, message] of kinds) await assert.rejects(verify(none, trust), { name: "TypeError", message });
  await assert.rejects(verify(new Blob([bytes]), { ...trust, tags: [] }), TypeError);
});

test("a path that leads to no file", async () => {
  await assert.rejects(verify(join(folder, "nothing"), trust), { name: "SealiftError", code: "io", message: /the file cannot be read: ENOENT/ });
  mkdirSync(join(folder, "folder"));
  await assert.rejects(verify(join(folder, "folder"), trust), { code: "io", message: /it is a folder/ });
});

test("what is no file is read as a stream", { skip: process.platform !== "linux" }, async () => {
  const fifo = join(folder, "fifo");
  execFileSync("mkfifo", [fifo]);
  const [{ summary: found }] = await Promise.all([verify(fifo, trust), open(fifo, "w").then(async (end) => (await end.writeFile(bytes), end.close()))]);
  assert.deepEqual(found, summary);
});

test("a file that is open stays open, and one that is changed is not called damaged", async () => {
  const file = join(folder, "open");
  writeFileSync(file, bytes);
  const handle = await open(file);
  await verify(handle, trust);
  assert.equal((await handle.stat()).size, bytes.length);
  for (const source of [handle, file]) {
    const bundle = await openBundle(source, trust);
    writeFileSync(file, Buffer.from(bytes).fill(0, bytes.length >> 1));
    await assert.rejects(bundle.verify(), { code: "changed" });
    bundle.close();
    writeFileSync(file, bytes);
  }
  await handle.close();
});

test("a stream that waits is given up with the check", async () => {
  const silent = new Readable({ read() {} });
  await assert.rejects(verify(silent, { ...trust, signal: AbortSignal.timeout(50) }), { name: "TimeoutError" });
  assert(silent.destroyed);
});

test("allowed signers are text, however they come", async () => {
  const { allowedSigners, ...rest } = trust;
  for (const signers of [allowedSigners, Buffer.from(allowedSigners), new TextEncoder().encode(allowedSigners)]) {
    assert.equal((await verify(bytes, { ...rest, allowedSigners: signers })).verdict.trusted, true);
  }
  for (const wrong of [null, 1, [allowedSigners], new Blob([allowedSigners]), Promise.resolve(allowedSigners)]) {
    await assert.rejects(verify(bytes, { ...rest, allowedSigners: wrong }), { name: "TypeError", message: /^allowedSigners is the file's text.*; this is / });
  }
});

test("a policy is checked without a bundle", async () => {
  assert.equal(await checkPolicy(trust), undefined);
  assert.equal(await checkPolicy({}), undefined);
  const message = /^line 2 of the allowed signers: /;
  await assert.rejects(checkPolicy({ ...trust, allowedSigners: `${trust.allowedSigners}\nos` }), { name: "SealiftError", code: "trust-file", message });
  await assert.rejects(checkPolicy({ tags: [] }), TypeError);
  await assert.rejects(checkPolicy({}, { wasmUrl: new URL("none.wasm", import.meta.url) }), /none\.wasm cannot be loaded/);
});

test("what does not begin like a bundle is another kind of file, however short it is", async () => {
  for (const [source, isForeign, code] of [
    ["some", true, "header"], ["some words", true, "header"], ["some words ".repeat(9999), true, "header"],
    ["", false, "truncated"], [bytes.subarray(0, 5), false, "truncated"], [bytes.subarray(0, 300), false, "truncated"],
  ]) {
    for (const of of [(given) => new Blob([given]), (given) => new Blob([given]).stream()]) {
      const error = await openBundle(of(source), trust).catch((error) => error);
      assert.deepEqual([error.isForeign, error.code], [isForeign, code], String(source).slice(0, 20));
    }
  }
});

test("parts of the package that lie elsewhere", async () => {
  const here = (path) => new URL(`../npm/${path}`, import.meta.url);
  await verify(bytes, { ...trust, wasmUrl: here("pkg/sealift_wasm_bg.wasm"), workerUrl: here("src/worker.js").href });
  await assert.rejects(verify(bytes, { ...trust, wasmUrl: here("pkg/none.wasm") }), { name: "Error", message: /none\.wasm cannot be loaded: ENOENT.*the option wasmUrl or the attribute wasm-url sets its address/ });
  await assert.rejects(verify(bytes, { ...trust, wasmUrl: here("package.json") }), { message: /package\.json cannot be loaded: it is not a WebAssembly module/ });
  await assert.rejects(verify(bytes, { ...trust, workerUrl: here("src/none.js") }), { name: "Error", message: /a worker of file:.*none\.js failed: .*the option workerUrl or the attribute worker-url sets its address$/ });
  assert.equal(await ready({ wasmUrl: here("pkg/sealift_wasm_bg.wasm") }), undefined);
  await assert.rejects(ready({ wasmUrl: here("pkg/none.wasm") }), /the option wasmUrl or the attribute wasm-url sets its address$/);
  writeFileSync(join(folder, "empty"), "");
  await assert.rejects(ready({ wasmUrl: pathToFileURL(join(folder, "empty")) }), /it is not a WebAssembly module/);
});

test("the element is imported where there are no elements", async () => {
  const { SealiftVerifier } = await import("../npm/src/element.js");
  assert.equal(typeof SealiftVerifier, "function");
});

test("nothing is read of what is not trusted, unless it is looked at", async () => {
  const counted = { ...reader(bytes), count: 0 };
  const source = { size: bytes.length, read: (offset, length) => ((counted.count += length), reader(bytes).read(offset, length)) };
  await assert.rejects(verify(source, { compatible: ["board"] }), { code: "untrusted" });
  assert(counted.count < 1 << 20);
  await assert.rejects(verify(source), { code: "untrusted" });
  await assert.rejects(verify(source, { ...trust, floor: "8" }), { code: "downgrade" });
  assert.equal((await verify(source, { ...trust, allowedSigners: "", allowUnsigned: true })).verdict.trusted, false);

  const bundle = await openBundle(new Blob([bytes]));
  assert.equal(bundle.verdict.error.code, "untrusted");
  assert.equal((await bundle.children((await bundle.refs())[0].directory)).length, 4);
  await assert.rejects(bundle.open("text"), { code: "untrusted" });
  assert.deepEqual((await bundle.verify({ deep: true })).summary, summary);
  assert.equal((await bundle.judge(trust)).trusted, true);
  assert.equal((await new Response(await bundle.open("text")).arrayBuffer()).byteLength, 10_000);
  bundle.close();
  await assert.rejects(bundle.refs(), Error);
});

test("the head is known first", async () => {
  const seen = [];
  await verify(new Blob([bytes]), { ...trust, onHead: (head, verdict) => seen.push([head.name, verdict.trusted]) });
  assert.deepEqual(seen, [["os", true]]);
  const cut = new Blob([bytes.subarray(0, 3000)]);
  await assert.rejects(verify(cut, { ...trust, onHead: (head) => seen.push(head.version) }), { code: "truncated" });
  assert.equal(seen[1], "7");
});

test("progress rises from nothing to all", async () => {
  for (const source of [new Blob([bytes]), streamOf(bytes)]) {
    const seen = [];
    const { head } = await verify(source, { ...trust, deep: true, onProgress: (progress) => seen.push(progress) });
    assert(seen.length > 3);
    assert.deepEqual([seen[0].bytes, seen.at(-1).bytes], [0, head.chunksBytes]);
    for (const [at, { phase, bytes, bytesTotal, seconds }] of seen.entries()) {
      assert.deepEqual([phase, bytesTotal], ["verifying", head.chunksBytes]);
      assert(at === 0 || (bytes >= seen[at - 1].bytes && seconds >= seen[at - 1].seconds));
    }
  }
});

test("it can be stopped at any moment", async () => {
  const reason = new Error("enough");
  await assert.rejects(verify(new Blob([bytes]), { ...trust, signal: AbortSignal.abort(reason) }), reason);
  for (const source of [() => new Blob([bytes]), () => streamOf(bytes), () => reader(bytes), () => server.url("good"), () => server.url("whole")]) {
    for (const when of ["head", "progress"]) {
      const controller = new AbortController();
      const stop = () => controller.abort(reason);
      const on = when === "head" ? { onHead: stop } : { onProgress: ({ bytes }) => bytes > 0 && stop() };
      await assert.rejects(verify(source(), { ...trust, ...on, signal: controller.signal }), reason);
    }
  }
  // A source that never answers does not keep it.
  const controller = new AbortController();
  const silent = { size: bytes.length, read: () => new Promise(() => {}) };
  setTimeout(() => controller.abort(), 50);
  await assert.rejects(verify(silent, { ...trust, signal: controller.signal }), { name: "AbortError" });

  // The bundle is as good as before.
  const bundle = await openBundle(new Blob([bytes]), trust);
  const other = new AbortController();
  await assert.rejects(bundle.verify({ signal: other.signal, onProgress: () => other.abort(reason) }), reason);
  assert.deepEqual((await bundle.verify({ deep: true })).summary, summary);
  const both = bundle.verify();
  await assert.rejects(bundle.verify(), TypeError);
  await both;
  bundle.close();
});

test("little memory means few workers, and too little for one is refused", async () => {
  await assert.rejects(verify(new Blob([bytes]), { ...trust, deep: true, memory: 0, jobs: 4 }), { code: "limit" });
  await assert.rejects(openBundle(new Blob([bytes]), { ...trust, memory: 1 << 20 }), { code: "limit", message: /memory/ });
  assert.deepEqual((await verify(new Blob([bytes]), { ...trust, deep: true, memory: 200 << 20, jobs: 4 })).summary, summary);
  const bundle = await openBundle(new Blob([bytes]), trust);
  assert.deepEqual((await bundle.verify({ deep: true, memory: 0, jobs: 4 })).summary, summary);
  bundle.close();
});

test("a file is read by its chunk", async () => {
  const bundle = await openBundle(server.url("good"), trust);
  server.requests.length = 0;
  for (const [path, content] of Object.entries(contents)) {
    const read = Buffer.from(await new Response(await bundle.open(path)).arrayBuffer());
    assert(read.equals(content), path);
  }
  const read = server.requests.reduce((sum, { start, last }) => sum + last + 1 - start, 0);
  assert(read < (21 << 20) && read > (19 << 20), `${read} bytes`);
  for (const wrong of ["nothing", "folder"]) await assert.rejects(bundle.open(wrong), TypeError);
  const [entry] = await bundle.entries(await bundle.search("text"));
  assert.equal((await new Response(await bundle.open(entry)).arrayBuffer()).byteLength, 10_000);
  assert.equal((await new Response(await bundle.open(Buffer.from("text"))).arrayBuffer()).byteLength, 10_000);
  bundle.close();
});

test("the vectors", { concurrency: 4 }, async (context) => {
  const all = bundleVectors();
  await Promise.all(all.map(({ name, keys, bytes }) => context.test(name, async () => {
    for (const source of [new Blob([bytes]), streamOf(bytes, 4096)]) {
      assert.equal(await wordOf(openBundle, source, keys, { jobs: 2 }), expectationOf(keys).expected);
    }
  })));
});

/** Runs with the bases of a vector open. */
async function withBases(all, { keys }, run) {
  const bases = await Promise.all(keys.base.map((name) => openBundle(new Blob([all.get(`${name}.vec`).bytes]))));
  try {
    return await run(bases);
  } finally {
    for (const base of bases) base.close();
  }
}

test("the vectors of delta bundles, over their bases", async (context) => {
  const all = new Map(vectors().map((vector) => [vector.name, vector]));
  const applied = [...all.values()].filter(({ keys }) => keys.check?.[0] === "apply" && isRead(keys));
  assert.deepEqual(new Set(applied.map(({ keys }) => keys.expect[0])), new Set(["ok", "base", "index", "header", "layout", "chunk", "object"]));
  assert(applied.some(({ keys }) => keys.base.length > 1));
  for (const vector of applied) {
    await context.test(vector.name, () => withBases(all, vector, async (bases) => {
      for (const jobs of [1, 2]) {
        // Each base is found by its digest, in whatever order they are given.
        assert.equal(await wordOf(openBundle, new Blob([vector.bytes]), vector.keys, { jobs, base: [...bases].reverse() }), vector.keys.expect[0]);
      }
    }));
  }
});

test("a delta that was checked over its bases lists and opens the files that result", async (context) => {
  const all = new Map(vectors().map((vector) => [vector.name, vector]));
  const good = [...all.values()].filter(({ name, keys }) => name.startsWith("good-delta") && keys.check?.[0] === "apply" && isRead(keys));
  assert(good.length > 5);
  for (const vector of good) {
    await context.test(vector.name, async () => {
      const at = (name) => join(folder, name);
      for (const name of [vector.name, ...vector.keys.base.map((name) => `${name}.vec`)]) writeFileSync(at(name), all.get(name).bytes);
      const bases = vector.keys.base.flatMap((name) => ["--base", at(`${name}.vec`)]);
      const program = (...args) => execFileSync(sealift, [...args, ...bases], { stdio: ["ignore", "pipe", "pipe"] });
      const bundle = await openBundle(new Blob([vector.bytes]), { allowUnsigned: true });
      assert.deepEqual([bundle.isWhole, await bundle.refs()], [false, []]);
      await assert.rejects(bundle.changes(), TypeError);
      const { bases: checked, summary, deep } = await withBases(all, vector, (base) => bundle.verify({ base, jobs: 2 }));
      assert.deepEqual([checked.length, deep, bundle.isWhole], [vector.keys.base.length, true, true]);
      const { rows, ...counts } = await bundle.changes();
      const { bases: named, ...summed } = summary.delta;
      assert.deepEqual([summed, named.length], [counts, checked.length]);
      assert(rows.length > 0);

      const refs = await bundle.refs();
      const entries = await bundle.entries(await bundle.search(""));
      const paths = entries.map(({ ref, path }) => (refs.length > 1 ? `${ref}:${path}` : path));
      assert.deepEqual(paths.sort(), program("ls", at(vector.name)).toString().trim().split("\n").sort());
      let made = 0;
      for (const entry of entries.filter(({ type }) => type === "file")) {
        const stream = await bundle.open(entry).catch((error) => error);
        if (stream.code === "unsupported") {
          made += 1;
          continue;
        }
        const content = Buffer.from(await new Response(stream).arrayBuffer());
        assert(content.equals(program("cat", "--allow-unsigned", at(vector.name), `${entry.ref}:${entry.path}`)), entry.path);
      }
      // Each of these contents is in one file.
      assert.equal(made, summary.made ?? 0);
      bundle.close();
    });
  }
});

test("a base may be bytes, and a file in every form but a stream", async () => {
  const all = new Map(vectors().map((vector) => [vector.name, vector]));
  const [delta, base] = [all.get("good-delta.vec").bytes, all.get("good-base.vec").bytes];
  const file = join(folder, "base-forms.sealift");
  writeFileSync(file, base);
  const handle = await open(file);
  for (const source of [base, new Blob([base]), await openAsBlob(file), file, handle]) {
    const [bundle, other] = await Promise.all([openBundle(delta), openBundle(source)]);
    for (const jobs of [1, 2]) assert.equal((await bundle.verify({ base: other, jobs })).bases.length, 1);
    bundle.close();
    other.close();
  }
  await handle.close();
  const [bundle, other] = await Promise.all([openBundle(delta), openBundle(createReadStream(file))]);
  await assert.rejects(bundle.verify({ base: other }), { code: "base", message: /not a stream/ });
  bundle.close();
  other.close();
});

test("a base that changes under a delta is not the delta's fault", async () => {
  const all = new Map(vectors().map((vector) => [vector.name, vector]));
  const [delta, base] = [all.get("good-delta.vec").bytes, all.get("good-base.vec").bytes];
  const file = join(folder, "base.sealift");
  writeFileSync(file, base);
  const bundle = await openBundle(new Blob([delta]), { allowUnsigned: true });
  const other = await openBundle(new Blob([base]));
  const damaged = Buffer.from(base);
  damaged[base.length - 1] ^= 1;
  await assert.rejects(openBundle(new Blob([damaged])).then((base) => bundle.verify({ base })), { code: "base", message: /do not match their digest/ });
  await assert.rejects(openBundle(bytes).then((base) => bundle.verify({ base })), { code: "base", message: /not a delta of os version 7/ });
  assert.equal(bundle.isWhole, false);
  assert.equal((await bundle.verify({ deep: true })).bases, undefined);
  // It is checked, and then becomes another file.
  const path = await openBundle(file);
  await bundle.verify({ base: path });
  writeFileSync(file, damaged);
  await assert.rejects(bundle.verify({ base: path }), { code: "base" });
  assert.equal(bundle.isWhole, false);
  await bundle.verify({ base: other });
  assert.equal(bundle.isWhole, true);
  for (const each of [bundle, other, path]) each.close();
});
