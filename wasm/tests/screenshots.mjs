// Makes www/screenshots anew. Run by: node wasm/tests/screenshots.mjs

import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

import { sealift } from "./bundle.mjs";
import { shelf } from "./shelf.mjs";
import { launch } from "./browser.mjs";
import { site } from "./site.mjs";

const out = fileURLToPath(new URL("../www/screenshots", import.meta.url));
const states = ["good", "unsigned", "untrusted", "expired", "older", "flipped", "truncated", "delta", "hostile"];

const bundles = shelf();
execFileSync(sealift, ["pack", `${bundles.folder}/new`, "-o", `${bundles.folder}/small.sealift`, "--name", "os", "--bundle-version", "7", "--owner", "0:0", "--chunk-size", "256KiB", "--key", `${bundles.folder}/release`], { stdio: "pipe" });
execFileSync(sealift, ["split", `${bundles.folder}/small.sealift`, "--size", "1536KiB", "--recovery", "1", "-o", `${bundles.folder}/parts`], { stdio: "pipe" });
const parts = readdirSync(`${bundles.folder}/parts`).sort().map((name) => `${bundles.folder}/parts/${name}`);
const volumes = parts.filter((name) => name.endsWith("-volume"));
const server = await site({ bundles: bundles.folder, upload: fileURLToPath(new URL("../examples/upload", import.meta.url)), allowed_signers: (request, response) => response.end(bundles.signers) });
const browser = await launch();
rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
for (const colorScheme of ["light", "dark"]) {
  const page = await browser.newPage({ colorScheme, viewport: { width: 1000, height: 800 } });
  const shoot = async (name, isWhole = false) => {
    const { width, height } = page.viewportSize();
    if (isWhole) {
      // Made as high as the page beforehand: a list that shows the rows in view has nothing yet in a picture that grows meanwhile.
      await page.setViewportSize({ width, height: await page.evaluate(() => document.documentElement.scrollHeight) });
      await page.waitForTimeout(300);
    }
    await page.screenshot({ path: `${out}/${name}-${colorScheme}.png` });
    await page.setViewportSize({ width, height });
  };
  const choose = async (name) => {
    await page.locator("#file").setInputFiles(bundles.files[name]);
    // The view before has a report, too.
    await page.waitForFunction((file) => {
      const [report] = document.querySelector("sealift-verifier").reports;
      return report.file === file && report.state !== "checking";
    }, `${name}.sealift`);
    await page.getByRole("button", { name: "Save the report" }).waitFor();
  };
  await page.goto(server.origin);
  await shoot("start");
  await page.getByLabel("Allowed signers", { exact: true }).fill(bundles.signers);
  await page.getByLabel("Allowed signers", { exact: true }).blur();
  await page.getByText("Trusted keys and devices").click();
  for (const state of states) {
    await choose(state);
    await page.waitForTimeout(300);
    await shoot(state, state === "hostile");
  }
  const volumesAs = async (name, files, words) => {
    await page.locator("#file").setInputFiles(files);
    await page.locator(".banner h2", { hasText: words }).waitFor();
    await page.getByRole("button", { name: "Save the report" }).waitFor();
    await page.waitForTimeout(300);
    await shoot(name);
    await page.setViewportSize({ width: 390, height: 800 });
    await shoot(`phone-${name}`);
    await page.setViewportSize({ width: 1000, height: 800 });
  };
  await volumesAs("volumes", parts, "Safe to install");
  await volumesAs("volumes-missing", volumes.toSpliced(1, 1), "volume 2 of 3 is missing");
  const damaged = readFileSync(volumes[1]);
  damaged[damaged.length - 100] ^= 1;
  writeFileSync(volumes[1], damaged);
  await volumesAs("volumes-damaged", volumes, "volume 2 of 3 is damaged");
  damaged[damaged.length - 100] ^= 1;
  writeFileSync(volumes[1], damaged);
  await choose("good");
  await page.locator("#older").setInputFiles(bundles.files.older);
  await page.getByText("os version 7 compared with os version 6").waitFor();
  await page.getByLabel("Filter files").fill("os-rel");
  await page.getByRole("treeitem").first().click();
  await page.locator(".preview pre").waitFor();
  await shoot("compared", true);
  await page.emulateMedia({ media: "print" });
  await shoot("print", true);
  await page.emulateMedia({ media: null });
  await page.getByLabel("Filter files").fill("libhello.so.1");
  await page.getByRole("treeitem").first().click();
  await page.locator(".preview pre.bytes").waitFor();
  await page.locator(".files").screenshot({ path: `${out}/bytes-${colorScheme}.png` });
  for (const [name, width] of [["phone", 390], ["narrow", 320]]) {
    await page.setViewportSize({ width, height: 800 });
    await shoot(name, true);
  }
  await choose("untrusted");
  await page.getByRole("textbox", { name: /^The fingerprint/ }).fill(execFileSync("ssh-keygen", ["-l", "-f", `${bundles.folder}/stranger.pub`], { encoding: "utf8" }));
  await page.getByRole("button", { name: "Compare", exact: true }).click();
  await page.getByText("It is this key.").waitFor();
  await shoot("narrow-untrusted");
  await page.setViewportSize({ width: 1000, height: 800 });
  await choose("good");
  await page.emulateMedia({ forcedColors: "active" });
  await shoot("forced-colours");
  await page.emulateMedia({ forcedColors: null });
  await page.getByLabel("Address of a bundle").fill("/index.html");
  await page.getByLabel("Address of a bundle").press("Enter");
  await page.locator(".banner.doubt").waitFor();
  await shoot("not-known");
  await page.locator("sealift-verifier").evaluate(async (element) => {
    const file = await (await fetch("/bundles/good.sealift")).blob();
    const read = async (offset, length) => (offset + length > file.size - 1000 ? new Promise(() => {}) : new Uint8Array(await file.slice(offset, offset + length).arrayBuffer()));
    element.check({ size: file.size, read }, "good.sealift");
  });
  await page.locator("progress[value]").waitFor();
  await page.waitForTimeout(300);
  await shoot("checking");
  await page.locator("#file").setInputFiles(["good", "flipped", "untrusted"].map((name) => bundles.files[name]));
  await page.locator(".list .bad").nth(1).waitFor();
  await shoot("list");
  await page.close();
  const form = await browser.newPage({ colorScheme, viewport: { width: 1000, height: 800 } });
  await form.goto(`${server.origin}/upload/index.html`);
  await form.getByText("Choose a bundle").waitFor();
  await form.screenshot({ path: `${out}/form-${colorScheme}.png` });
  await form.locator("#file").setInputFiles(bundles.files.good);
  await form.locator(".banner.good").waitFor();
  await form.screenshot({ path: `${out}/form-good-${colorScheme}.png` });
  await form.locator("sealift-verifier").evaluate((element) => element.setAttribute("multiple", ""));
  await form.locator("#file").setInputFiles(["good", "older", "flipped", "untrusted"].map((name) => bundles.files[name]));
  await form.locator(".banner.bad h2", { hasText: "unknown signer" }).waitFor();
  await form.getByText("1 of 3 bundles safe to install").waitFor();
  await form.screenshot({ path: `${out}/form-several-${colorScheme}.png` });
  await form.close();
}
await browser.close();
await server.close();
bundles.remove();
