// The element as a portal uses it: one verdict for banner, event, report, preview and form. Run by: node --test wasm/tests/gate.test.mjs

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { enter } from "./browser.mjs";
import { gate } from "./gate.mjs";
import { setup } from "./setup.mjs";

const { server, bundles, people } = await setup({ serve: () => ({ tests: fileURLToPath(new URL(".", import.meta.url)) }) });
const { visit } = people;
const put = (name, text) => writeFileSync(join(bundles.folder, name), text);
put("nobody.txt", "# nobody\n");
put("malformed.txt", "os nonsense\n");
put("stranger.txt", `os namespaces="sealift" ${bundles.stranger}\n`);
put("revoked.txt", `${bundles.signers.split('" ')[1]}\n`);
put("floors.json", '{"os": "8"}');

const OPEN = { banner: true, event: true, report: true, ok: true, valid: true, carried: "good.sealift", state: "safe" };
const shut = (state) => ({ banner: false, event: false, report: false, ok: false, valid: false, carried: null, state });

test("a form is valid when the bundle is safe, and carries it", async () => {
  const { page, leave } = await visit();
  const { element, choose, settled, all, told } = await gate(page, bundles.files, { required: "", "trust-src": "/bundles/signers.txt", settings: "readonly" });
  assert.deepEqual(await element.evaluate(({ validity, willValidate }) => [validity.valueMissing, willValidate]), [true, true]);
  await choose("good");
  await settled("safe");
  assert.deepEqual(await all(), OPEN);
  const types = await told();
  assert.deepEqual([types[0], types.at(-1), types.includes("progress")], ["start", "verdict safe", true]);
  const size = await element.evaluate((element) => new FormData(element.form).get("bundle").size);
  assert.equal(size, readFileSync(bundles.files.good).length);
  for (const [name, state] of [["flipped", "refused"], ["untrusted", "refused"], ["unsigned", "refused"], ["other", "refused"]]) {
    await choose(name);
    await page.waitForFunction((file) => document.querySelector("sealift-verifier").reports[0]?.file === file, `${name}.sealift`);
    await settled(state);
    assert.deepEqual(await all(), shut(state), name);
  }
  await choose("good");
  await settled("safe");
  await element.evaluate((element) => element.form.reset());
  assert.deepEqual([(await told()).at(-1), (await all()).valid, (await all()).state], ["reset", false, "empty"]);
  await leave();
});

test("while it is being checked nothing is open", async () => {
  const { page, leave } = await visit();
  const { element, all, settled } = await gate(page, bundles.files, { "trust-src": "/bundles/signers.txt" });
  await element.evaluate(async (element) => {
    const file = await (await fetch("/bundles/good.sealift")).blob();
    const held = new Promise((resolve) => (window.goOn = resolve));
    // Head, index and the first chunks come; the last do not.
    const read = async (offset, length) => {
      if (offset + length > file.size - 1000) await held;
      return new Uint8Array(await file.slice(offset, offset + length).arrayBuffer());
    };
    element.check({ size: file.size, read }, "good.sealift");
  });
  await page.waitForFunction(() => window.told.some(({ type }) => type === "progress"));
  assert.deepEqual({ ...(await all()), event: false, report: false }, shut("checking"));
  await page.evaluate(() => window.goOn());
  await settled("safe");
  await leave();
});

const SHUTS = {
  "the allowed signers are others": ["trust-src", "/bundles/stranger.txt", "refused", "unknown signer"],
  "nobody is allowed": ["trust-src", "/bundles/nobody.txt", "refused", "unknown signer"],
  "the allowed signers cannot be loaded": ["trust-src", "/bundles/missing.txt", "unknown", "the rules to judge by cannot be loaded"],
  "the allowed signers cannot be read": ["trust-src", "/bundles/malformed.txt", "unknown", "this site's rules are malformed"],
  "the allowed signers' address is none": ["trust-src", "http://", "unknown", "the rules to judge by cannot be loaded"],
  "the key is revoked": ["revoked-src", "/bundles/revoked.txt", "refused", "revoked key"],
  "the revocation list cannot be loaded": ["revoked-src", "/bundles/missing.txt", "unknown", "the rules to judge by cannot be loaded"],
  "the revocation list cannot be read": ["revoked-src", "/bundles/malformed.txt", "unknown", "this site's rules are malformed"],
  "more keys are needed": ["threshold", "2", "refused", "only 1 of 2 required keys signed"],
  "the threshold is none": ["threshold", "many", "unknown", "this site's rules are malformed"],
  "a later version is the floor": ["floor-src", "/bundles/floors.json", "refused", "older than version 8, already checked here"],
  "the floors cannot be read": ["floor-src", "/bundles/signers.txt", "unknown", "the rules to judge by cannot be loaded"],
  "the settings count no more": ["trust-src", null, "refused", "unknown signer"],
  "the address is none": ["src", "http://", "unknown", "this is not an address"],
  "the address is another bundle's": ["src", "/bundles/flipped.sealift", "refused", "it is damaged"],
};

