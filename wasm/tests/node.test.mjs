// The verifier in Node, as `cargo xtask web` builds it. Run by: node --test wasm/tests/node.test.mjs

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { Verifier, initSync } from "../npm/pkg/sealift_wasm.js";
import { feed, packed, vectors } from "./bundle.mjs";

initSync({ module: readFileSync(new URL("../npm/pkg/sealift_wasm_bg.wasm", import.meta.url)) });

const { bytes, key } = packed();
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
  feed(new Verifier(bytes.length), bytes, { judge: (verifier) => (verdict = verifier.judge(signers, options)) });
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
    for (const depth of [undefined, "objects", "stored"]) {
      for (const length of [bytes.length, undefined]) {
        const summary = feed(new Verifier(length, depth), bytes, { size });
        assert.deepEqual(summary, { entries: 5, files: 4, bytes: 330_000 });
      }
    }
  }
});

test("the head says what the root states", () => {
  let head;
  feed(new Verifier(), bytes, { judge: (verifier) => (head = verifier.head()) });
  const { signed, created, ...rest } = head;
  assert.deepEqual(rest, { name: "os", version: "7", expires: Date.UTC(2100, 0) / 1000, compatible: ["board"] });
  assert(Math.abs(created - Date.now() / 1000) < 3600 || process.env.SOURCE_DATE_EPOCH);
  assert.deepEqual(Buffer.from(signed), bytes.subarray(0, signed.length));
});

test("a flip anywhere, a cut anywhere and a byte more are found", () => {
  const step = Math.ceil(bytes.length / 100);
  for (let at = 0; at < bytes.length; at += step) {
    const flipped = Buffer.from(bytes);
    flipped[at] ^= 1;
    const code = outcome(() => feed(new Verifier(bytes.length), flipped));
    assert.equal(typeof code, "string", `a flip at ${at}`);
    for (const size of [1, 1000]) {
      assert.equal(outcome(() => feed(new Verifier(bytes.length), flipped, { size })), code, `a flip at ${at}`);
    }
    const cut = bytes.subarray(0, at);
    for (const length of [at, bytes.length, undefined]) {
      assert.equal(outcome(() => feed(new Verifier(length), cut)), "truncated", `a cut at ${at} of ${length}`);
    }
  }
  const longer = Buffer.concat([bytes, Buffer.from("x")]);
  for (const length of [longer.length, undefined]) {
    assert.equal(outcome(() => feed(new Verifier(length), longer)), "trailing");
  }
});

test("a failure stays, and the head with it", () => {
  const flipped = Buffer.from(bytes);
  flipped[bytes.length - 1] ^= 1;
  const verifier = new Verifier(bytes.length);
  assert.throws(() => feed(verifier, flipped), { code: "chunk" });
  assert.deepEqual(verifier.next(), { done: true });
  assert.equal(verifier.head().name, "os");
  assert.throws(() => verifier.supply(0, bytes), { code: "chunk" });
  assert.throws(() => verifier.finish(), { code: "chunk" });
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

test("what is misread would be another policy", () => {
  const slips = [
    { thresholds: 2 }, { now: "1" }, { now: 0.5 }, { floor: 8 }, { floor: "8.0" }, { compatible: "a" },
    { compatible: [1] }, { allowUnsigned: "false" }, { threshold: 1.5 }, { revoked: 1 }, "now", null,
  ];
  for (const options of slips) {
    assert.throws(() => judged("", options), TypeError, JSON.stringify(options));
  }
  for (const [signers, options] of [["os", {}], ["", { threshold: 0 }], ["", { revoked: "x" }]]) {
    const isPlain = (error) => error.name === "Error" && error.code === undefined;
    assert.throws(() => judged(signers, options), isPlain, signers);
  }
  for (const length of [-1, 0.5, 2 ** 53, NaN, Infinity]) {
    assert.throws(() => new Verifier(length), TypeError);
  }
  assert.throws(() => new Verifier(1, "deep"), TypeError);
  const verifier = new Verifier(bytes.length);
  assert.throws(() => verifier.supply(1, bytes), TypeError);
  assert.throws(() => verifier.judge("", {}), TypeError);
});

test("the vectors", async (context) => {
  const known = ["expect", "comment", "listing", "check", "base", "unknown-envelopes", "trust", "revoked", "threshold",
    "now", "compatible", "floor", "allow-unsigned"];
  // Requests are for who packs.
  const all = vectors().filter(({ keys }) => keys.check?.[0] !== "request");
  assert(all.length > 0);
  for (const { name, keys, bytes } of all) {
    await context.test(name, () => {
      assert.deepEqual(Object.keys(keys).filter((key) => !known.includes(key)), []);
      const check = keys.check?.[0] ?? "deep";
      // Here is nobody who has bases: a delta bundle is read without them.
      const expected = check === "apply" ? "ok" : keys.expect[0];
      for (const size of SIZES) {
        for (const length of [bytes.length, undefined]) {
          const verifier = new Verifier(length, ["deep", "apply"].includes(check) ? "objects" : "stored");
          const judge = (verifier) => judgeVector(verifier, keys);
          const found = outcome(() => (feed(verifier, bytes, { size, judge }), "ok"));
          assert.equal(found, expected, `${size} bytes at a time, of ${length}`);
        }
      }
    });
  }
});

/** Throws as the verifier does if a vector's policy refuses. Without one, only the signatures themselves are judged. */
function judgeVector(verifier, keys) {
  const judgesTrust = Object.keys(keys).some((key) =>
    ["trust", "revoked", "threshold", "now", "compatible", "floor", "allow-unsigned"].includes(key));
  const { error, unknownEnvelopes } = judgesTrust
    ? verifier.judge((keys.trust ?? []).join("\n"), {
      now: Number(keys.now?.[0] ?? 1_700_000_000),
      threshold: Number(keys.threshold?.[0] ?? 1),
      compatible: keys.compatible ?? [],
      revoked: (keys.revoked ?? []).join("\n"),
      floor: keys.floor?.[0],
      allowUnsigned: keys["allow-unsigned"]?.[0] === "yes",
    })
    : verifier.judge("", {
      now: Number.MIN_SAFE_INTEGER,
      compatible: verifier.head().compatible,
      allowUnsigned: true,
    });
  if (keys["unknown-envelopes"]) assert.equal(unknownEnvelopes.length, Number(keys["unknown-envelopes"][0]));
  if (error) throw Object.assign(new Error(error.message), { code: error.code });
}
