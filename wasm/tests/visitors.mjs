// People at the page, each in a browser profile of their own.

import assert from "node:assert/strict";

import { enter, launch } from "./browser.mjs";

/** Opens pages, of which each notes what its console, its policy and its network complain about. @param server As `site` gives it. */
export function visitors(server) {
  /** One for each colour scheme: Firefox has one for all its pages. */
  const browsers = {};

  async function visit({ path = "/", signers, colorScheme = "light", init, initArg, ...options } = {}) {
    const browser = await (browsers[colorScheme] ??= launch({ colorScheme }));
    const context = await browser.newContext({ acceptDownloads: true, colorScheme, ...options });
    if (init) await context.addInitScript(init, initArg);
    const page = await context.newPage();
    const faults = [];
    page.on("pageerror", (error) => faults.push(String(error)));
    page.on("console", (message) => ["error", "warning"].includes(message.type()) && faults.push(message.text()));
    page.on("dialog", (dialog) => (faults.push(`a dialog: ${dialog.message()}`), dialog.dismiss()));
    page.on("request", (request) => request.url().startsWith(server.origin) || request.url().startsWith("blob:") || faults.push(`a request: ${request.url()}`));
    await page.goto(server.origin + path);
    if (signers) {
      await enter(page.getByLabel("Allowed signers", { exact: true }), signers);
      // They are stored once they were read, where the browser stores anything.
      const isStored = () => localStorage.getItem("sealift.allowedSigners") !== null;
      if (!init) await page.waitForFunction(isStored);
    }
    const choose = (file) => page.locator("#file").setInputFiles(file);
    const verdict = (text) => page.locator(".view:not([hidden]) .banner h2", { hasText: text }).waitFor({ timeout: 60_000 });
    /** Ends the visit; complaints other than those that are expected are faults. */
    const leave = async (expected) => {
      await context.close();
      assert.deepEqual(faults.filter((fault) => !expected?.test(fault)), []);
    };
    return { page, choose, verdict, leave };
  }

  return {
    visit,
    async close() {
      for (const browser of Object.values(browsers)) await (await browser).close();
    },
  };
}