for (const [name, [attribute, value, state, words]] of Object.entries(SHUTS)) {
  test(`what was safe is not when ${name}`, async () => {
    const { page, leave } = await visit();
    const { element, set, all, settled } = await gate(page, bundles.files, { "trust-src": "/bundles/signers.txt", settings: "readonly", src: "/bundles/good.sealift" });
    await settled("safe");
    await page.getByLabel("Filter files").fill("os-release");
    await page.getByRole("treeitem", { name: "os-release" }).first().click();
    await page.getByText("VERSION_ID=7").waitFor();
    await set(attribute, value);
    // At once, and not when it is known why.
    assert.equal((await all()).ok, false);
    await settled(state);
    assert.deepEqual(await all(), shut(state));
    assert.match(await page.locator(".banner h2").textContent(), new RegExp(words));
    if (attribute !== "src") {
      assert.equal(await page.getByText("VERSION_ID=7").count(), 0, "the preview is still there");
      await set(attribute, attribute === "trust-src" ? "/bundles/signers.txt" : null);
      await settled("safe");
      assert.equal((await element.evaluate(({ ok }) => ok)), true);
      await page.getByText("VERSION_ID=7").waitFor();
    }
    await leave(/404/);
  });
}

test("trust that is still being loaded is none", async () => {
  const { page, leave } = await visit();
  const { set, all, settled, told } = await gate(page, bundles.files, { "trust-src": "/bundles/signers.txt", settings: "readonly", src: "/bundles/good.sealift" });
  await settled("safe");
  await page.route("**/stranger.txt", () => {}); // never answered
  await set("trust-src", "/bundles/stranger.txt");
  await page.waitForTimeout(200);
  assert.deepEqual(await all(), shut("checking"));
  assert.equal((await told()).at(-1), "verdict checking");
  await leave();
});

test("what the person removes or cannot be read is not as it was", async () => {
  const { page, choose, verdict, leave } = await visit({ signers: bundles.signers });
  await choose(bundles.files.good);
  await verdict("Safe to install: os, version 7");
  for (const [label, text, words] of [["Revoked keys", "nonsense", "your settings cannot be read"], ["Required keys", "0", "your settings cannot be read"], ["Allowed signers", "", "unknown signer"]]) {
    const field = page.getByLabel(label, { exact: true });
    const before = await field.inputValue();
    await enter(field, text);
    await verdict(words);
    assert.equal(await page.locator("sealift-verifier").evaluate(({ ok, reports }) => ok || reports[0].ok || reports[0].trusted), false);
    if (text === "") assert.equal(await page.getByText("Trusted", { exact: true }).count(), 0);
    await enter(field, before);
    await verdict("Safe to install");
  }
  await leave();
});

test("a page that fails does not call a bundle damaged", async () => {
  const { page, choose, leave } = await visit({ signers: bundles.signers });
  await page.evaluate(() => {
    // As from another origin, or in a sandboxed frame.
    window.Worker = class {
      constructor() {
        throw new DOMException("Script at 'https://cdn.example/worker.js' cannot be accessed from origin", "SecurityError");
      }
    };
  });
  await choose(bundles.files.good);
  await page.locator(".banner.doubt h2", { hasText: "Not checked: this page failed" }).waitFor();
  const [report] = await page.locator("sealift-verifier").evaluate(({ reports }) => reports);
  assert.deepEqual([report.state, report.error.kind, report.sound], ["unknown", "page", false]);
  await leave();
});

