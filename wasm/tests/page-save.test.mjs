// Saving a large file from the page. Run by: node --test wasm/tests/page-save.test.mjs, with SEALIFT_BROWSER=firefox in that

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { enter, kind, saved } from "./browser.mjs";
import { packed } from "./bundle.mjs";
import { site } from "./site.mjs";
import { visitors } from "./visitors.mjs";

const { bytes, key, contents } = packed({ more: 40 << 20 });

let [people, server, folder] = [];
before(async () => {
  folder = mkdtempSync(join(tmpdir(), "sealift-save-"));
  writeFileSync(join(folder, "os.sealift"), bytes);
  server = await site({ "os.sealift": (_, response) => response.end(bytes) });
  people = visitors(server);
});
after(async () => {
  await people?.close();
  await server?.close();
  rmSync(folder, { recursive: true });
});

/** A page in which the large file is shown; `init` runs in it first. */
async function shown(init) {
  const { page, choose, leave } = await people.visit({ signers: `os namespaces="sealift" ${key}`, init });
  await enter(page.getByLabel("The devices' tags"), "board");
  await choose(join(folder, "os.sealift"));
  await page.locator(".banner.good").waitFor({ timeout: 60_000 });
  await page.getByLabel("Filter files").fill("more");
  await page.getByRole("treeitem", { name: "more" }).click();
  const button = page.getByRole("button", { name: "Save this file" });
  await button.waitFor();
  const status = (text) => page.locator(".preview [role=status]", { hasText: text }).waitFor({ timeout: 60_000 });
  return { page, button, status, leave };
}

const without = () => delete window.showSaveFilePicker;

test("a large file goes where the person says", { skip: kind === "firefox" && "Firefox has no such dialog" }, async () => {
  const { page, button, status, leave } = await shown(() => {
    // A place of the kind that the dialog gives, which no test can press.
    window.showSaveFilePicker = async ({ suggestedName }) => (await navigator.storage.getDirectory()).getFileHandle(suggestedName, { create: true });
  });
  await button.click();
  await status("Saved.");
  const digest = await page.evaluate(async () => {
    const file = await (await (await navigator.storage.getDirectory()).getFileHandle("more")).getFile();
    return [...new Uint8Array(await crypto.subtle.digest("SHA-256", await file.arrayBuffer()))];
  });
  assert.deepEqual(Buffer.from(digest), createHash("sha256").update(contents.more).digest());
  await leave();
});

test("where there is no dialog it is downloaded, from the page's own folder", async () => {
  const { page, button, status, leave } = await shown(without);
  const { name, path } = await saved(page, () => button.click());
  assert.equal(name, "more");
  assert(readFileSync(path).equals(contents.more));
  await status("Saved.");
  const left = await page.evaluate(async () => {
    const names = [];
    for await (const name of (await (await navigator.storage.getDirectory()).getDirectoryHandle("sealift-saving")).keys()) names.push(name);
    return names.length;
  });
  assert.equal(left, 1);
  await leave();
});

test("saving is stopped, and begun again", async () => {
  const { page, button, status, leave } = await shown(() => {
    delete window.showSaveFilePicker;
    const { postMessage } = Worker.prototype;
    // A medium that takes nothing.
    Worker.prototype.postMessage = function (data, ...rest) {
      if (!window.slow || data?.name !== "writePart") postMessage.call(this, data, ...rest);
    };
    window.slow = true;
  });
  await button.click();
  await page.getByRole("button", { name: "Stop saving" }).click();
  await status("Not saved.");
  await page.evaluate(() => (window.slow = false));
  const { path } = await saved(page, () => button.click());
  assert(readFileSync(path).equals(contents.more));
  await leave();
});

test("a file that is read by the page, and one that is not safe any more while it is saved", async () => {
  const { page, status, leave } = await shown(without);
  await page.evaluate(async () => {
    const file = await (await fetch("/os.sealift")).blob();
    const read = async (offset, length) => new Uint8Array(await file.slice(offset, offset + length).arrayBuffer());
    document.querySelector("sealift-verifier").check({ size: file.size, read }, "by the page");
  });
  await page.locator(".banner.good", { hasText: "by the page" }).waitFor({ timeout: 60_000 });
  await page.getByLabel("Filter files").fill("more");
  await page.getByRole("treeitem", { name: "more" }).click();
  const { path } = await saved(page, () => page.getByRole("button", { name: "Save this file" }).click());
  assert(readFileSync(path).equals(contents.more));
  await status("Saved.");
  await page.evaluate(() => {
    const { postMessage } = Worker.prototype;
    let parts = 0;
    Worker.prototype.postMessage = function (data, ...rest) {
      if (data?.name === "writePart" && (parts += 1) === 3) document.querySelector("sealift-verifier").setAttribute("threshold", "2");
      postMessage.call(this, data, ...rest);
    };
    window.writing = document.querySelector("sealift-verifier").shadowRoot.querySelector(".preview [role=status]");
  });
  await page.getByRole("button", { name: "Save this file" }).click();
  await page.waitForFunction(() => /not safe to install any more/.test(window.writing.textContent));
  const left = await page.evaluate(async () => {
    const names = [];
    for await (const name of (await (await navigator.storage.getDirectory()).getDirectoryHandle("sealift-saving")).keys()) names.push(name);
    return names.length;
  });
  assert.equal(left, 1);
  await leave();
});

test("a browser that has no place for a large file", async () => {
  const { page, button, leave } = await shown(() => {
    delete window.showSaveFilePicker;
    Object.defineProperty(navigator, "storage", { value: undefined });
  });
  const { path } = await saved(page, () => button.click());
  assert(readFileSync(path).equals(contents.more));
  await leave();
});
