// The element in somebody's form: one row for a bundle, and the keyboard alone. Run by: node --test wasm/tests/form.test.mjs, with
// SEALIFT_BROWSER=firefox in that

import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";

import { gate } from "./gate.mjs";
import { setup } from "./setup.mjs";

const { bundles, people } = await setup();

const LOCKED = { "trust-src": "/bundles/signers.txt", settings: "readonly", required: "" };

/** A form of a portal with fields around the gate. */
async function form(attributes = {}, options = {}) {
  const { page, leave } = await people.visit({ viewport: { width: 1280, height: 800 }, ...options });
  const opened = await gate(page, bundles.files, { variant: null, ...LOCKED, ...attributes });
  await opened.element.evaluate((element) => {
    element.before(Object.assign(document.createElement("h1"), { textContent: "Upload an update" }), Object.assign(document.createElement("input"), { id: "title", placeholder: "Title" }));
    element.after(Object.assign(document.createElement("button"), { id: "send", textContent: "Upload" }));
  });
  return { page, leave, ...opened };
}

test("a good bundle is one row, and the form's button stays in sight", async () => {
  const { page, element, choose, settled, leave } = await form();
  assert.equal(await element.evaluate(({ variant }) => variant), "compact");
  assert.equal(await page.getByText("stays on this computer").filter({ visible: true }).count(), 0);
  await choose("good");
  await settled("safe");
  const row = page.locator(".view").filter({ visible: true });
  const { height } = await row.boundingBox();
  assert(height <= 160, `${height} px`);
  for (const words of ["Safe to install: os, version 7", "good.sealift", "signed by release@example.org"]) assert(await row.getByText(words).first().isVisible(), words);
  for (const words of ["Who signed it", "What is in it", "How it was checked", "stays on this computer"]) assert.equal(await page.getByText(words, { exact: true }).filter({ visible: true }).count(), 0, words);
  const button = await page.locator("#send").boundingBox();
  assert(button.y + button.height <= 800, `the button is at ${button.y}`);
  // The rest is there for whoever asks.
  await row.getByText("Who signed it, what is in it, and the report").click();
  await page.getByRole("heading", { name: "Who signed it" }).waitFor();
  await page.getByRole("button", { name: "Save the report" }).waitFor();
  await row.getByRole("button", { name: "Remove" }).click();
  assert.deepEqual(await element.evaluate(({ finding, validity }) => [finding.state, validity.valueMissing]), ["empty", true]);
  await leave();
});

test("several are a row each, and one that is removed leaves the others", async () => {
  const { page, element, settled, leave } = await form({ multiple: "" });
  await page.locator("#file").setInputFiles(["good", "flipped", "untrusted"].map((name) => bundles.files[name]));
  await page.getByText("1 of 3 bundles safe to install.").waitFor();
  const rows = page.locator(".view").filter({ visible: true });
  assert.equal(await rows.count(), 3);
  for (const name of ["flipped", "untrusted"]) await rows.filter({ hasText: `${name}.sealift` }).getByRole("button", { name: "Remove" }).click();
  await settled("safe");
  assert.equal(await element.evaluate(({ ok, form }) => ok && new FormData(form).getAll("bundle").length), 1);
  await leave();
});

test("the page shows all, and an attribute says which", async () => {
  const { page, element, choose, settled, set, leave } = await form();
  await choose("good");
  await settled("safe");
  await set("variant", "full");
  await page.getByRole("heading", { name: "Who signed it" }).waitFor();
  await set("variant", "compact");
  assert.equal(await page.getByRole("heading", { name: "Who signed it" }).isVisible(), false);
  await element.evaluate((element) => document.querySelector("main").append(element));
  await set("variant", null);
  assert.equal(await element.evaluate(({ variant }) => variant), "full");
  await leave();
});

/** What has the focus, in words: inside the element too. */
const focused = (page) => page.evaluate(() => {
  let active = document.activeElement;
  while (active?.shadowRoot?.activeElement) active = active.shadowRoot.activeElement;
  return active?.getAttribute("aria-label") ?? active?.labels?.[0]?.textContent?.trim() ?? (active?.id || active?.textContent?.trim() || active?.tagName);
});

/** Everything that Tab reaches, from the form's first field until it leaves it or comes around. */
async function walk(page, last, most = 40) {
  const seen = [];
  for (let step = 0; step < most; step += 1) {
    await page.keyboard.press("Tab");
    const now = await focused(page);
    seen.push(now);
    if (now === last) break;
  }
  return seen;
}