test("blocked storage: the highest version counts as long as the page is open", async () => {
  for (const how of ["blocked", "full"]) {
    const { page, choose, verdict, leave } = await visit({ init: (how) => {
      if (how === "blocked") Object.defineProperty(window, "localStorage", { get: () => { throw new DOMException("denied", "SecurityError"); } });
      else Storage.prototype.setItem = () => { throw new DOMException("full", "QuotaExceededError"); };
    }, initArg: how, signers: bundles.signers });
    await choose(bundles.files.good);
    await verdict("Safe to install: os, version 7");
    await page.getByText("are forgotten when the page is closed").waitFor({ state: "attached" });
    await page.getByText("It is forgotten when the page is closed.").waitFor();
    assert.equal(await page.getByText("This browser stores these settings").count(), 0);
    await choose(bundles.files.older);
    await verdict("older than version 7, already checked here");
    await leave();
  }
});

test("a record of versions that cannot be read is no record", async () => {
  const { page, choose, verdict, leave } = await visit({ signers: bundles.signers });
  for (const record of ["{", "[]", '{"os": 7}', '{"os": "seven"}']) {
    await page.evaluate((record) => localStorage.setItem("sealift.versions", record), record);
    await choose(bundles.files.good);
    await verdict("this browser's record of versions cannot be read");
    assert.equal(await page.locator("sealift-verifier").evaluate(({ ok }) => ok), false);
  }
  await page.getByRole("button", { name: "Forget all versions seen" }).click();
  await verdict("Safe to install");
  await leave();
});

test("what is forgotten is judged anew, and what was seen is said", async () => {
  const { page, choose, verdict, leave } = await visit({ signers: bundles.signers });
  await choose(bundles.files.good);
  await verdict("Safe to install");
  await page.getByText("It is the highest that this browser has seen.").waitFor();
  await choose(bundles.files.older);
  await verdict("older than version 7, already checked here");
  await page.getByRole("button", { name: "Forget it" }).click();
  await verdict("Safe to install: os, version 6");
  await leave();
});

test("what another page of the site sees and changes counts here", async () => {
  const { page, choose, verdict, leave } = await visit({ signers: bundles.signers });
  await choose(bundles.files.good);
  await verdict("Safe to install");
  const other = await page.context().newPage();
  await other.goto(server.origin);
  await other.evaluate(() => localStorage.setItem("sealift.versions", '{"os": "9"}'));
  await verdict("older than version 9, already checked here");
  await other.evaluate(() => localStorage.removeItem("sealift.versions"));
  await verdict("Safe to install");
  await other.evaluate(() => localStorage.setItem("sealift.allowedSigners", ""));
  await verdict("unknown signer");
  await leave();
});

test("parts of it are hidden, and a disabled one takes nothing", async () => {
  const { page, leave } = await visit();
  const { element, set, settled, all } = await gate(page, bundles.files, { "trust-src": "/bundles/signers.txt", settings: "readonly", src: "/bundles/good.sealift", hide: "chooser address settings layout" });
  await settled("safe");
  for (const text of ["Choose another", "Trusted keys and devices", "Layout"]) assert.equal(await page.getByText(text, { exact: true }).isVisible(), false, text);
  assert.equal(await page.getByLabel("Address of a bundle").isVisible(), false);
  assert.equal((await all()).carried, `${server.origin}/bundles/good.sealift`);
  await set("hide", "layout");
  assert.equal(await page.getByText("Choose another", { exact: true }).isVisible(), true);
  await set("disabled", "");
  assert.equal(await page.locator("#file").isDisabled(), true);
  assert.equal(await element.evaluate((element) => new FormData(element.form).get("bundle")), null);
  await leave();
});

test("readonly settings are not those that the browser remembers", async () => {
  const { page, leave } = await visit({ signers: bundles.signers });
  const { settled, set } = await gate(page, bundles.files, { settings: "readonly", src: "/bundles/good.sealift" });
  await settled("refused");
  await set("settings", null);
  await settled("safe");
  await leave();
});

test("contents that were not checked are when the attribute says so", async () => {
  const { page, leave } = await visit({ signers: bundles.signers });
  const { element, settled } = await gate(page, bundles.files, { deep: "no", src: "/bundles/good.sealift" });
  await settled("safe");
  assert.equal(await element.evaluate(({ reports }) => reports[0].deep), false);
  // At once: the check itself may have ended by the next question.
  const isOk = await element.evaluate((element) => {
    element.setAttribute("deep", "yes");
    return element.ok;
  });
  assert.equal(isOk, false);
  await settled("safe");
  assert.equal(await element.evaluate(({ reports }) => reports[0].deep), true);
  await leave();
});

