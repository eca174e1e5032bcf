// What a report has of the file, of the policy and of the page, and what it says of damage, of a base and of time. Run by: node --test
// wasm/tests/report.test.mjs, with SEALIFT_BROWSER=firefox in that

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { enter, hashed, saved } from "./browser.mjs";
import { sealift } from "./bundle.mjs";
import { setup } from "./setup.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const digest = (bytes) => createHash("sha256").update(bytes).digest("hex");
const digestOf = (file) => digest(readFileSync(file));

const { bundles, people } = await setup();
const at = (name) => join(bundles.folder, name);
const pack = (tree, name, ...more) => execFileSync(sealift, ["pack", at(tree), "-o", at(`${name}.sealift`), "--name", "os", "--owner", "0:0", "--key", at("release"), "--force", ...more], { stdio: "pipe" });
// Large enough for several runs and workers.
mkdirSync(at("large"));
writeFileSync(at("large/file"), randomBytes(40 << 20));
pack("large", "large", "--bundle-version", "7");
// One of many small files, whose chunk hits them all.
mkdirSync(at("small/etc"), { recursive: true });
for (let number = 0; number < 30; number += 1) writeFileSync(at(`small/etc/f-${String(number).padStart(2, "0")}`), `file ${number}\n`);
writeFileSync(at("small/etc/a<b>\u202e"), "odd\n");
pack("small", "small", "--bundle-version", "7");
const small = readFileSync(at("small.sealift"));
small[small.length - 20] ^= 1;
writeFileSync(at("small.sealift"), small);
// A file that is changed in part, so that the delta takes most of it from its base.
const [old, fresh] = [randomBytes(6 << 20), randomBytes(1000)];
const changed = Buffer.from(old);
fresh.copy(changed, 3 << 20);
for (const [tree, content] of [["old", old], ["new", changed]]) writeFileSync(join(bundles.folder, tree, "usr/lib/part"), content);
pack("old", "base", "--bundle-version", "6");
pack("new", "delta", "--bundle-version", "7", "--base", at("base.sealift"), "--allow-unsigned");
pack("new", "full", "--bundle-version", "7");
const base = readFileSync(at("base.sealift"));
base[base.length - 100] ^= 1;
writeFileSync(at("broken-base.sealift"), base);
const good = readFileSync(bundles.files.good);
good[good.length >> 1] ^= 1;
writeFileSync(at("holed.sealift"), good);
for (const name of ["holed", "large", "small", "base", "delta", "full", "broken-base"]) bundles.files[name] = at(`${name}.sealift`);
const visit = async () => {
  const visitor = await people.visit({ signers: bundles.signers });
  /** Chooses a bundle, and waits for what is known of that one. */
  const check = async (name, words) => {
    await visitor.choose(bundles.files[name]);
    await visitor.page.locator(".banner h2", { hasText: words }).and(visitor.page.locator(".banner", { hasText: `${name}.sealift` }).locator("h2")).waitFor({ timeout: 60_000 });
  };
  return { ...visitor, check };
};

const reportOf = (page) => page.locator("sealift-verifier").evaluate(({ reports }) => reports[0]);

test("which file it was, by what it was judged, and by which page", async () => {
  const { page, check, leave } = await visit();
  await enter(page.getByLabel("Revoked keys"), bundles.stranger);
  for (const name of ["good", "large"]) {
    await check(name, "Safe to install: os, version 7");
    const { sha256, policy, page: by, checked, deep } = await hashed(page);
    assert.equal(sha256, digestOf(bundles.files[name]), name);
    assert.equal(policy.allowedSignersSha256, digest(bundles.signers));
    assert.equal(policy.revokedSha256, digest(bundles.stranger));
    assert.equal(by.version, JSON.parse(readFileSync(join(root, "npm/package.json"), "utf8")).version);
    assert.equal(by.module, digestOf(join(root, "npm/pkg/sealift_wasm_bg.wasm")));
    for (const moment of [policy.judged, checked]) assert(Math.abs(Date.now() - Date.parse(moment)) < 60_000, moment);
    assert.equal(deep, true);
  }
  const panel = page.locator(".panel", { hasText: "How it was checked" });
  await panel.getByText(digestOf(bundles.files.large)).waitFor();
  const { path } = await saved(page, () => page.getByRole("button", { name: "Save the report" }).click());
  assert.equal(JSON.parse(readFileSync(path, "utf8")).sha256, digestOf(bundles.files.large));
  await page.emulateMedia({ media: "print" });
  assert(await panel.isVisible());
  await leave();
});