test("Tab enters a gate, walks through it and leaves it", async () => {
  const { page, choose, settled, leave } = await form();
  await page.locator("#title").focus();
  assert.deepEqual(await walk(page, "send"), ["Choose a bundle", "send"]);
  await choose("good");
  await settled("safe");
  await page.locator("#title").focus();
  assert.deepEqual(await walk(page, "send"), ["Choose another", "Remove", "Who signed it, what is in it, and the report", "send"]);
  // Back into it, and open the details.
  await page.keyboard.press("Shift+Tab");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Who signed it" }).waitFor();
  const inside = await walk(page, "send");
  for (const name of ["Filter files", "Files of the bundle", "Compare with an older bundle", "Save the report"]) assert(inside.includes(name), `${name}: ${inside}`);
  await page.locator("#title").focus();
  await page.keyboard.press("Tab");
  await page.keyboard.press("Tab");
  assert.equal(await focused(page), "Remove");
  await page.keyboard.press("Enter");
  assert.equal(await focused(page), "Choose a bundle", "the focus was lost with the row");
  await leave();
});

test("Tab walks the whole page, and Escape shows all files again", async () => {
  const { page, choose, verdict, leave } = await people.visit({ signers: bundles.signers });
  await choose(bundles.files.good);
  await verdict("Safe to install");
  await page.getByRole("treeitem", { name: "etc" }).waitFor();
  // Tab goes on from where somebody clicked.
  await page.getByRole("heading", { name: "Check a bundle" }).click();
  const seen = await walk(page, "Forget all versions seen");
  for (const name of ["Choose others", "Address of a bundle", "Check the contents of all files, too", "Remove", "Filter files", "Files of the bundle", "Compare with an older bundle", "Save the report", "Trusted keys and devices"]) {
    assert(seen.includes(name), `${name} is not among ${seen.join("; ")}`);
  }
  const tree = page.getByRole("tree");
  await tree.focus();
  // By the name's first letters.
  await page.keyboard.press("u");
  assert.match(await page.locator('.row[aria-selected="true"]').textContent(), /^usr/);
  await page.getByLabel("Filter files").fill("hello");
  await page.getByText(/entries have hello in the name/).waitFor();
  await page.getByLabel("Filter files").press("Escape");
  await page.locator(".tree [role=status]", { hasText: /^\d+ entries, / }).waitFor();
  assert.equal(await page.getByLabel("Filter files").inputValue(), "");
  await leave();
});

test("a page by script gives the focus to what can be used", async () => {
  const { page, element, leave } = await form();
  await element.evaluate((element) => element.focus());
  assert.equal(await focused(page), "Choose a bundle");
  // The browser's own report of an invalid field leads there, too.
  await page.locator("#title").focus();
  await element.evaluate(({ form }) => form.reportValidity());
  assert.equal(await focused(page), "Choose a bundle");
  await leave();
});

test("it is dark where the page is, and not by what the person prefers", async () => {
  const { page, element, leave } = await form({}, { colorScheme: "dark" });
  const shade = () => element.evaluate((element) => getComputedStyle(element).backgroundColor);
  assert.equal(await shade(), "rgb(13, 17, 23)");
  await page.evaluate(() => (document.documentElement.style.colorScheme = "light"));
  assert.equal(await shade(), "rgb(255, 255, 255)");
  await leave();
});

test("an address at which nothing is shows before anything is chosen", async () => {
  const { page, set, leave } = await form({ "wasm-url": "/missing.wasm" });
  await page.locator(".drop .fault", { hasText: "the attribute wasm-url sets its address" }).waitFor();
  await set("wasm-url", null);
  assert.equal(await page.locator(".drop .fault").textContent(), "");
  await leave(/404/);
});

test("someone without keys is told first how to get them", async () => {
  const { page, choose, verdict, leave } = await people.visit();
  await page.getByText("This page trusts nobody yet. Ask the publisher for the file allowed_signers").waitFor();
  await page.locator("#signers-file").setInputFiles(join(bundles.folder, "signers.txt"));
  await page.getByText("This page trusts nobody yet.").waitFor({ state: "hidden" });
  await choose(bundles.files.good);
  await verdict("Safe to install");
  await leave();
});
