// The page without sight, mouse, colours, room, script or screen. Run by: node --test wasm/tests/accessibility.test.mjs

import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";

import { kind } from "./browser.mjs";
import { setup } from "./setup.mjs";

const { bundles, people } = await setup();

test("each phase is spoken once", async () => {
  const { page, choose, verdict, leave } = await people.visit({ signers: bundles.signers });
  await page.evaluate(() => {
    window.spoken = [];
    // What stands in a live region when it comes, or comes into one that is there.
    const speak = (region) => window.spoken.push(region.textContent);
    const root = document.querySelector("sealift-verifier").shadowRoot;
    new MutationObserver((changes) => {
      const regions = new Set(changes.map(({ target }) => (target.nodeType === 1 ? target : target.parentElement)?.closest("[role=status], [role=alert], [aria-live=polite]")).filter(Boolean));
      for (const region of regions) if (region.textContent.trim() !== "") speak(region);
    }).observe(root, { childList: true, characterData: true, subtree: true });
  });
  for (const [name, words] of [["good", "Safe to install"], ["untrusted", "unknown signer"]]) {
    await choose(bundles.files[name]);
    await verdict(words);
    await page.waitForTimeout(500);
    const spoken = (await page.evaluate(() => window.spoken.splice(0))).filter((text) => !/entries/.test(text));
    assert.equal(new Set(spoken).size, spoken.length, spoken.join("\n"));
    assert(spoken.at(-1).includes(words) && spoken.length <= 3, spoken.join("\n"));
  }
  await leave();
});

test("title and focus follow the verdict", async () => {
  const { page, choose, verdict, leave } = await people.visit({ signers: bundles.signers });
  const before = await page.title();
  await choose(bundles.files.good);
  await verdict("Safe to install");
  assert.equal(await page.title(), "Safe to install: good.sealift");
  assert(await page.evaluate(() => document.querySelector("sealift-verifier").shadowRoot.activeElement?.classList.contains("banner")));
  await choose(bundles.files.flipped);
  await verdict("it is damaged");
  assert.equal(await page.title(), "Do not install: flipped.sealift");
  await page.getByLabel("Address of a bundle").fill("/bundles/good.sealift");
  await page.getByLabel("Address of a bundle").press("Enter");
  await verdict("Safe to install");
  assert(await page.evaluate(() => document.querySelector("sealift-verifier").shadowRoot.activeElement?.classList.contains("banner")));
  await page.evaluate(() => document.querySelector("sealift-verifier").reset());
  assert.equal(await page.title(), before);
  // Who is about to do something else is not disturbed.
  await page.getByLabel("Allowed signers", { exact: true }).focus();
  await page.evaluate(async () => document.querySelector("sealift-verifier").check(await (await fetch("/bundles/good.sealift")).blob()));
  await verdict("Safe to install");
  assert.equal(await page.evaluate(() => document.querySelector("sealift-verifier").shadowRoot.activeElement?.id), "signers");
  await leave();
});

test("names are gone to by their letters", async () => {
  const { page, choose, verdict, leave } = await people.visit({ signers: bundles.signers });
  await choose(bundles.files.good);
  await verdict("Safe to install");
  const focused = () => page.locator("[role=treeitem][aria-selected=true] .name").textContent();
  await page.getByRole("tree").focus();
  await page.keyboard.type("us");
  await page.waitForTimeout(100);
  assert.equal(await focused(), "usr");
  for (const key of ["ArrowRight", "ArrowRight"]) {
    await page.keyboard.press(key);
    await page.waitForTimeout(100);
  }
  await page.waitForTimeout(800);
  assert.equal(await focused(), "bin");
  await page.keyboard.type("sh");
  await page.waitForTimeout(100);
  assert.equal(await focused(), "share");
  // Another letter after a while begins anew, and goes around.
  await page.waitForTimeout(800);
  await page.keyboard.type("l");
  await page.waitForTimeout(100);
  assert.equal(await focused(), "lib");
  await leave();
});

test("the row in focus is one that is there, however far it is scrolled away", async () => {
  const { page, choose, verdict, leave } = await people.visit({ signers: bundles.signers });
  await choose(bundles.files.good);
  await verdict("Safe to install");
  const tree = page.getByRole("tree");
  await tree.focus();
  for (const text of ["us", "sh", "do", "he"]) {
    await page.keyboard.type(text);
    await page.waitForTimeout(800);
    for (const _ of ["open", "enter"]) {
      await page.keyboard.press("ArrowRight");
      await page.waitForTimeout(100);
    }
  }
  const active = () => tree.evaluate((tree) => tree.getRootNode().getElementById(tree.getAttribute("aria-activedescendant"))?.textContent ?? "none");
  assert.match(await active(), /^page-0/);
  await tree.evaluate((tree) => (tree.scrollTop = tree.scrollHeight));
  await page.waitForTimeout(100);
  assert.match(await active(), /^page-0/);
  await page.keyboard.press("End");
  await page.waitForTimeout(100);
  assert.match(await active(), /^page-9/);
  await tree.evaluate((tree) => (tree.scrollTop = 0));
  await page.waitForTimeout(100);
  assert.notEqual(await active(), "none");
  await leave();
});

