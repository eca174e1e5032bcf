// What is in a bundle, as the page shows it. Run by: node --test wasm/tests/contents.test.mjs

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { bytes } from "../npm/src/page/words.js";
import { saved } from "./browser.mjs";
import { sealift } from "./bundle.mjs";
import { giving } from "./server.mjs";
import { setup } from "./setup.mjs";

const { bundles, people } = await setup({ entries: 3000, serve: ({ files }) => ({ bad: giving(readFileSync(files.good)) }) });

test("its panels are named for who reads them", async () => {
  const { page, choose, verdict, leave } = await people.visit({ signers: bundles.signers });
  await page.getByText("Trusted keys and devices", { exact: true }).waitFor();
  await choose(bundles.files.good);
  await verdict("Safe to install");
  await page.getByRole("heading", { name: "Publisher's notes", exact: true }).waitFor();
  await page.getByRole("heading", { name: "Layout", exact: true }).waitFor();
  await page.getByText(/ of signatures and index, then \d+ chunks?, [\d.]+ [kM]B in total\.$/).waitFor();
  await page.getByText("Compare with an older bundle", { exact: true }).waitFor();
  await page.locator("#older").setInputFiles(bundles.files.older);
  await page.getByText(/^\d+ added, \d+ changed, \d+ removed, \d+ metadata only\.$/).waitFor();
  await leave();
});

test("of bytes that are no text it says how many are shown", async () => {
  const { page, choose, verdict, leave } = await people.visit({ signers: bundles.signers });
  await choose(bundles.files.good);
  await verdict("Safe to install");
  await page.getByLabel("Filter files").fill("libhello.so.1");
  await page.getByRole("treeitem", { name: "libhello.so.1" }).first().click();
  await page.locator(".preview pre.bytes").waitFor();
  assert.equal((await page.locator(".preview pre").textContent()).split("\n").length, 4096 / 8);
  await page.getByText("The first 4.10 kB of 3.00 MB.").waitFor();
  await leave();
});

test("the disk that a bundle takes, as info says it and within 5 % of what it is", async (context) => {
  const fileSystem = execFileSync("stat", ["-f", "-c", "%T", bundles.folder]).toString().trim();
  const { page, choose, leave } = await people.visit({ signers: bundles.signers });
  for (const name of ["good", "many", "delta"]) {
    await choose(bundles.files[name]);
    await page.locator(".banner.good", { hasText: `${name}.sealift` }).waitFor();
    const { diskBytes } = await page.locator("sealift-verifier").evaluate(({ reports }) => reports[0].head);
    const { cost } = JSON.parse(execFileSync(sealift, ["info", bundles.files[name], "--json"]));
    assert.equal(diskBytes, cost.disk_bytes, name);
    await page.locator("dd", { hasText: `about ${bytes(diskBytes)}${name === "delta" ? " more than its base" : ""}, unpacked` }).waitFor();
    if (name === "delta") continue;
    const target = join(bundles.folder, `unpacked-${name}`);
    execFileSync(sealift, ["unpack", bundles.files[name], target, "--allow-unsigned", "--state", join(bundles.folder, "state"), "--quiet"], { stdio: "pipe" });
    const taken = Number(execFileSync("du", ["-s", "-B1", target]).toString().split("\t")[0]);
    if (fileSystem !== "ext2/ext3") context.diagnostic(`not compared with the disk: ${bundles.folder} is on ${fileSystem}`);
    else assert(Math.abs(taken - diskBytes) < diskBytes * 0.05, `${name}: ${taken} taken, ${diskBytes} said`);
  }
  await leave();
});

test("a delta says that it sets times of files which it does not list", async () => {
  const { page, choose, verdict, leave } = await people.visit({ signers: bundles.signers });
  await choose(bundles.files.delta);
  await verdict("Safe to install");
  await page.getByText("It also changes the times of files that are not listed.").waitFor();
  assert.equal(await page.locator("td", { hasText: "page-1.txt" }).count(), 0);
  await page.locator("#base").setInputFiles(bundles.files.older);
  await page.locator("td", { hasText: "page-1.txt" }).waitFor();
  assert.equal(await page.getByText("It also changes the times").count(), 0);
  await leave();
});

