// Several bundles in a list, several elements in a page, and what they know of each other. Run by: node --test wasm/tests/several.test.mjs, with
// SEALIFT_BROWSER=firefox in that

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { countCalls, enter, kind } from "./browser.mjs";
import { sealift } from "./bundle.mjs";
import { setup } from "./setup.mjs";

const { bundles, people } = await setup();
mkdirSync(join(bundles.folder, "large"));
writeFileSync(join(bundles.folder, "large/file"), randomBytes(160 << 20));
bundles.files.large = join(bundles.folder, "large.sealift");
execFileSync(sealift, ["pack", join(bundles.folder, "large"), "-o", bundles.files.large, "--name", "os", "--bundle-version", "7", "--key", join(bundles.folder, "release")], { stdio: "pipe" });
const visit = (options) => people.visit({ signers: bundles.signers, ...options });

const rows = (page) => page.getByRole("list", { name: "Bundles" }).getByRole("button");
const all = (...names) => names.map((name) => bundles.files[name]);
const states = (page) => page.locator("sealift-verifier").evaluate(({ reports }) => reports.map(({ state }) => state));

test("an older version beside a newer one is left aside, in either order, and is no failure", async () => {
  for (const [names, expected] of [[["older", "good"], ["older", "safe"]], [["good", "older"], ["safe", "older"]]]) {
    const { page, choose, leave } = await visit();
    await choose(all(...names));
    await page.getByText("1 of 1 bundle safe to install; 1 older one is left aside.").waitFor();
    const old = rows(page).nth(expected.indexOf("older"));
    await old.filter({ hasText: "Older than version 7, which you chose with it" }).waitFor();
    assert.equal(await old.getAttribute("class"), "old");
    assert.deepEqual(await states(page), expected);
    assert.deepEqual(await page.locator("sealift-verifier").evaluate(({ ok, validity }) => [ok, validity.valid]), [true, true]);
    // Alone it is refused as before.
    await choose(all("older"));
    await page.locator(".banner h2", { hasText: "Do not install: older than version 7" }).waitFor();
    await leave();
  }
});

test("a delta and its base are one row, in either order, and the base has a verdict, too", async () => {
  for (const names of [["older", "delta"], ["delta", "older"]]) {
    const { page, choose, verdict, leave } = await visit();
    await choose(all(...names));
    await verdict("Safe to install: os, version 7");
    await page.getByText("so is every file that results with os version 6").waitFor();
    assert.deepEqual(await states(page), ["safe"]);
    // The base is not one that nobody trusts.
    await enter(page.getByLabel("Revoked keys", { exact: true }), bundles.signers.split('" ')[1]);
    await verdict("signed with a revoked key");
    await leave();
  }
  const { page, choose, verdict, leave } = await visit();
  const strange = join(bundles.folder, "strange.sealift");
  execFileSync(sealift, ["pack", join(bundles.folder, "old"), "-o", strange, "--name", "os", "--bundle-version", "6", "--owner", "0:0", "--key", join(bundles.folder, "stranger")], { stdio: "pipe" });
  await choose([strange, bundles.files.delta]);
  await verdict("Do not install: its base is not trusted");
  await page.locator(".banner", { hasText: "The base is strange.sealift, and no key that you trust signed it." }).waitFor();
  await leave();
});

test("a version that a key raised which is revoked now does not block", async () => {
  const { page, choose, verdict, leave } = await visit();
  await enter(page.getByLabel("Allowed signers", { exact: true }), `${bundles.signers}\nos namespaces="sealift" ${bundles.stranger}`);
  await choose(bundles.files.untrusted);
  await verdict("Safe to install: os, version 8");
  await choose(bundles.files.good);
  await verdict("older than version 8, already checked here");
  await enter(page.getByLabel("Revoked keys", { exact: true }), bundles.stranger);
  await verdict("Safe to install: os, version 7");
  await leave();
});

test("a later version at another element of the page makes an earlier one old", async () => {
  const { page, leave } = await visit();
  await page.evaluate(() => {
    const make = () => Object.assign(document.createElement("sealift-verifier"), { id: `e${document.querySelectorAll("sealift-verifier").length}` });
    document.querySelector("main").replaceChildren();
    for (const _ of [1, 2]) {
      const element = make();
      element.setAttribute("trust-src", "/bundles/signers.txt");
      document.querySelector("main").append(element);
    }
    document.querySelector("#e0").setAttribute("src", "/bundles/older.sealift");
  });
  const settled = (id, state) => page.waitForFunction(([id, state]) => document.querySelector(id).finding.state === state, [id, state]);
  await settled("#e0", "safe");
  await page.evaluate(() => document.querySelector("#e1").setAttribute("src", "/bundles/good.sealift"));
  await settled("#e1", "safe");
  await settled("#e0", "refused");
  assert.match(await page.locator("#e0 .banner h2").textContent(), /older than version 7/);
  await leave();
});

