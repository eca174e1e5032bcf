// Bundles with files that recipes make, which the page does not do. Run by: node --test wasm/tests/recipes.test.mjs

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { sealift } from "./bundle.mjs";
import { openBundle } from "../npm/src/index.js";
import { site } from "./site.mjs";
import { visitors } from "./visitors.mjs";

const MADE = "One file is made from others by the device, which then checks it.";

let [folder, server, people, signers] = [];
const at = (name) => join(folder, `${name}.sealift`);
const run = (...args) => execFileSync(sealift, args, { stdio: ["ignore", "pipe", "pipe"] });
const policy = () => ({ allowedSigners: signers });

/** Writes a tree with an archive of two files, one of which lies beside it, and packs it. */
function pack(version, text, ...more) {
  const tree = join(folder, String(version));
  mkdirSync(tree);
  writeFileSync(join(tree, "notes"), text.repeat(2000));
  writeFileSync(join(tree, "other"), "no file beside it ".repeat(2000));
  execFileSync("tar", ["-cf", join(tree, "both.tar"), "-C", tree, "notes", "other"]);
  rmSync(join(tree, "other"));
  run("pack", tree, "-o", at(version), "--name", "os", "--bundle-version", String(version), "--key", join(folder, "release"), "--recipes", ...more);
}

before(async () => {
  folder = mkdtempSync(join(tmpdir(), "sealift-recipes-"));
  run("key", "generate", "-o", join(folder, "release"));
  signers = `* namespaces="sealift" ${readFileSync(join(folder, "release.pub"), "utf8").trim()}`;
  pack(1, "as it was ");
  pack(2, "as it is now ", "--base", at(1), "--allow-unsigned");
  server = await site({ bundles: folder });
  people = visitors(server);
});
after(async () => {
  await people?.close();
  await server?.close();
  if (folder) rmSync(folder, { recursive: true });
});

/** A page at which this bundle was chosen. */
async function chosen(name) {
  const visitor = await people.visit({ signers });
  await visitor.choose(at(name));
  await visitor.verdict("Safe to install");
  const banner = (text) => visitor.page.locator(".view:not([hidden]) .banner", { hasText: text }).waitFor({ timeout: 60_000 });
  return { ...visitor, banner };
}

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