test("the device's tags are others", async () => {
  const { page, leave } = await visit();
  const { set, all, settled } = await gate(page, bundles.files, { "trust-src": "/bundles/signers.txt", settings: "readonly", src: "/bundles/incompatible.sealift", compatible: "board-x board-y" });
  await settled("safe");
  await set("compatible", "board-y");
  assert.equal((await all()).ok, false);
  await settled("refused");
  await page.getByText("Needs: board-x. Yours: board-y.").waitFor();
  await set("compatible", "board-y, board-x");
  await settled("safe");
  await leave();
});

test("an answer that is no bundle says nothing of the bundle, and a file that is none is refused", async () => {
  const { page, leave } = await visit();
  const { element, settled, all } = await gate(page, bundles.files, { "trust-src": "/bundles/signers.txt", settings: "readonly", src: "/index.html" });
  await settled("unknown");
  assert.deepEqual(await all(), { ...shut("unknown") });
  await page.locator(".banner.doubt h2", { hasText: "Not checked: the address gave no bundle" }).waitFor();
  await element.evaluate((element) => element.setAttribute("src", "/bundles/missing.sealift"));
  await page.locator(".banner.doubt h2", { hasText: "Not checked: the address cannot be read" }).waitFor();
  await page.getByText("the server answers 404").waitFor();
  for (const kind of ["bytes", "stream", "reader"]) {
    await element.evaluate(async (element, kind) => {
      const page = await (await fetch("/index.html")).blob();
      const bytes = new Uint8Array(await page.arrayBuffer());
      const source = { bytes, stream: page.stream(), reader: { size: bytes.length, read: (at, length) => bytes.slice(at, at + length) } }[kind];
      await element.check(source, kind);
    }, kind);
    assert.deepEqual(await element.evaluate(({ finding }) => [finding.state, finding.title]), ["refused", "Not a Sealift bundle"], kind);
  }
  await leave(/404/);
});

test("a report says what was done, not what was asked", async () => {
  const { page, leave } = await visit();
  const { element, choose, settled } = await gate(page, bundles.files, { "trust-src": "/bundles/signers.txt", settings: "readonly" });
  await choose("flipped");
  await settled("refused");
  assert.deepEqual(await element.evaluate(({ reports: [{ deep, sound }] }) => [deep, sound]), [false, false]);
  await page.locator("dd", { hasText: "not every byte" }).waitFor();
  await choose("good");
  await settled("safe");
  assert.deepEqual(await element.evaluate(({ reports: [{ deep, sound }] }) => [deep, sound]), [true, true]);
  await page.locator("dd", { hasText: "every byte, and the content of every file" }).waitFor();
  await element.evaluate((element) => element.setAttribute("trust-src", "/bundles/missing.txt"));
  await settled("unknown");
  assert.equal(await element.evaluate(({ reports: [{ policy }] }) => policy), undefined);
  await leave(/404/);
});

test("a base that the page names and that cannot be had leaves nothing safe", async () => {
  const { page, leave } = await visit();
  const { set, all, settled } = await gate(page, bundles.files, { "trust-src": "/bundles/signers.txt", settings: "readonly", src: "/bundles/delta.sealift", "base-src": "/bundles/missing.sealift" });
  await page.locator(".banner.doubt h2", { hasText: "Not checked: its base cannot be used" }).waitFor();
  assert.deepEqual(await all(), shut("unknown"));
  await set("base-src", "/bundles/good.sealift");
  await page.getByText("the bundle is not a delta of os version 7").waitFor();
  assert.deepEqual(await all(), shut("unknown"));
  await set("base-src", "/bundles/older.sealift");
  await settled("safe");
  await page.getByText("so is every file that results with os version 6").waitFor();
  await set("base-src", "/bundles/missing.sealift");
  assert.equal((await all()).ok, false);
  await settled("unknown");
  await leave(/404/);
});