test("a stop ends the whole list, and what was not begun is not checked", async () => {
  const { page, choose, leave } = await visit({ init: countCalls });
  await page.evaluate(() => (window.started = []));
  await page.evaluate(() => document.addEventListener("sealift-start", ({ detail }) => window.started.push(detail.name)));
  await choose(all("large", "good", "older"));
  await page.locator("progress").first().waitFor();
  await page.locator("sealift-verifier").evaluate((element) => element.stop());
  await page.waitForFunction(() => window.idle());
  await page.waitForTimeout(200);
  assert.deepEqual(await page.evaluate(() => window.started), ["large.sealift"]);
  assert.deepEqual(await states(page), ["unknown", "unknown", "unknown"]);
  await page.getByText("0 of 3 bundles safe to install.").waitFor();
  await rows(page).nth(1).click();
  await page.locator(".view:not([hidden])").getByRole("button", { name: "Check again" }).click();
  await rows(page).nth(1).filter({ hasText: "Safe to install" }).waitFor();
  await leave();
});

test("a stop after the verdict ends the hashing, and leaves the verdict", async () => {
  const { page, choose, verdict, leave } = await visit({ init: countCalls });
  // Stopped in the verdict's own event: a round trip to the page takes a fast browser longer than hashing the file does.
  await page.evaluate(() => {
    document.addEventListener("sealift-verdict", ({ target, detail }) => {
      window.completed = "never";
      detail.complete.then(({ sha256 }) => (window.completed = sha256 ?? "without a hash"));
      queueMicrotask(() => {
        window.hashing = !window.idle();
        target.stop();
      });
    }, { once: true });
  });
  await choose(bundles.files.large);
  await verdict("Safe to install");
  await page.waitForFunction(() => window.completed !== undefined && window.completed !== "never" && window.idle());
  assert.equal(await page.evaluate(() => window.hashing), true, "nothing was being hashed");
  assert.equal(await page.evaluate(() => window.completed), "without a hash");
  assert.deepEqual(await page.locator("sealift-verifier").evaluate(({ finding, reports }) => [finding.state, reports[0].sha256 ?? "none"]), ["safe", "none"]);
  await leave();
});

test("title, sum and focus are of all of them", async () => {
  const { page, choose, leave } = await visit();
  const before = await page.title();
  await choose(all("good", "flipped", "untrusted"));
  await page.getByText("1 of 3 bundles safe to install.").waitFor();
  assert.equal(await page.title(), "1 of 3 bundles safe to install");
  assert.equal(await page.evaluate(() => document.activeElement.shadowRoot.activeElement?.getAttribute("aria-label")), "Bundles");
  assert.equal(await page.getByRole("status").filter({ hasText: "of 3 bundles" }).count(), 1);
  await page.locator("sealift-verifier").evaluate((element) => element.reset());
  assert.equal(await page.title(), before);
  await leave();
});

test("all of them are printed, and nothing that says nothing on paper", { skip: kind !== "chromium" && "only Chromium shows a test what would be printed" }, async () => {
  const { page, choose, verdict, leave } = await visit();
  await choose(all("good", "flipped"));
  await page.getByText("1 of 2 bundles safe to install.").waitFor();
  await page.emulateMedia({ media: "print" });
  for (const words of ["Safe to install: os, version 7", "it is damaged, or was changed"]) assert(await page.locator(".banner h2", { hasText: words }).isVisible(), words);
  assert.equal(await page.locator(".panel", { hasText: "How it was checked" }).filter({ visible: true }).count(), 2);
  assert.equal(await page.getByRole("heading", { name: "What changed" }).filter({ visible: true }).count(), 0);
  assert.equal(await page.getByRole("treeitem").filter({ visible: true }).count(), 0);
  assert(await page.getByText("entries, ").filter({ visible: true }).first().isVisible());
  await page.emulateMedia({ media: null });
  await choose(bundles.files.good);
  await page.locator(".list").waitFor({ state: "hidden" });
  await verdict("Safe to install");
  await page.locator("#older").setInputFiles(bundles.files.older);
  await page.getByText("os version 7 compared with os version 6").waitFor();
  await page.emulateMedia({ media: "print" });
  assert(await page.getByRole("heading", { name: "What changed" }).isVisible());
  await leave();
});