test("a name is found as it is shown", async () => {
  const { page, choose, verdict, leave } = await people.visit({ signers: bundles.signers });
  await choose(bundles.files.hostile);
  await verdict("Safe to install");
  for (const [text, name] of [["\\u{202e}", "invoice\\u{202e}fdp.exe"], ["line\\nbreak", "line\\nbreak"], ["\\u{1b}[31m", "red\\u{1b}[31m"], ["<IMG", "<img src=x onerror=alert(1)>"]]) {
    await page.getByLabel("Filter files").fill(text);
    await page.getByText(/^1 entry has/).waitFor();
    assert.equal(await page.getByRole("treeitem").locator(".name bdi").textContent(), name);
    await page.getByLabel("Filter files").fill("");
    await page.locator(".tree").getByText(/^\d+ entries, /).waitFor();
  }
  await leave();
});

test("of a server that knows no ranges, why no file can be seen is said", async () => {
  const { page, verdict, leave } = await people.visit({ signers: bundles.signers });
  await page.getByLabel("Address of a bundle").fill("/bad/whole");
  await page.getByLabel("Address of a bundle").press("Enter");
  await verdict("Safe to install");
  await page.getByLabel("Filter files").fill("os-release");
  await page.getByRole("treeitem", { name: "os-release" }).first().click();
  await page.getByText("The server sends the file only as a whole.").waitFor();
  await leave();
});

test("two bundles are compared with their names and versions, and what is odd is said", async () => {
  const other = join(bundles.folder, "app.sealift");
  execFileSync(sealift, ["pack", join(bundles.folder, "old"), "-o", other, "--name", "app", "--bundle-version", "3", "--key", join(bundles.folder, "release")], { stdio: "pipe" });
  const { page, choose, verdict, leave } = await people.visit({ signers: bundles.signers });
  await choose(bundles.files.good);
  await verdict("Safe to install");
  await page.locator("#older").setInputFiles(other);
  await page.getByText("os version 7 compared with app version 3, in app.sealift. Its signature is not checked for this comparison.").waitFor();
  await page.getByText("These are bundles of different names: app and os.").waitFor();
  await choose(bundles.files.untrusted);
  await verdict("unknown signer");
  await page.locator("#older").setInputFiles(bundles.files.good);
  await page.getByText("os version 8 compared with os version 7").waitFor();
  await choose(bundles.files.older);
  await verdict("older than version 7");
  await page.locator("#older").setInputFiles(bundles.files.good);
  await page.getByText("The other bundle is the newer one: version 7.").waitFor();
  await leave();
});

test("a portal names the bundle to compare with", async () => {
  const { page, choose, verdict, leave } = await people.visit({ signers: bundles.signers });
  await page.locator("sealift-verifier").evaluate((element) => element.setAttribute("base-src", "/bundles/older.sealift"));
  await choose(bundles.files.good);
  await verdict("Safe to install");
  await page.getByText("os version 7 compared with os version 6").waitFor();
  await page.locator("sealift-verifier").evaluate((element) => element.setAttribute("base-src", "http://"));
  await page.getByText("This page cannot compare them").waitFor();
  await leave();
});

