// Bundles in volumes at the page and in a form. Run by: node --test wasm/tests/page-volumes.test.mjs, with SEALIFT_BROWSER=firefox in that

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { copyFileSync, mkdirSync, readFileSync, readdirSync, renameSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { test } from "node:test";

import { enter } from "./browser.mjs";
import { sealift } from "./bundle.mjs";
import { gate } from "./gate.mjs";
import { setup } from "./setup.mjs";

const uploads = [];
const { bundles, people } = await setup({
  serve: () => ({
    "form.html": (request, response) => response.writeHead(200, { "Content-Type": "text/html" }).end('<!doctype html><html lang="en"><title>x</title><link rel="icon" href="icon.svg"><main></main><script type="module" src="/sealift/src/element.js"></script>'),
    upload: async (request, response) => {
      const form = await new Response(request, { headers: request.headers, duplex: "half" }).formData();
      const values = await Promise.all([...form].map(async ([name, value]) => [name, value instanceof File ? digest(Buffer.from(await value.arrayBuffer())) : value]));
      uploads.push(Object.fromEntries([...form.keys()].map((name) => [name, values.filter(([own]) => own === name).map(([, value]) => value)])));
      response.writeHead(200, { "Content-Type": "text/html" }).end("<!doctype html><title>x</title>thanks");
    },
  }),
});
const at = (...names) => join(bundles.folder, ...names);
const digest = (bytes) => createHash("sha256").update(bytes).digest("hex");
const digestOf = (file) => digest(readFileSync(file));
// In chunks that are small enough for three volumes, and for two of the delta.
writeFileSync(at("new/usr/lib/more"), randomBytes(1_000_000));
const pack = (tree, name, version, key, ...more) => execFileSync(sealift, ["pack", at(tree), "-o", bundles.files[name], "--name", "os", "--bundle-version", version, "--owner", "0:0", "--chunk-size", "256KiB", "--key", at(key), "--force", ...more], { stdio: "pipe" });
pack("new", "good", "7", "release");
pack("old", "older", "6", "release");
pack("new", "untrusted", "8", "stranger");
pack("new", "delta", "7", "release", "--base", bundles.files.older, "--allow-unsigned");
/** The volumes of a bundle, in order. */
const split = (name, size, ...more) => {
  execFileSync(sealift, ["split", bundles.files[name], "--size", size, "-o", at(`${name}-${size}`), ...more], { stdio: "pipe" });
  return readdirSync(at(`${name}-${size}`)).filter((file) => file.endsWith("-volume")).sort().map((file) => at(`${name}-${size}`, file));
};
const good = split("good", "1536KiB", "--recovery", "1");
const recovery = readdirSync(at("good-1536KiB")).filter((file) => file.endsWith("-recovery")).map((file) => at("good-1536KiB", file));
const [one, two, three] = good;
const count = good.length;
mkdirSync(at("bad"));
/** A volume with a change, under the name that it has. */
const bad = (file, what, change) => {
  mkdirSync(at("bad", what));
  const path = at("bad", what, basename(file));
  writeFileSync(path, change(readFileSync(file)));
  return path;
};
const flipped = (place) => (bytes) => ((bytes[place < 0 ? bytes.length + place : place] ^= 1), bytes);
const visit = (options) => people.visit({ signers: bundles.signers, ...options });
const rows = (page) => page.getByRole("list", { name: "Bundles" }).getByRole("button");
const state = (page) => page.locator("sealift-verifier").evaluate(({ ok, reports }) => [ok, ...reports.map(({ state }) => state)]);

test("all volumes, in any order, are one bundle in one row", async () => {
  assert.equal(count, 3);
  for (const files of [good, [three, one, two]]) {
    const { page, choose, verdict, leave } = await visit();
    await choose(files);
    await verdict("Safe to install: os, version 7");
    assert.equal(await rows(page).count(), 0);
    await page.getByText(`${basename(one)} and 2 other volumes, signed by`).waitFor();
    const element = page.locator("sealift-verifier");
    await page.waitForFunction(() => document.querySelector("sealift-verifier").reports[0].sha256);
    const report = await element.evaluate(({ reports }) => reports[0]);
    assert.deepEqual([report.sha256, report.fileBytes], [digestOf(bundles.files.good), statSync(bundles.files.good).size]);
    assert.deepEqual(report.volumes, good.map((file, at) => ({ file: basename(file), number: at + 1, fileBytes: statSync(file).size, sha256: digestOf(file) })));
    await page.getByText("SHA-256 of the bundle").waitFor();
    for (const file of good) await page.getByText(digestOf(file)).waitFor();
    // What lies in another volume than the first can be read.
    await page.getByLabel("Filter files").fill("libhello.so.1");
    await page.getByRole("treeitem").first().click();
    await page.locator(".preview pre.bytes").waitFor();
    await leave();
  }
});

for (const [what, files, title, message] of [
  ["missing", () => [three, one], `Do not install yet: volume 2 of ${count} is missing`, `volume 2 of ${count} of os version 7 is missing`],
  ["alone", () => [two], `Do not install yet: volumes 1 and 3 of ${count} are missing`, "of os version 7 are missing"],
  ["there twice", () => [...good, bad(two, "twice", (bytes) => bytes)], `Do not install yet: volume 2 of ${count} is there twice`, "and so is"],
  ["cut", () => [one, bad(two, "cut", (bytes) => bytes.subarray(0, -5)), three], `Do not install: volume 2 of ${count} is not complete`, "and truncated: it has"],
  ["longer", () => [one, bad(two, "longer", (bytes) => Buffer.concat([bytes, bytes])), three], `Do not install: something follows volume 2 of ${count}`, "and continues after its end"],
  ["damaged", () => [one, bad(two, "damaged", flipped(-100)), three], `Do not install: volume 2 of ${count} is damaged, or was changed`, `${basename(two)}, volume 2 of ${count}: chunk `],
  ["damaged in its header", () => [one, bad(two, "header", flipped(30)), three], "Do not install: the header of a volume is damaged, or was changed", "the header of the volume does not match its digest"],
  ["empty but for its first bytes", () => [one, bad(two, "start", (bytes) => bytes.subarray(0, 8)), three], "Do not install: the header of a volume is damaged, or was changed", "it ends within the header of the volume"],
]) {
  test(`a volume that is ${what} is named, and nothing is safe`, async () => {
    const { page, choose, verdict, leave } = await visit();
    await choose(files());
    await verdict(title);
    await page.locator(".banner", { hasText: message }).waitFor();
    if (what === "damaged") await page.locator(".banner", { hasText: "in the first damaged part; there may be others" }).waitFor();
    assert.deepEqual(await state(page), [false, "refused"]);
    assert.equal(await page.locator(".banner.good").count(), 0);
    await leave();
  });
}

test("volumes of several sets are checked apart, and none stands in for another", async () => {
  const other = split("older", "1536KiB");
  const [fewer, asMany] = [split("good", "3MiB"), split("good", "2MiB")];
  assert.deepEqual([fewer.length, asMany.length], [2, count]);
  const { page, choose, leave } = await visit();
  for (const [files, titles] of [
    [[one, other[1], three], [`volume 2 of ${count} is missing`, `volumes 1 and 3 of ${other.length} are missing`]],
    // The same bundle, split otherwise.
    [[one, fewer[1], three], [`volume 2 of ${count} is missing`, "volume 1 of 2 is missing"]],
    // A copy of one volume in which the signatures were changed.
    [[one, bad(two, "signatures", flipped(112 + 600)), three], [`volume 2 of ${count} is missing`, "volume 2 of 3 is damaged, or was changed"]],
  ]) {
    await choose(files);
    for (const [row, title] of titles.entries()) await rows(page).nth(row).filter({ hasText: title }).waitFor();
    await page.getByText("These volumes are of 2 sets, and each set is checked by itself").waitFor();
    assert.deepEqual(await state(page), [false, "refused", "refused"]);
  }
  await choose([one, asMany[1], three]);
  await page.locator(".banner h2", { hasText: `Do not install yet: volume 2 of ${count} does not follow the one before` }).waitFor();
  assert.deepEqual(await state(page), [false, "refused"]);
  await choose([...other, ...good]);
  await page.getByText("1 of 1 bundle safe to install; 1 older one is left aside.").waitFor();
  await leave();
});

test("recovery volumes beside them are not needed, and volumes lie among other files", async () => {
  assert.equal(recovery.length, 1);
  const { page, choose, verdict, leave } = await visit();
  await choose([...recovery, ...good]);
  await verdict("Safe to install: os, version 7");
  const note = page.getByText("1 recovery volume is not needed here: sealift repair makes lost volumes again with it.");
  assert.equal(await note.getAttribute("class"), "quiet");
  await choose([bundles.files.unsigned, ...good]);
  await rows(page).filter({ hasText: "nobody signed it" }).waitFor();
  await rows(page).filter({ hasText: "Safe to install" }).waitFor();
  await leave();
});

test("who signed volumes is judged, also of one alone", async () => {
  const [first] = split("untrusted", "1536KiB");
  const { page, choose, verdict, leave } = await visit();
  await choose(good);
  await verdict("Safe to install");
  await enter(page.getByLabel("Revoked keys", { exact: true }), bundles.signers.split('" ')[1]);
  await verdict("signed with a revoked key");
  await choose(first);
  await verdict("Do not install yet: volumes 2 and 3 of 3 are missing");
  await page.getByText("Does not count").waitFor();
  await leave();
});

test("a delta and its base, both in volumes, are one row", async () => {
  const { page, choose, verdict, leave } = await visit();
  const [base, delta] = [split("older", "1600KiB"), split("delta", "2932KiB")];
  assert(delta.length > 1);
  await choose([...delta, ...base]);
  await verdict("Safe to install: os, version 7");
  await page.getByText("so is every file that results with os version 6").waitFor();
  await choose(bundles.files.delta);
  await page.getByText("It is a delta: the device checks the result against its installed version.").waitFor();
  await page.locator("#base").setInputFiles(base);
  await page.getByText("so is every file that results with os version 6").waitFor();
  await choose(good);
  await verdict("Safe to install: os, version 7");
  await page.locator("#older").setInputFiles(base);
  await page.getByText("os version 7 compared with os version 6").waitFor();
  await leave();
});

/** A gate whose form is sent to /upload, with the volumes that lie in a folder of their own. */
async function open(name, attributes = {}) {
  uploads.length = 0;
  mkdirSync(at(name));
  const files = good.map((file) => at(name, basename(file)));
  good.forEach((file, number) => copyFileSync(file, files[number]));
  const { page, leave } = await people.visit({ path: "/form.html" });
  const opened = await gate(page, { volumes: files }, { "trust-src": "/bundles/signers.txt", settings: "readonly", ...attributes });
  await opened.element.evaluate(({ form }) => {
    Object.assign(form, { method: "post", action: "/upload", enctype: "multipart/form-data", target: "answer" });
    form.append(Object.assign(document.createElement("button"), { textContent: "Upload" }));
    document.body.append(Object.assign(document.createElement("iframe"), { name: "answer" }));
  });
  await opened.choose("volumes");
  await opened.settled("safe");
  return { page, leave, files, ...opened, send: () => page.getByRole("button", { name: "Upload" }).click() };
}

test("a form for one bundle takes its volumes, and sends each with what was checked of it", async () => {
  const { page, send, leave, element, files } = await open("sent");
  await send();
  for (let tries = 0; uploads.length === 0; tries += 1) {
    assert(tries < 200, "nothing was sent");
    await page.waitForTimeout(50);
  }
  const [fields] = uploads;
  const indexDigest = await element.evaluate(({ reports }) => reports[0].head.indexDigest);
  assert.deepEqual(fields["bundle.time"].map((time, number) => Math.abs(Date.parse(time) - statSync(files[number]).mtimeMs) < 1000), good.map(() => true));
  assert.deepEqual({ ...fields, "bundle.time": [] }, {
    bundle: good.map(digestOf), "bundle.sha256": good.map(digestOf), "bundle.digest": good.map(() => indexDigest),
    "bundle.size": good.map((file) => String(statSync(file).size)), "bundle.time": [],
  });
  await page.getByRole("button", { name: "Remove" }).filter({ visible: true }).click();
  assert.deepEqual(await element.evaluate(({ ok, form }) => [ok, new FormData(form).getAll("bundle").length]), [false, 0]);
  await leave();
});

for (const [what, change] of [
  ["replaced by another of the same length", (file) => {
    const { atime, mtime } = statSync(file);
    writeFileSync(file, flipped(-100)(readFileSync(file)));
    utimesSync(file, atime, new Date(mtime.getTime() + 5000));
  }],
  // What the others have of it is checked by nothing else.
  ["changed in its copy of the layout", (file) => {
    const { atime, mtime } = statSync(file);
    const bytes = readFileSync(file);
    writeFileSync(file, flipped(112 + bytes.readUInt32LE(20) + 8)(bytes));
    utimesSync(file, atime, new Date(mtime.getTime() + 5000));
  }],
  ["removed", (file) => renameSync(file, `${file}.gone`)],
]) {
  test(`a volume that was ${what} since does not leave`, async () => {
    const { page, send, all, element, leave, files } = await open(what.replaceAll(" ", "-"));
    change(files[1]);
    await send();
    await page.locator(".banner h2", { hasText: "the file changed" }).waitFor();
    await page.waitForTimeout(300);
    assert.deepEqual([uploads, (await all()).carried, await element.evaluate(({ finding }) => finding.state)], [[], null, "unknown"]);
    await leave();
  });
}

test("a field of one bundle takes no two sets", async () => {
  const { page, choose, leave } = await visit();
  await page.locator("sealift-verifier").evaluate((element) => element.removeAttribute("multiple"));
  await choose([...good, ...split("untrusted", "2MiB")]);
  await page.getByText("2 bundles: choose one of them. Nothing was checked.").waitFor();
  assert.deepEqual(await page.locator("sealift-verifier").evaluate(({ ok, finding }) => [ok, finding.state]), [false, "empty"]);
  await leave();
});