test("a report is matched with what a device has", async () => {
  const { page, check, leave } = await visit();
  const at = (name) => join(bundles.folder, name);
  writeFileSync(at("allowed"), `${bundles.signers}\n`);
  const run = (...args) => JSON.parse(execFileSync(sealift, [...args, "--json", "--trust", at("allowed"), "--state", at("state")], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).split("\n")[0]);
  run("unpack", bundles.files.full, at("target"));
  // Another signature makes another file of the same bundle.
  const again = at("again.sealift");
  execFileSync(sealift, ["key", "generate", "-o", at("second")], { stdio: "ignore" });
  execFileSync(sealift, ["sign", bundles.files.full, "-o", again, "--key", at("second")], { stdio: "ignore" });
  bundles.files.again = again;
  for (const name of ["full", "again"]) {
    await check(name, "Safe to install: os, version 7");
    const { head, policy, sha256 } = await hashed(page);
    assert.equal(sha256, digestOf(bundles.files[name]));
    for (const { root_digest, index_digest } of [run("status", at("target")), run("audit", at("target"), "--ignore", "privileged")]) {
      assert.deepEqual([head.rootDigest, head.indexDigest], [root_digest, index_digest], name);
    }
    assert.equal(policy.floor, name === "full" ? undefined : "7");
  }
  await page.locator(".panel", { hasText: "How it was checked" }).locator("dd", { hasText: /^7$/ }).waitFor();
  await leave();
});

test("the file's digest, however it is read", async () => {
  const { page, check, verdict, leave } = await visit();
  await page.getByLabel("Address of a bundle").fill("/bundles/large.sealift");
  await page.getByLabel("Address of a bundle").press("Enter");
  await verdict("Safe to install");
  assert.equal((await reportOf(page)).sha256, digestOf(bundles.files.large), "by an address");
  await page.evaluate(async () => {
    const file = await (await fetch("/bundles/large.sealift")).blob();
    await document.querySelector("sealift-verifier").check(file.stream(), "a stream");
  });
  await verdict("Safe to install");
  assert.equal((await reportOf(page)).sha256, digestOf(bundles.files.large), "from a stream");
  await page.getByLabel("Check the contents of all files").uncheck();
  await check("large", "Safe to install");
  const { sha256, deep } = await hashed(page);
  assert.deepEqual([sha256, deep], [digestOf(bundles.files.large), false]);
  // Of what is no sound bundle it is known as well which file it was.
  for (const [name, words] of [["flipped", "it is damaged"], ["truncated", "not complete"], ["trailing", "something follows"], ["other", "Not a Sealift bundle"]]) {
    await check(name, words);
    assert.equal((await hashed(page)).sha256, digestOf(bundles.files[name]), name);
  }
  await leave();
});

test("a damaged chunk is said with the files in it", async () => {
  const { page, check, leave } = await visit();
  await check("small", "it is damaged");
  const banner = page.locator(".banner");
  await banner.getByText("31 files lie in the first damaged part").waitFor();
  assert.deepEqual(await banner.locator("li").allTextContents(), ["etc/a<b>\\u{202e}", ...Array.from({ length: 9 }, (_, number) => `etc/f-0${number}`), "and 21 more"]);
  const { damage, error } = await reportOf(page);
  assert.deepEqual([damage.chunk, damage.count, damage.names.length], [0, 31, 10]);
  let said = "";
  try {
    execFileSync(sealift, ["verify", bundles.files.small, "--allow-unsigned", "--state", join(bundles.folder, "state")], { stdio: "pipe" });
  } catch ({ stderr }) {
    said = String(stderr);
  }
  assert(said.includes(error.message), `the program says ${said}`);
  await check("holed", "it is damaged");
  await banner.getByText("2 files lie in the first damaged part").waitFor();
  assert.deepEqual(await banner.locator("li").allTextContents(), ["usr/lib/libcopy.so.1", "usr/lib/libhello.so.1"]);
  await leave();
});

const OVER = "every byte is undamaged, and so is every file that results with os version 6.";

test("a delta is checked over its base: dropped with it, chosen after it, or named by the page", async () => {
  const { page, check, leave } = await visit();
  const drop = async (...names) => {
    const dataTransfer = await page.evaluateHandle(async (names) => {
      const transfer = new DataTransfer();
      for (const name of names) transfer.items.add(new File([await (await fetch(`/bundles/${name}`)).blob()], name));
      return transfer;
    }, names);
    await page.dispatchEvent("sealift-verifier", "drop", { dataTransfer });
  };
  // They are one row, whether several may be chosen or not.
  await drop("base.sealift", "delta.sealift");
  await page.locator(".view:not([hidden]) .banner", { hasText: OVER }).waitFor();
  await page.locator("sealift-verifier").evaluate((element) => (element.removeAttribute("multiple"), element.reset()));
  await drop("base.sealift", "delta.sealift");
  await page.waitForFunction(() => document.querySelector("sealift-verifier").reports.length === 1);
  await page.locator(".banner", { hasText: OVER }).waitFor();
  const { base, sha256, file } = await hashed(page);
  assert.deepEqual([base.checked, base.bases.map(({ name, version }) => [name, version]), file], [true, [["os", "6"]], "delta.sealift"]);
  assert.equal(sha256, digestOf(bundles.files.delta));
  await check("delta", "Safe to install");
  await page.locator(".banner", { hasText: "It is a delta: the device checks the result" }).waitFor();
  await page.locator("#base").setInputFiles(bundles.files.base);
  await page.locator(".banner", { hasText: OVER }).waitFor();
  await page.locator("sealift-verifier").evaluate((element) => element.setAttribute("base-src", "/bundles/base.sealift"));
  await check("delta", "Safe to install");
  await page.locator(".banner", { hasText: OVER }).waitFor();
  await leave();
});

