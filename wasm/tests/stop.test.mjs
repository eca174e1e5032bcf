// A check that is stopped. Run by: node --test wasm/tests/stop.test.mjs

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { countCalls, enter, saved } from "./browser.mjs";
import { sealift } from "./bundle.mjs";
import { setup } from "./setup.mjs";

/** Takes long enough to be stopped in the midst. */
const LARGE = 192 << 20;

const { bundles, people } = await setup();
mkdirSync(join(bundles.folder, "large"));
writeFileSync(join(bundles.folder, "large/file"), randomBytes(LARGE));
const large = join(bundles.folder, "large.sealift");
execFileSync(sealift, ["pack", join(bundles.folder, "large"), "-o", large, "--name", "os", "--bundle-version", "7", "--key", join(bundles.folder, "release")], { stdio: "pipe" });

/** Begins a check, and waits until bytes are being read. */
async function begin(page, choose) {
  await page.evaluate(() => {
    window.told = [];
    const element = document.querySelector("sealift-verifier");
    for (const type of ["progress", "verdict"]) element.addEventListener(`sealift-${type}`, ({ detail }) => window.told.push([type, detail.state, detail.report?.error?.kind]));
  });
  await choose(large);
  await page.waitForFunction(() => window.told.some(([type]) => type === "progress"));
}

test("a click stops it however long it is held, and the focus stays", async () => {
  for (const held of [0, 60, 100, 250]) {
    const { page, choose, verdict, leave } = await people.visit({ signers: bundles.signers });
    const stop = page.getByRole("button", { name: "Stop" });
    // On a busy machine, a check may be over before the click.
    for (let tries = 1; ; tries += 1) {
      await begin(page, choose);
      const box = await stop.boundingBox({ timeout: 1000 }).catch(() => null);
      if (box) await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
      await page.mouse.down();
      await page.waitForTimeout(held);
      await page.mouse.up();
      await stop.waitFor({ state: "hidden" });
      if ((await page.evaluate(() => window.told)).at(-1)[2] === "stopped") break;
      assert.ok(tries < 5, `held for ${held} ms, a click does not stop it`);
    }
    await verdict("Not checked: you stopped it");
    const focus = await page.evaluate(() => document.querySelector("sealift-verifier").shadowRoot.activeElement?.textContent);
    assert.equal(focus, "Check again", `held for ${held} ms`);
    await leave();
  }
});

test("the workers are idle soon after", async (t) => {
  const times = [];
  for (let round = 0; round < 5; round += 1) {
    const { page, choose, verdict, leave } = await people.visit({ signers: bundles.signers, init: countCalls });
    await begin(page, choose);
    times.push(await page.evaluate(async () => {
      const root = document.querySelector("sealift-verifier").shadowRoot;
      [...root.querySelectorAll("button")].find(({ textContent }) => textContent === "Stop").click();
      const start = performance.now();
      while (!window.idle()) await new Promise((resolve) => setTimeout(resolve, 1));
      return performance.now() - start;
    }));
    await verdict("Not checked: you stopped it");
    await leave();
  }
  times.sort((a, b) => a - b);
  t.diagnostic(`idle after ${times.map((time) => time.toFixed(0)).join(", ")} ms`);
  // How soon is a figure of the machine; that the rest of the file is not checked first is not.
  assert(times[2] <= 2000, `the median is ${times[2]} ms`);
});

test("afterwards everything works, and nothing is green", async () => {
  const { page, choose, verdict, leave } = await people.visit({ signers: bundles.signers });
  await begin(page, choose);
  await page.getByRole("button", { name: "Stop" }).click();
  await verdict("Not checked: you stopped it");
  assert.deepEqual((await page.evaluate(() => window.told)).at(-1), ["verdict", "unknown", "stopped"]);
  const { path } = await saved(page, () => page.getByRole("button", { name: "Save the report" }).click());
  const { state, ok, sound, error } = JSON.parse(readFileSync(path, "utf8"));
  assert.deepEqual([state, ok, sound, error.kind], ["unknown", false, false, "stopped"]);
  await page.locator("#older").setInputFiles(bundles.files.older);
  await page.getByText("os version 7 compared with os version 6").waitFor();
  await page.getByRole("treeitem", { name: "file" }).click();
  await page.getByText("Its content is shown when the bundle is safe to install.").waitFor();
  const field = page.getByLabel("Allowed signers", { exact: true });
  await enter(field, "");
  await verdict("unknown signer");
  await page.getByText("You stopped the check of its bytes.").waitFor();
  assert.equal(await page.locator(".good").count(), 0);
  await enter(field, bundles.signers);
  await verdict("Not checked: you stopped it");
  assert.equal(await page.locator(".banner.good").count(), 0);
  await page.getByRole("button", { name: "Check again" }).click();
  await verdict("Safe to install: os, version 7");
  await leave();
});

test("it is stopped before it is open, too", async () => {
  const { page, verdict, leave } = await people.visit({ signers: bundles.signers });
  await page.evaluate(() => {
    window.reads = 0;
    document.querySelector("sealift-verifier").check({ size: 1e6, read: () => new Promise(() => (window.reads += 1)) });
  });
  await page.waitForFunction(() => window.reads > 0);
  await page.getByRole("button", { name: "Stop" }).click();
  await verdict("Not checked: you stopped it");
  assert.equal(await page.locator("sealift-verifier").evaluate(({ finding }) => finding.error.kind), "stopped");
  await leave();
});