test("an unknown signer is trusted only by whoever has the fingerprint from elsewhere", async () => {
  const { page, choose, verdict, leave } = await people.visit({ signers: bundles.signers });
  await choose(bundles.files.untrusted);
  await verdict("unknown signer");
  const box = page.locator(".banner .stranger");
  const listed = execFileSync("ssh-keygen", ["-l", "-f", join(bundles.folder, "stranger.pub")], { encoding: "utf8" });
  const other = execFileSync("ssh-keygen", ["-l", "-f", join(bundles.folder, "release.pub")], { encoding: "utf8" }).split(" ")[1];
  const key = listed.split(" ")[1];
  const [type, blob] = bundles.stranger.split(" ");
  const offers = box.getByRole("button", { name: "Trust this key for os" });
  // Nowhere on the page or in its report is what answers the question, or enough of it.
  const told = await page.locator("sealift-verifier").evaluate((element) => [element.shadowRoot.textContent, JSON.stringify([element.reports, element.finding])]);
  for (const text of told) for (const secret of [key.slice(7, 19), blob]) assert(!text.includes(secret), text);
  await page.getByText("An unknown key. Its fingerprint is shown once you trust it.").waitFor();
  const report = await saved(page, () => page.getByRole("button", { name: "Save the report" }).click());
  for (const secret of [key.slice(7, 19), blob]) assert(!readFileSync(report.path, "utf8").includes(secret));
  const compare = async (given) => {
    await box.getByRole("textbox").fill(given);
    await box.getByRole("button", { name: "Compare" }).click();
  };
  assert.equal(await offers.count(), 0);
  for (const [given, words] of [["", "Enter at least the first 12 characters"], [key.slice(0, 15), "Enter at least the first 12 characters"], [other, "This is not the key that signed the bundle."], [key.toLowerCase(), "This is not the key"]]) {
    await compare(given);
    await box.getByText(words).waitFor();
    assert.equal(await offers.count(), 0, given);
  }
  for (const given of [key, listed, key.slice(0, 19), key.slice(7), key.slice(7, 19), `${type} ${blob}`, bundles.stranger]) {
    await compare(other);
    await offers.waitFor({ state: "detached" });
    await compare(given);
    await offers.waitFor();
  }
  assert.equal(await box.locator(".line").textContent(), `os namespaces="sealift" ${type} ${blob}`);
  await page.evaluate(() => Object.defineProperty(navigator, "clipboard", { value: { writeText: async (text) => (window.copied = text) } }));
  await box.getByRole("button", { name: "Copy this line" }).click();
  await box.getByText("Copied.").waitFor();
  assert.equal(await page.evaluate(() => window.copied), `os namespaces="sealift" ${type} ${blob}`);
  // Another check shows the same signer: it replaces neither the answer nor the button that has the focus.
  await page.locator(".progress button", { hasText: "Check again" }).evaluate((button) => button.click());
  await box.getByText("Copied.").waitFor();
  assert.equal(await page.locator("sealift-verifier").evaluate((element) => element.shadowRoot.activeElement?.textContent), "Copy this line");
  await verdict("unknown signer");
  await offers.click();
  await verdict("Safe to install: os, version 8");
  await page.locator(".signers .key", { hasText: key }).waitFor();
  assert.equal(await page.getByLabel("Allowed signers", { exact: true }).inputValue(), `${bundles.signers}\nos namespaces="sealift" ${type} ${blob}\n`);
  await leave();
});

test("who may not set whom to trust is not asked to", async () => {
  const { page, choose, verdict, leave } = await people.visit({ signers: bundles.signers });
  await page.locator("sealift-verifier").evaluate((element) => element.setAttribute("settings", "readonly"));
  await choose(bundles.files.good);
  await verdict("unknown signer");
  assert.equal(await page.locator(".stranger").count(), 0);
  assert.equal(await page.getByRole("button", { name: /Trust this key|Compare$/ }).count(), 0);
  await leave();
});

test("entries that could not be loaded are requested again when the user moves", async () => {
  const { page, leave } = await people.visit();
  const seen = await page.evaluate(async () => {
    const { Tree } = await import("/sealift/src/page/tree.js");
    const frames = async () => {
      for (let frame = 0; frame < 5; frame += 1) await new Promise((resolve) => setTimeout(resolve, 20));
    };
    let isBroken = false;
    const asked = [];
    const children = async (directory, from, count) => {
      asked.push(from);
      if (isBroken) throw new Error("a worker failed");
      return Array.from({ length: count }, (_, at) => ({ name: `f-${from + at}`, type: "file", mode: 0o644, size: 1 }));
    };
    const tree = new Tree({ listed: async () => ({ entries: 2048, bytes: 2048 }), refs: async () => [{ name: "main", directory: 0, children: 2048 }], children });
    Object.assign(tree.body.style, { height: "280px", overflow: "auto" });
    tree.space.style.position = "relative";
    document.body.append(tree.element);
    await tree.show();
    await frames();
    isBroken = true;
    const scroll = async (row) => {
      asked.length = 0;
      tree.body.scrollTop = row * 28;
      for (let waited = 0; asked.length === 0 && waited < 100; waited += 1) await new Promise((resolve) => setTimeout(resolve, 20));
      await frames();
      // A browser may report one movement twice; what asks over and over does so at each frame.
      return [asked.length <= 2 ? [...new Set(asked)] : asked, tree.body.textContent.includes(`f-${row}`)];
    };
    const found = [await scroll(1100), await scroll(1101)];
    // Nor does a search by typing ask for one page after the other.
    asked.length = 0;
    tree.body.dispatchEvent(new KeyboardEvent("keydown", { key: "x" }));
    await frames();
    found.push([...asked]);
    isBroken = false;
    found.push(await scroll(1102));
    tree.close();
    tree.element.remove();
    return found;
  });
  assert.deepEqual(seen, [[[1024], false], [[1024], false], [256], [[1024], true]]);
  await leave();
});
