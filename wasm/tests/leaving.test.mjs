// What leaves a form is safe when it leaves, and not when it was judged. Run by: node --test wasm/tests/leaving.test.mjs

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFileSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { test } from "node:test";

import { gate } from "./gate.mjs";
import { setup } from "./setup.mjs";

/** What the site says now, by name, and who asked. */
const rules = {};
const asked = [];
/** The uploads: their fields, by name. */
const uploads = [];
const { server, bundles, people } = await setup({
  serve: () => ({
    rules: (request, response) => {
      const name = new URL(request.url, server.origin).pathname.slice("/rules/".length);
      asked.push(name);
      const { status = 200, text, silent } = typeof rules[name] === "object" ? rules[name] : { text: rules[name] };
      if (!silent) response.writeHead(status, { "Content-Type": "text/plain", "Cache-Control": "max-age=3600" }).end(status === 204 ? undefined : text);
    },
    // A page whose policy lets forms be sent.
    "form.html": (request, response) => response.writeHead(200, { "Content-Type": "text/html" }).end('<!doctype html><html lang="en"><title>x</title><link rel="icon" href="icon.svg"><main></main><script type="module" src="/sealift/src/element.js"></script>'),
    upload: async (request, response) => {
      const form = await new Response(request, { headers: request.headers, duplex: "half" }).formData();
      const fields = {};
      for (const [name, value] of form) fields[name] = value instanceof File ? createHash("sha256").update(Buffer.from(await value.arrayBuffer())).digest("hex") : value;
      uploads.push(fields);
      response.writeHead(200, { "Content-Type": "text/html" }).end("<!doctype html><title>x</title>thanks");
    },
  }),
});
const { visit } = people;

const publicKey = () => `${bundles.signers.split('" ')[1]}\n`;
const ruled = { "trust-src": "/rules/signers", "revoked-src": "/rules/revoked", "floor-src": "/rules/floors", settings: "readonly" };

/** A gate whose form is sent to /upload, with a bundle that is safe. */
async function open(attributes = {}, name = "good") {
  Object.assign(rules, { signers: bundles.signers, revoked: "# nothing\n", floors: "{}" });
  uploads.length = 0;
  const { page, leave } = await visit({ path: "/form.html" });
  const opened = await gate(page, bundles.files, { ...ruled, ...attributes });
  await opened.element.evaluate(({ form }) => {
    Object.assign(form, { method: "post", action: "/upload", enctype: "multipart/form-data", target: "answer" });
    form.append(Object.assign(document.createElement("button"), { textContent: "Upload" }));
    // The page stays.
    document.body.append(Object.assign(document.createElement("iframe"), { name: "answer" }));
  });
  await opened.choose(name);
  await opened.settled("safe");
  asked.length = 0;
  return { page, leave, ...opened, send: () => page.getByRole("button", { name: "Upload" }).click() };
}

const arrived = async (page) => {
  for (let tries = 0; uploads.length === 0; tries += 1) {
    assert(tries < 200, "nothing was sent");
    await page.waitForTimeout(50);
  }
  return uploads.at(-1);
};

test("a form sends the file, and what was checked of it", async () => {
  const { page, send, leave, element } = await open();
  await send();
  const fields = await arrived(page);
  const bytes = readFileSync(bundles.files.good);
  const sha256 = createHash("sha256").update(bytes).digest("hex");
  const digest = await element.evaluate(({ reports }) => reports[0].head.indexDigest);
  const { mtimeMs } = statSync(bundles.files.good);
  assert.deepEqual({ ...fields, "bundle.time": Math.abs(Date.parse(fields["bundle.time"]) - mtimeMs) < 1000 }, {
    bundle: sha256, "bundle.sha256": sha256, "bundle.digest": digest, "bundle.size": String(bytes.length), "bundle.time": true,
  });
  assert.deepEqual([...asked].sort(), ["floors", "revoked", "signers"], "the rules were not read before it was sent");
  await leave();
});

