// Bundles with files that recipes make, which the page does not do. Run by: node --test wasm/tests/recipes.test.mjs

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { desk } from "./chosen.mjs";
import { openBundle } from "../npm/src/index.js";

const MADE = "One file is made from others by the device, which then checks it.";

let [made, at, chosen] = [];
const policy = () => ({ allowedSigners: made.signers });

/** Writes a tree with an archive of two files, one of which lies beside it, and packs it. */
function pack({ folder, at, run, key }, version, text, ...more) {
  const tree = join(folder, String(version));
  mkdirSync(tree);
  writeFileSync(join(tree, "notes"), text.repeat(2000));
  writeFileSync(join(tree, "other"), "no file beside it ".repeat(2000));
  execFileSync("tar", ["-cf", join(tree, "both.tar"), "-C", tree, "notes", "other"]);
  rmSync(join(tree, "other"));
  run("pack", tree, "-o", at(version), "--name", "os", "--bundle-version", String(version), ...key, "--recipes", ...more);
}

before(async () => {
  made = await desk((desk) => {
    pack(desk, 1, "as it was ");
    pack(desk, 2, "as it is now ", "--base", desk.at(1), "--allow-unsigned");
  });
  ({ at, chosen } = made);
});
after(() => made?.close());

test("a full bundle is checked as it is stored, and the page says what the device makes", async () => {
  const { page, banner, leave } = await chosen(1);
  await banner(MADE);
  const report = await page.locator("sealift-verifier").evaluate(({ reports }) => reports[0]);
  assert.deepEqual([report.ok, report.summary.made, report.summary.files], [true, 1, 2]);
  await page.locator(".row", { has: page.getByText("both.tar", { exact: true }) }).first().click();
  await page.getByText("The device makes this file from others, and then checks it.").waitFor();
  await page.getByText("every byte, and the content of every file but the 1 that the device makes").waitFor();
  await page.locator(".row", { has: page.getByText("notes", { exact: true }) }).first().click();
  await page.getByRole("button", { name: "Save this file" }).waitFor();
  await leave();
});

test("a delta is checked alone, and over its base", async () => {
  const { page, banner, leave } = await chosen(2);
  await banner("It is a delta: the device checks the result");
  await page.locator("#base").setInputFiles(at(1));
  await banner("every byte is undamaged, and so is every other file that results with os version 1");
  const report = await page.locator("sealift-verifier").evaluate(({ reports }) => reports[0]);
  assert(report.ok && report.base.checked && report.summary.made >= 1);
  await leave();
});

test("without the content of files, only the stored bytes are checked", async () => {
  const bundle = await openBundle(at(1), policy());
  const { deep, summary } = await bundle.verify();
  assert.deepEqual([deep, summary.made], [false, 1]);
  bundle.close();
});

test("damage to what only recipes use is found, and the files that may be made of it are named", async () => {
  const bytes = readFileSync(at(1));
  const opened = await openBundle(bytes, policy());
  const [start, end] = [opened.chunkOffsets[0], opened.chunkOffsets.at(-1)];
  const first = bytes.length - (end - start);
  opened.close();
  const damaged = Uint8Array.from(bytes);
  damaged[first + 20] ^= 1;
  const bundle = await openBundle(damaged, policy());
  const error = await bundle.verify({ deep: true }).catch((error) => error);
  assert.equal(error.code, "chunk");
  const damage = await bundle.hit(error.place);
  assert(damage.names.includes("both.tar"), JSON.stringify(damage));
  bundle.close();
});
