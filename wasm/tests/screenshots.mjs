// Makes www/screenshots anew. Run by: node wasm/tests/screenshots.mjs

import { mkdirSync, rmSync } from "node:fs";
import { fileURLToPath } from "node:url";

import { shelf } from "./shelf.mjs";
import { launch } from "./browser.mjs";
import { site } from "./site.mjs";

const out = fileURLToPath(new URL("../www/screenshots", import.meta.url));
const states = ["good", "unsigned", "untrusted", "expired", "older", "flipped", "truncated", "delta", "hostile"];

const bundles = shelf();
const server = await site({ bundles: bundles.folder });
const browser = await launch();
rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
for (const colorScheme of ["light", "dark"]) {
  const page = await browser.newPage({ colorScheme, viewport: { width: 1000, height: 800 } });
  const shoot = (name, fullPage = false) => page.screenshot({ path: `${out}/${name}-${colorScheme}.png`, fullPage });
  await page.goto(server.origin);
  await shoot("start");
  await page.getByLabel("Allowed signers", { exact: true }).fill(bundles.signers);
  await page.getByLabel("Allowed signers", { exact: true }).blur();
  await page.getByText("Trusted keys and devices").click();
  for (const state of states) {
    await page.locator("#file").setInputFiles(bundles.files[state]);
    await page.getByRole("button", { name: "Save the report" }).waitFor();
    await page.waitForTimeout(300);
    await shoot(state, state === "hostile");
  }
  await page.locator("#file").setInputFiles(bundles.files.good);
  await page.getByRole("button", { name: "Save the report" }).waitFor();
  await page.locator("#older").setInputFiles(bundles.files.older);
  await page.getByText("os version 7 against os version 6").waitFor();
  await page.getByLabel("Filter files").fill("os-rel");
  await page.getByRole("treeitem").first().click();
  await page.locator(".preview pre").waitFor();
  await shoot("compared", true);
  await page.emulateMedia({ media: "print" });
  await shoot("print", true);
  await page.emulateMedia({ media: null });
  await page.setViewportSize({ width: 390, height: 800 });
  await shoot("phone", true);
  await page.setViewportSize({ width: 1000, height: 800 });
  await page.locator("#file").setInputFiles(["good", "flipped", "untrusted"].map((name) => bundles.files[name]));
  await page.locator(".list .bad").nth(1).waitFor();
  await shoot("list");
  await page.close();
}
await browser.close();
await server.close();
bundles.remove();