for (const [what, change, words] of [
  ["a key that was revoked meanwhile", () => ({ revoked: publicKey() }), "signed with a revoked key"],
  ["signers that are others meanwhile", () => ({ signers: `os namespaces="sealift" ${bundles.stranger}` }), "unknown signer"],
  ["a floor that was raised meanwhile", () => ({ floors: '{"os": "9"}' }), "older than version 9"],
  ["rules that are gone meanwhile", () => ({ revoked: { status: 404 } }), "the rules to judge by cannot be loaded"],
  ["an answer that has no content", () => ({ revoked: { status: 204 } }), "the rules to judge by cannot be loaded"],
]) {
  test(`${what}: nothing is sent`, async () => {
    const { page, send, all, leave } = await open();
    Object.assign(rules, change());
    await send();
    await page.locator(".banner h2", { hasText: words }).waitFor();
    await page.waitForTimeout(300);
    assert.deepEqual(uploads, []);
    const { ok, valid, carried, event } = await all();
    assert.deepEqual([ok, valid, carried, event], [false, false, null, false]);
    await leave(/404/);
  });
}

test("who listens for the form's events meets a submission only once, and after the rules were read", async () => {
  const { page, send, element, leave } = await open();
  await element.evaluate(({ form }) => {
    window.submits = [];
    for (const target of [window, document, form]) target.addEventListener("submit", (event) => window.submits.push(event.submitter?.textContent), true);
  });
  await send();
  await arrived(page);
  assert.deepEqual(await page.evaluate(() => window.submits), ["Upload", "Upload", "Upload"]);
  assert.equal(uploads.length, 1);
  await leave();
});

test("a second choice, and a page that is seen again, read the rules again", async () => {
  const { page, choose, all, settled, leave } = await open();
  rules.revoked = publicKey();
  await choose("good");
  await page.locator(".banner h2", { hasText: "signed with a revoked key" }).waitFor();
  await settled("refused");
  rules.revoked = "# nothing\n";
  await choose("good");
  await settled("safe");
  const seen = (minutes) => page.evaluate((minutes) => {
    const real = Date.now;
    Date.now = () => real() + minutes * 60_000;
    document.dispatchEvent(new Event("visibilitychange"));
    Date.now = real;
  }, minutes);
  rules.revoked = publicKey();
  asked.length = 0;
  await seen(0);
  await page.waitForTimeout(200);
  assert.deepEqual([asked, (await all()).ok], [[], true]);
  await seen(2);
  await settled("refused");
  assert.equal((await all()).carried, null);
  await leave();
});

test("rules that did not change leave the verdict alone", async () => {
  const { page, element, leave } = await open();
  await page.evaluate(() => (window.told = []));
  assert.equal(await element.evaluate((element) => element.recheck()), true);
  assert.deepEqual(await page.evaluate(() => window.told), []);
  assert.equal(asked.length, 3);
  await leave();
});

test("a script that takes the value by old rules gets none", async () => {
  const { element, settled, leave } = await open();
  rules.revoked = publicKey();
  const taken = await element.evaluate(({ form }) => {
    const real = Date.now;
    Date.now = () => real() + 120_000;
    const names = [...new FormData(form).keys()];
    Date.now = real;
    return names;
  });
  assert.deepEqual(taken, []);
  await settled("refused");
  await leave();
});

test("a server that never answers is given up after 15 seconds, and nothing is safe", async () => {
  const { page, send, settled, leave } = await open();
  rules.revoked = { silent: true };
  await send();
  await settled("unknown");
  await page.locator(".banner", { hasText: "has not sent it within 15 s" }).waitFor();
  assert.deepEqual(uploads, []);
  await leave();
});

test("a file that was replaced by another of the same length and time does not leave", async () => {
  const { page, send, element, all, leave } = await open();
  const before = readFileSync(bundles.files.good);
  const { atime, mtime } = statSync(bundles.files.good);
  try {
    const other = Buffer.from(before);
    other[other.length - 100] ^= 1;
    writeFileSync(bundles.files.good, other);
    utimesSync(bundles.files.good, atime, new Date(mtime.getTime() + 5000));
    await send();
    await page.locator(".banner h2", { hasText: "the file changed" }).waitFor();
    await page.waitForTimeout(300);
    assert.deepEqual([uploads, (await all()).carried, await element.evaluate(({ finding }) => finding.state)], [[], null, "unknown"]);
  } finally {
    writeFileSync(bundles.files.good, before);
    utimesSync(bundles.files.good, atime, mtime);
  }
  await leave();
});