test("a base that is wrong or damaged says nothing of the delta", async () => {
  const { page, check, verdict, leave } = await visit();
  await check("delta", "Safe to install");
  for (const [name, why] of [["broken-base", "do not match their digest"], ["full", "the bundle is not a delta of os version 7"], ["other", "not a Sealift bundle"]]) {
    await page.locator("#base").setInputFiles(bundles.files[name]);
    await page.locator(".banner", { hasText: "This page did not check it over its base" }).filter({ hasText: why }).waitFor();
    await verdict("Safe to install");
    const { base, ok } = await reportOf(page);
    assert.deepEqual([base.checked, ok], [false, true], name);
  }
  await leave();
});

test("what a delta brings is compared with what the difference says", async () => {
  const { page, leave } = await visit();
  const found = await page.evaluate(async () => {
    const { openBundle } = await import("/sealift/src/index.js");
    const [delta, base] = await Promise.all(["delta", "base"].map(async (name) => (await fetch(`/bundles/${name}.sealift`)).blob()));
    const found = [];
    for (const jobs of [1, 2]) {
      const [own, other] = await Promise.all([openBundle(delta), openBundle(base)]);
      const { bases, deep } = await own.verify({ base: other, jobs });
      found.push([bases[0].version, deep]);
      // Another one may follow, without it.
      found.push([(await own.verify({ deep: true })).bases]);
      own.close();
      other.close();
    }
    return found;
  });
  assert.deepEqual(found, [["6", true], [null], ["6", true], [null]].map((row) => row.map((value) => value ?? undefined)));
  await leave();
});

test("what expires while the page is open is found expired", async () => {
  const { page, choose, verdict, leave } = await visit();
  const soon = new Date(Date.now() + 12_000).toISOString().replace(/\.\d+Z/, "Z");
  const file = join(bundles.folder, "soon.sealift");
  execFileSync(sealift, ["pack", join(bundles.folder, "new"), "-o", file, "--name", "os", "--bundle-version", "7", "--key", join(bundles.folder, "release"), "--expires", soon], { stdio: "pipe" });
  await page.evaluate(() => {
    window.told = [];
    document.querySelector("sealift-verifier").addEventListener("sealift-verdict", ({ detail }) => window.told.push(detail.state));
  });
  await choose(file);
  await verdict("Safe to install");
  await verdict("it has expired");
  assert(Date.now() >= Date.parse(soon));
  // That it is later now is nothing to tell.
  for (let look = 0; look < 2; look += 1) {
    await page.waitForTimeout(1100);
    await page.evaluate(() => document.dispatchEvent(new Event("visibilitychange")));
  }
  await page.waitForTimeout(500);
  assert.deepEqual(await page.evaluate(() => window.told), ["safe", "refused"]);
  assert.equal(await page.locator("sealift-verifier").evaluate(({ ok }) => ok), false);
  await leave();
});

test("a page that was asleep looks at the clock when it is seen again", async () => {
  const { page, choose, verdict, leave } = await visit();
  await page.evaluate(() => {
    // No timer ends while a page sleeps.
    const { setTimeout: real } = window;
    window.setTimeout = (run, milliseconds, ...rest) => (milliseconds > 1000 ? 0 : real(run, milliseconds, ...rest));
  });
  const soon = new Date(Date.now() + 12_000).toISOString().replace(/\.\d+Z/, "Z");
  const file = join(bundles.folder, "asleep.sealift");
  execFileSync(sealift, ["pack", join(bundles.folder, "new"), "-o", file, "--name", "os", "--bundle-version", "7", "--key", join(bundles.folder, "release"), "--expires", soon], { stdio: "pipe" });
  await choose(file);
  await verdict("Safe to install");
  await page.waitForTimeout(Date.parse(soon) + 1500 - Date.now());
  assert.equal(await page.locator("sealift-verifier").evaluate(({ ok }) => ok), true);
  await page.evaluate(() => document.dispatchEvent(new Event("visibilitychange")));
  await verdict("it has expired");
  await leave();
});
