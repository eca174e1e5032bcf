// A browser to look at pages: Debian's Chromium, without the parts for a desktop, which take two fifths of its time; or with SEALIFT_BROWSER=firefox
// Debian's Firefox, by WebDriver BiDi.

import { spawn } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { chromium, firefox } from "playwright-core";

/** Which one it is: "chromium" or "firefox". */
export const kind = process.env.SEALIFT_BROWSER ?? "chromium";

const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"];

/** Firefox's numbers for what a page sees of the system's colours. */
const SCHEMES = { dark: 0, light: 1 };

/**
 * Starts the browser. In Firefox all pages have one colour scheme, which is to be the one that `newContext` is asked for.
 * @param {{ colorScheme?: "light" | "dark", args?: string[] }} [options] The arguments are Chromium's.
 */
export function launch({ colorScheme = "light", args = [] } = {}) {
  if (kind === "chromium") return chromium.launch({ executablePath: "/usr/bin/chromium-headless-shell", args: [...FLAGS, ...args] });
  if (kind !== "firefox") throw new Error(`SEALIFT_BROWSER is ${kind}; there are chromium and firefox`);
  adapt(colorScheme);
  const firefoxUserPrefs = { "layout.css.prefers-color-scheme.content-override": SCHEMES[colorScheme] };
  return firefox.launch({ channel: "moz-firefox", executablePath: "/usr/bin/firefox-esr", downloadsPath: downloads(), firefoxUserPrefs });
}

/** Starts the whole Chromium with a profile on the disk: what a page keeps lies in memory otherwise. @param {string} profile */
export function launchWithProfile(profile) {
  return chromium.launchPersistentContext(profile, { executablePath: "/usr/bin/chromium", args: FLAGS });
}

/**
 * Starts the whole Chromium at an address, as a person does: without DevTools, which Playwright uses, and which keep what a page loads.
 * @param {string} address
 * @param {string} profile A folder of its own.
 */
export function start(address, profile) {
  const args = ["--headless=new", `--user-data-dir=${profile}`, "--no-first-run", "--disable-background-networking", "--disable-component-update", ...FLAGS, address];
  return spawn("/usr/bin/chromium", args, { stdio: "ignore" });
}

let folder;

/** Where Firefox saves files. */
function downloads() {
  if (folder) return folder;
  folder = mkdtempSync(join(tmpdir(), "sealift-downloads-"));
  process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Enters text in a field and leaves it. In Firefox Playwright sets text by script, of which the field tells nobody. */
export async function enter(field, text) {
  await field.fill(text);
  if (kind === "firefox") await field.dispatchEvent("change");
  await field.blur();
}

/** The file that the page saves when this is done: its name and its path. Of one from a blob Firefox tells nothing by BiDi, but it is there. */
export async function saved(page, act) {
  if (kind === "chromium") {
    const [download] = await Promise.all([page.waitForEvent("download"), act()]);
    return { name: download.suggestedFilename(), path: await download.path() };
  }
  const before = new Set(readdirSync(folder));
  await act();
  for (let size = -1; ; await page.waitForTimeout(100)) {
    const names = readdirSync(folder).filter((name) => !before.has(name));
    if (names.length === 0 || names.some((name) => name.endsWith(".part"))) continue;
    const path = join(folder, names[0]);
    if (statSync(path).size > 0 && statSync(path).size === size) return { name: names[0], path };
    ({ size } = statSync(path));
  }
}

let send;
/** The scheme of the browser at the other end, by its connection; the last one was launched last. */
const schemes = new WeakMap();
let launched;

/** Playwright sends one command that Firefox 153 does not know: the colour scheme, which is set as a preference. */
function adapt(colorScheme) {
  launched = colorScheme;
  if (send) return;
  const { ws } = createRequire(import.meta.url)("playwright-core/lib/utilsBundle");
  ({ send } = ws.prototype);
  ws.prototype.send = function (text, ...rest) {
    if (!schemes.has(this)) schemes.set(this, launched);
    const { id, method, params } = JSON.parse(text);
    if (method !== "emulation.setMediaFeaturesOverride") return send.call(this, text, ...rest);
    const wanted = params.features["prefers-color-scheme"];
    const isSo = wanted === undefined || wanted === null || wanted === schemes.get(this);
    const answer = isSo ? { type: "success", id, result: {} } : { type: "error", id, error: "unsupported operation", message: `launch({ colorScheme: "${wanted}" }) does this in Firefox` };
    setImmediate(() => this.emit("message", Buffer.from(JSON.stringify(answer)), false));
  };
}

/** The report of a file, once it has what comes after the verdict: nothing reads the file any more. */
export async function hashed(page) {
  await page.waitForFunction(() => document.querySelector("sealift-verifier").reports[0]?.sha256);
  return page.locator("sealift-verifier").evaluate(({ reports }) => reports[0]);
}

/** Run in a page: counts what workers were asked and have not answered. */
export function countCalls() {
  const Real = window.Worker;
  const open = new Map();
  window.idle = () => open.size === 0;
  window.Worker = class extends Real {
    #number = Math.random();
    constructor(...args) {
      super(...args);
      this.addEventListener("message", ({ data }) => open.delete(`${this.#number} ${data.id}`));
    }
    postMessage(data, ...rest) {
      if (data?.id !== undefined) open.set(`${this.#number} ${data.id}`, data.name);
      return super.postMessage(data, ...rest);
    }
    terminate() {
      for (const key of open.keys()) if (key.startsWith(`${this.#number} `)) open.delete(key);
      super.terminate();
    }
  };
}