test("what is chosen is seen in forced colours", { skip: kind !== "chromium" && "only Chromium is asked for forced colours by a test" }, async () => {
  const { page, choose, verdict, leave } = await people.visit({ signers: bundles.signers, forcedColors: "active" });
  await choose(bundles.files.good);
  await verdict("Safe to install");
  // As it is painted: computed styles are those before the system's colours replace them.
  const painted = async (selected) => {
    const row = page.locator(`[role=treeitem][aria-selected=${selected}]`).first();
    const image = (await row.screenshot()).toString("base64");
    return page.evaluate(async (image) => {
      const bitmap = await createImageBitmap(new Blob([Uint8Array.from(atob(image), (letter) => letter.charCodeAt(0))]));
      const context = new OffscreenCanvas(bitmap.width, bitmap.height).getContext("2d");
      context.drawImage(bitmap, 0, 0);
      return [...context.getImageData(bitmap.width >> 1, bitmap.height - 4, 1, 1).data].join();
    }, image);
  };
  assert.notEqual(await painted(true), await painted(false));
  const fills = await page.locator(".bar rect, .swatch rect").evaluateAll((parts) => new Set(parts.map((part) => getComputedStyle(part).fill)).size);
  assert(fills > 1, "the parts of the layout have one colour");
  await leave();
});

test("nothing is wider than 320 pixels, and the bar's colours are in its legend", async () => {
  const { page, choose, verdict, leave } = await people.visit({ signers: bundles.signers, viewport: { width: 320, height: 640 } });
  const fits = async (what) => {
    const [over, widest] = await page.evaluate(() => {
      const { scrollWidth, clientWidth } = document.documentElement;
      const wide = [...document.querySelector("sealift-verifier").shadowRoot.querySelectorAll("*")].filter((element) => element.getBoundingClientRect().right > clientWidth && !element.closest(".scroll, .rows, pre"));
      return [scrollWidth - clientWidth, wide.map((element) => `${element.localName}.${element.className}`).join()];
    });
    assert.equal(over, 0, `${what}: ${widest}`);
  };
  await fits("start");
  for (const [name, words] of [["good", "Safe to install"], ["untrusted", "unknown signer"], ["delta", "Safe to install"], ["hostile", "Safe to install"]]) {
    await choose(bundles.files[name]);
    await verdict(words);
    await page.getByRole("heading", { name: "Layout" }).waitFor();
    await fits(name);
    const [bar, legend] = await page.evaluate(() => [".bar rect", ".swatch rect"].map((selector) => [...document.querySelector("sealift-verifier").shadowRoot.querySelectorAll(selector)].map((part) => part.getAttribute("class"))));
    assert.deepEqual(bar.filter((part) => !legend.includes(part)), [], `${name} has parts that its legend lacks`);
  }
  await choose(bundles.files.good);
  await page.locator(".banner.good", { hasText: "good.sealift" }).waitFor();
  await page.locator("#older").setInputFiles(bundles.files.older);
  await page.getByText("os version 7 compared with os version 6").waitFor();
  await page.getByLabel("Filter files").fill("libhello.so.1");
  await page.getByRole("treeitem", { name: "libhello.so.1" }).first().click();
  await page.locator("pre.bytes").waitFor();
  const cut = await page.locator("pre.bytes, .scroll").evaluateAll((boxes) => boxes.filter(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth).map(({ className, scrollWidth, clientWidth }) => `${className}: ${scrollWidth} in ${clientWidth}`));
  assert.deepEqual(cut, []);
  await page.getByText("Trusted keys and devices").click();
  await fits("compared");
  await page.locator("#file").setInputFiles([bundles.files.good, bundles.files.flipped]);
  await verdict("Safe to install");
  await fits("list");
  await leave();
});

test("in print there is dark on white, and what can be pressed is not there", { skip: kind !== "chromium" && "only Chromium shows a test what would be printed" }, async () => {
  const { page, choose, verdict, leave } = await people.visit({ signers: bundles.signers, colorScheme: "dark" });
  await choose(bundles.files.good);
  await verdict("Safe to install");
  await page.emulateMedia({ media: "print" });
  const { text, back, buttons } = await page.evaluate(() => {
    const light = (colour) => colour.match(/\d+/g).slice(0, 3).reduce((sum, part) => sum + Number(part), 0) / 3;
    const root = document.querySelector("sealift-verifier").shadowRoot;
    const style = getComputedStyle(root.querySelector(".banner"));
    return { text: light(style.color), back: light(style.backgroundColor), buttons: [...root.querySelectorAll("button, input, textarea, summary")].filter((element) => element.checkVisibility()).length };
  });
  assert(text < 80 && back > 180, `text ${text} on ${back}`);
  assert.equal(buttons, 0);
  await leave();
});

test("without a script, or from a file, the page says what it needs", { skip: kind !== "chromium" && "only Chromium lets a test take scripts away" }, async () => {
  for (const options of [{ javaScriptEnabled: false }, { path: undefined }]) {
    const isFile = "path" in options;
    if (isFile && kind !== "chromium") continue;
    const { page, leave } = await people.visit({ ...options, path: "/" });
    if (isFile) await page.goto(pathToFileURL(fileURLToPath(new URL("../www/index.html", import.meta.url))).href);
    const text = page.getByText("This page needs JavaScript, and a server");
    await text.waitFor();
    await leave(/CORS|file:|ERR_FAILED/);
  }
});