test("the digest of a file comes after the verdict, and who waits gets it", async () => {
  const { page, leave } = await visit();
  const { choose, settled } = await gate(page, bundles.files, { "trust-src": "/bundles/signers.txt", settings: "readonly" });
  for (const [name, state] of [["good", "safe"], ["flipped", "refused"]]) {
    await choose(name);
    await settled(state);
    const [source, size, digest] = await page.evaluate(async () => {
      const { source, complete } = window.told.filter(({ type }) => type === "verdict").at(-1).detail;
      return [source instanceof File && source.name, source.size, (await complete).sha256];
    });
    const bytes = readFileSync(bundles.files[name]);
    assert.deepEqual([source, size, digest], [`${name}.sealift`, bytes.length, createHash("sha256").update(bytes).digest("hex")]);
  }
  await leave();
});

test("each check begins with an event, and so does one that is repeated", async () => {
  const { page, leave } = await visit();
  const { element, choose, settled, told } = await gate(page, bundles.files, { "trust-src": "/bundles/signers.txt", settings: "readonly", deep: "no" });
  const starts = async () => (await told()).filter((type) => type === "start").length;
  await choose("good");
  await settled("safe");
  assert.equal(await starts(), 1);
  await element.evaluate((element) => element.setAttribute("deep", "yes"));
  await settled("safe");
  assert.equal(await starts(), 2);
  await element.evaluate(async (element) => {
    const slow = { size: 1 << 30, read: () => new Promise(() => {}) };
    element.check(slow, "slow");
    element.stop();
  });
  await settled("unknown");
  await page.getByRole("button", { name: "Check again" }).click();
  assert.equal(await starts(), 4);
  await leave();
});

test("bytes are sent as a file, and what a form cannot send leaves it invalid", async () => {
  const { page, leave } = await visit();
  const { element, all, settled } = await gate(page, bundles.files, { "trust-src": "/bundles/signers.txt", settings: "readonly" });
  const check = (kind) => element.evaluate(async (element, kind) => {
    const file = await (await fetch("/bundles/good.sealift")).blob();
    await element.check(kind === "bytes" ? new Uint8Array(await file.arrayBuffer()) : file.stream(), "good.sealift");
  }, kind);
  await check("bytes");
  await settled("safe");
  assert.deepEqual(await all(), OPEN);
  await check("stream");
  await settled("safe");
  assert.deepEqual(await all(), { ...OPEN, valid: false, carried: null });
  assert.equal(await element.evaluate(({ validationMessage }) => validationMessage), "good.sealift: a form cannot send this; choose a file.");
  await element.evaluate((element) => element.removeAttribute("name"));
  assert.equal((await all()).valid, true);
  await leave();
});

test("an element that is moved keeps what it found, and one that is removed forgets it", async () => {
  const { page, leave } = await visit();
  const { element, choose, all, settled, told } = await gate(page, bundles.files, { "trust-src": "/bundles/signers.txt", settings: "readonly" });
  await choose("good");
  await settled("safe");
  await element.evaluate((element) => element.form.append(Object.assign(document.createElement("div"), { id: "new" })));
  await element.evaluate((element) => document.querySelector("#new").append(element));
  await page.waitForTimeout(50);
  assert.deepEqual(await all(), OPEN);
  assert.equal((await told()).filter((type) => type === "start").length, 1);
  // What it listens to works still, and once.
  const isOk = await element.evaluate((element) => {
    window.dispatchEvent(new StorageEvent("storage", { key: null }));
    return element.ok;
  });
  assert.equal(isOk, false);
  await settled("safe");
  const found = await element.evaluate(async (element) => {
    const { parentNode } = element;
    element.remove();
    await new Promise((resolve) => setTimeout(resolve, 20));
    const removed = element.ok;
    parentNode.append(element);
    return [removed, element.ok, element.finding.state];
  });
  assert.deepEqual([found, (await told()).at(-1)], [[false, false, "empty"], "reset"]);
  await choose("good");
  await settled("safe");
  await leave();
});

test("where the package lies may be said later", async () => {
  const { page, leave } = await visit();
  const { set, settled } = await gate(page, bundles.files, { "trust-src": "/bundles/signers.txt", settings: "readonly", "worker-url": "/missing.js", src: "/bundles/good.sealift" });
  await settled("unknown");
  await set("worker-url", "/sealift/src/worker.js");
  await settled("safe");
  await set("wasm-url", "/missing.wasm");
  await settled("unknown");
  await set("wasm-url", null);
  await settled("safe");
  await leave(/404|worker/i);
});