/** Every attribute that says what is judged and how, a value that closes the gate, and the state it then has. */
const ATTRIBUTES = [
  ["src", "/bundles/flipped.sealift", "refused"], ["src", null, "empty"], ["trust-src", "/rules/strangers", "refused"], ["trust-src", null, "refused"],
  ["revoked-src", "/rules/all", "refused"], ["floor-src", "/rules/high", "refused"], ["threshold", "2", "refused"], ["wasm-url", "/missing.wasm", "unknown"],
  ["worker-url", "/missing.js", "unknown"],
];
for (const [attribute, value, state] of ATTRIBUTES) {
  test(`${attribute}=${value} counts when it is set while the element is moved`, async () => {
    Object.assign(rules, { signers: bundles.signers, revoked: "# nothing\n", floors: "{}", strangers: `os namespaces="sealift" ${bundles.stranger}`, all: publicKey(), high: '{"os": "9"}' });
    const { page, leave } = await visit();
    const { element, settled } = await gate(page, bundles.files, { ...ruled, src: "/bundles/good.sealift" });
    await settled("safe");
    const isOk = await element.evaluate((element, [attribute, value]) => {
      const { form } = element;
      element.remove();
      if (value === null) element.removeAttribute(attribute);
      else element.setAttribute(attribute, value);
      form.prepend(element);
      return element.ok;
    }, [attribute, value]);
    assert.equal(isOk, false);
    await settled(state);
    await leave(/404|worker/i);
  });
}

test("one event tells every change", async () => {
  const { page, element, choose, settled, leave } = await open();
  await page.evaluate(() => {
    window.open = document.querySelector("sealift-verifier").ok;
    window.wrong = [];
    window.addEventListener("sealift-verdict", ({ detail }) => (window.open = detail.ok));
  });
  const agrees = async (what) => assert.equal(await page.evaluate(() => window.open), await page.evaluate(() => document.querySelector("sealift-verifier")?.ok ?? false), what);
  await element.evaluate((element) => {
    element.reset();
    window.wrong.push(window.open);
  });
  assert.deepEqual(await page.evaluate(() => window.wrong), [false], "after a reset");
  await choose("good");
  await settled("safe");
  await agrees("safe again");
  await element.evaluate((element) => {
    element.check("/bundles/flipped.sealift");
    window.wrong = [window.open];
  });
  assert.deepEqual(await page.evaluate(() => window.wrong), [false], "when another is chosen");
  await settled("refused");
  await choose("good");
  await settled("safe");
  await agrees("safe once more");
  await element.evaluate((element) => element.form.remove());
  await page.waitForFunction(() => window.open === false);
  await leave();
});

test("with several, the event says whether all are safe", async () => {
  const { page, element, leave } = await open({ multiple: "" });
  await page.evaluate(() => (window.told = []));
  await page.locator("#file").setInputFiles([bundles.files.good, bundles.files.flipped]);
  await page.getByText("1 of 2 bundles safe to install.").waitFor();
  assert.deepEqual(await page.evaluate(() => window.told.filter(({ type, detail }) => type === "verdict" && detail.ok).map(({ detail }) => [detail.state, detail.name])), []);
  await page.locator(".list button", { hasText: "flipped.sealift" }).click();
  await page.getByRole("button", { name: "Remove" }).filter({ visible: true }).click();
  await page.waitForFunction(() => window.told.at(-1).detail?.ok === true);
  assert.equal(await element.evaluate(({ ok }) => ok), true);
  await leave();
});

test("an address is no value that a person can enter into a form", async () => {
  const { page, element, leave } = await open();
  assert.equal(await page.getByLabel("Address of a bundle").isVisible(), false);
  await element.evaluate((element) => element.removeAttribute("name"));
  assert.equal(await page.getByLabel("Address of a bundle").isVisible(), true);
  await leave();
});

test("a site's broken rules are the site's fault, and a locked gate offers nothing", async () => {
  const { page, choose, settled, leave } = await open();
  for (const [name, text] of [["signers", "os nonsense\n"], ["revoked", "nonsense\n"]]) {
    const before = rules[name];
    rules[name] = text;
    await choose("good");
    await settled("unknown");
    await page.locator(".banner", { hasText: "this site's rules are malformed" }).waitFor();
    await page.locator(".banner", { hasText: "Send the message below to the site's operator." }).waitFor();
    assert.equal(await page.getByText("Correct them").count(), 0);
    rules[name] = before;
  }
  for (const name of ["good", "older", "untrusted"]) {
    await choose(name);
    await settled(name === "good" ? "safe" : "refused");
    await page.locator(".more").evaluate((more) => (more.open = true));
    for (const words of ["Forget it", "Forget all versions seen", "Trust this key", "Compare", "Trusted keys and devices"]) assert.equal(await page.getByText(words, { exact: words === "Compare" }).filter({ visible: true }).count(), 0, `${name}: ${words}`);
  }
  await leave();
});
