// What the page says of each finding, for people who know no cryptography. Run by: node --test wasm/tests/words.test.mjs

import assert from "node:assert/strict";
import { test } from "node:test";

import { SealiftError } from "../npm/src/errors.js";
import { finding, report } from "../npm/src/page/finding.js";

const head = { name: "os", version: "7", compatible: ["board-x", "board-y"], annotations: [] };
const facts = { deep: true, isStopped: false, isAddress: false, head };
const good = { trusted: true, needed: 1, signers: [{ key: "SHA256:a", trusted: true }] };
const summary = { entries: 1, files: 1, bytes: 1 };
const verified = { head, verdict: good, summary, deep: true };
const refused = (code, more = {}) => ({ ...facts, verified, verdict: { ...good, trusted: false, error: { code, message: "x" }, ...more } });

test("what is safe", () => {
  const safe = { ...facts, verdict: good, verified };
  const said = (facts) => [finding(facts).title, finding(facts).text];
  assert.deepEqual(said(safe), ["Safe to install: os, version 7", "Signed by a key you trust; every byte and the content of every file are undamaged."]);
  assert.match(finding({ ...safe, verdict: { ...good, needed: 2 } }).text, /^Signed by 2 keys you trust;/);
  assert.match(finding({ ...safe, verified: { ...verified, summary: { ...summary, delta: {} } } }).text, /the device checks the result against its installed version\.$/);
});

test("what is refused", () => {
  const stranger = [{ key: "SHA256:b", trusted: false }];
  const cases = [
    [refused("untrusted", { signers: stranger }), "Do not install yet: unknown signer", /fingerprint/],
    [refused("untrusted", { signers: [] }), "Do not install: nobody signed it", /It calls itself os/],
    [refused("untrusted", { signers: [{ key: "SHA256:b", trusted: false, unsupported: true }] }), "Do not install yet: signed in a way that this page does not know", /A newer version/],
    [refused("untrusted", { signers: [...stranger, { key: "SHA256:b", trusted: false, unsupported: true }] }), "Do not install yet: unknown signer", /fingerprint/],
    [refused("untrusted", { needed: 2, signers: [...good.signers, ...stranger] }), "Do not install yet: only 1 of 2 required keys signed", /all signatures/],
    [refused("expired"), "Do not install: it has expired", /newer bundle/],
    [{ ...refused("downgrade"), floor: "8" }, "Do not install: older than version 8, already checked here", /newer version/],
    [{ ...refused("incompatible"), tags: ["board-z"] }, "Do not install: it is for other devices", /^Needs: board-x, board-y\. Yours: board-z\. Its bytes/],
    [{ ...refused("incompatible"), tags: [] }, "Do not install: it is for other devices", /^Needs: board-x, board-y\. Yours: none\. Enter your devices' tags under Trusted keys and devices\. /],
    [{ ...facts, fault: Object.assign(new SealiftError("header", "x"), { isForeign: true }) }, "Not a Sealift bundle", /sealift pack/],
    [{ ...facts, fault: new SealiftError("header", "x") }, "Do not install: the signature area is damaged", /Copy it again/],
    [{ ...facts, fault: new SealiftError("chunk", "x") }, "Do not install: it is damaged, or was changed", /Copy it again/],
  ];
  for (const [given, title, text] of cases) {
    const found = finding(given);
    assert.deepEqual([found.state, found.ok, found.title], ["refused", false, title]);
    assert.match(found.text, text);
  }
});

test("what is not known is never called damage", () => {
  const failures = [new Error("x"), new DOMException("x", "SecurityError"), new RangeError("out of memory"), new WebAssembly.RuntimeError("unreachable")];
  for (const code of ["io", "changed", "trust-file", "policy", "memory", "unsupported", "blocked", "address"]) failures.push(new SealiftError(code, "x"));
  for (const fault of failures) {
    for (const more of [{ fault }, { unjudged: fault, verified, verdict: good }, { fault, verified, verdict: good }]) {
      const found = finding({ ...facts, ...more });
      assert.deepEqual([found.state, found.ok, found.tone], ["unknown", false, "doubt"], fault.message);
      assert.match(found.title, /^Not checked: /);
      const { ok, trusted } = report(found, { ...facts, ...more, verdict: good }, { name: "os.sealift", seconds: 1, forgets: false, checked: "" });
      assert.deepEqual([ok, trusted], [false, false]);
      assert.doesNotMatch(`${found.title} ${found.text}`, /damage|let it in/);
    }
  }
  assert.match(finding({ ...facts, fault: new Error("x") }).text, /[Ss]end the message below to the site's operator/);
});
