// The page and the package in Debian's Chromium beside the limits that the browser sets, and beside the program. Run by `cargo xtask compare`:
// node wasm/bench/page.mjs SEALIFT FOLDER RUNS BARE [PARTS]; in the folder lie big.sealift, huge.sealift, files.sealift, one.sealift and
// allowed_signers; BARE is what `cargo xtask web --bare` makes.
// Prints JSON. With SEALIFT_BROWSER=firefox in Firefox, for the part "save".

import { execFileSync } from "node:child_process";
import { closeSync, mkdtempSync, openSync, readdirSync, readFileSync, readSync, rmSync, statSync, writeSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { countCalls, enter, kind, launch, launchWithProfile, saved } from "../tests/browser.mjs";
import { site } from "../tests/site.mjs";

const [sealift, folder, runs, bareModule, parts] = process.argv.slice(2);
const at = (name) => join(folder, `${name}.sealift`);
const cores = availableParallelism();
const signers = readFileSync(join(folder, "allowed_signers"), "utf8");
const log = (text) => process.stderr.write(`   ${text}\n`);

const server = await site({ bundles: folder, bench: fileURLToPath(new URL(".", import.meta.url)), bare: bareModule });
const found = {
  seconds: { bareFile: [], reusedFile: [], file: [], bareUrl: [], url: [], nativeOne: [], nativeTwo: [], deepOne: [], deepTwo: [], zstd: [], blake3: [], sha256: [], nodeStream: [], nodeBlob: [] },
  memory: {},
  verdict: [],
  frames: [],
  tree: [],
  tasks: [],
  stop: [],
};

/** A page in a browser of its own: what an earlier one left in memory is not counted. */
async function fresh(use, init, start = launch) {
  const browser = await start();
  try {
    const page = await browser.newPage();
    if (init) await page.addInitScript(init);
    await page.goto(server.origin);
    return await use(page);
  } finally {
    await browser.close();
  }
}

/** Seconds until as many workers as there are cores have read the file, and done no more. */
const bare = (page, how) => page.evaluate(async ([how, cores, url]) => {
  const blob = how === "url" ? undefined : window.chosen;
  const size = blob?.size ?? Number((await fetch(url, { method: "HEAD" })).headers.get("Content-Length"));
  const workers = Array.from({ length: cores }, () => new Worker("/bench/bare.js", { type: "module" }));
  const start = performance.now();
  const parts = await Promise.all(workers.map((worker, first) => new Promise((resolve, reject) => {
    worker.onmessage = ({ data }) => resolve(data);
    worker.onerror = reject;
    worker.postMessage({ how, source: { blob, url }, size, first, step: cores });
  })));
  const seconds = (performance.now() - start) / 1000;
  workers.forEach((worker) => worker.terminate());
  if (parts.reduce((sum, part) => sum + part) !== size) throw new Error(`${parts} of ${size} bytes came`);
  return seconds;
}, [how, cores, `${server.origin}/bundles/big.sealift`]);

/** Seconds that two workers need for each step of the deep check alone: of which there is no way around in WebAssembly. */
const steps = (page) => page.evaluate(async () => {
  const { openBundle } = await import("/sealift/src/index.js");
  const bundle = await openBundle(window.chosen);
  const head = new Uint8Array(await window.chosen.slice(0, window.chosen.size - bundle.head.chunksBytes).arrayBuffer());
  bundle.close();
  const module = await WebAssembly.compile(await (await fetch("/bare/bare_bg.wasm")).arrayBuffer());
  const workers = [0, 1].map(() => new Worker("/bench/steps.js", { type: "module" }));
  const each = await Promise.all(workers.map((worker, first) => new Promise((resolve, reject) => {
    worker.onmessage = ({ data }) => resolve(data);
    worker.onerror = reject;
    worker.postMessage({ module, blob: window.chosen, head, first, step: workers.length });
  })));
  workers.forEach((worker) => worker.terminate());
  return Object.fromEntries(Object.keys(each[0]).map((name) => [name, Math.max(...each.map((seconds) => seconds[name]))]));
});

/** Seconds that the package takes from opening to the end. */
const check = (page, how, options) => page.evaluate(async ([how, url, options]) => {
  const { verify } = await import("/sealift/src/index.js");
  const start = performance.now();
  await verify(how === "blob" ? window.chosen : url, options);
  return (performance.now() - start) / 1000;
}, [how, `${server.origin}/bundles/big.sealift`, { allowedSigners: signers, ...options }]);

/** Gives the page's script a file as a person does. */
async function choose(page, file) {
  await page.evaluate(() => {
    const input = Object.assign(document.createElement("input"), { type: "file", id: "bench" });
    input.onchange = () => (window.chosen = input.files[0]);
    document.body.append(input);
  });
  await page.locator("#bench").setInputFiles(file);
}

/** Memory of the browser's processes in bytes; what several share counts once. */
function memory() {
  const processes = new Map();
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      processes.set(Number(pid), Number(readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1].split(" ")[1]));
    } catch {
      // It has ended.
    }
  }
  const isOurs = (pid) => pid !== undefined && (processes.get(pid) === process.pid || isOurs(processes.get(pid)));
  let sum = 0;
  for (const pid of [...processes.keys()].filter(isOurs)) {
    try {
      sum += 1024 * Number(/^Pss: +(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, "utf8"))[1]);
    } catch {
      // As above.
    }
  }
  return sum;
}

/** The most memory above the idle page, while it does something. */
async function peak(page, run) {
  await page.waitForTimeout(2000);
  const idle = memory();
  let most = idle;
  const timer = setInterval(() => (most = Math.max(most, memory())), 100);
  await run();
  clearInterval(timer);
  return { idle, peak: most };
}

async function speed() {
  for (let run = 1; run <= Number(runs); run += 1) {
    await fresh(async (page) => {
      await choose(page, at("big"));
      const { seconds } = found;
      seconds.bareFile.push(await bare(page, "blob"));
      seconds.reusedFile.push(await bare(page, "reused"));
      seconds.file.push(await check(page, "blob", {}));
      seconds.bareUrl.push(await bare(page, "url"));
      seconds.url.push(await check(page, "url", {}));
      for (const [jobs, native, deep] of [[1, "nativeOne", "deepOne"], [2, "nativeTwo", "deepTwo"]]) {
        const start = performance.now();
        execFileSync(sealift, ["verify", "--deep", "--jobs", String(jobs), "--progress", "none", "--trust", join(folder, "allowed_signers"), "--state", join(folder, "page-state"), at("big")]);
        seconds[native].push((performance.now() - start) / 1000);
        seconds[deep].push(await check(page, "blob", { deep: true, jobs }));
      }
      for (const [name, time] of Object.entries(await steps(page))) seconds[name].push(time);
      const inNode = JSON.parse(execFileSync(process.execPath, [fileURLToPath(new URL("node.mjs", import.meta.url)), at("big"), join(folder, "allowed_signers")]));
      for (const [name, time] of Object.entries(inNode)) seconds[name].push(time);
      log(`${run}/${runs} ${Object.entries(seconds).map(([name, all]) => `${name} ${all.at(-1).toFixed(2)}`).join(", ")}`);
    });
  }
}

const trust = (page) => enter(page.getByLabel("Allowed signers", { exact: true }), signers);

/** What an administrator sees: seconds from the choice of a file to the verdict on its signature, and memory until all was checked. */
async function watch(name) {
  found.memory[name] = await fresh(async (page) => {
    await trust(page);
    await page.evaluate(() => {
      const root = document.querySelector("sealift-verifier").shadowRoot;
      root.querySelector("#file").addEventListener("change", () => (window.began = performance.now()), { capture: true });
      new MutationObserver(() => {
        if (window.began && /Signed by a key you trust|Safe to install/.test(root.querySelector(".banner")?.textContent)) window.judged ??= performance.now();
      }).observe(root, { subtree: true, childList: true });
    });
    return peak(page, async () => {
      await page.locator("#file").setInputFiles(at(name));
      await page.locator(".banner.good").waitFor({ timeout: 600_000 });
      found.verdict.push(await page.evaluate(() => (window.judged - window.began) / 1000));
    });
  });
  const { idle, peak: most } = found.memory[name];
  log(`${name}: ${((most - idle) / 2 ** 20).toFixed(0)} MiB above ${(idle / 2 ** 20).toFixed(0)}, verdict in ${found.verdict.at(-1).toFixed(3)} s`);
}

/** A byte that is wrong behind the first 4 GiB. */
async function refuse(name) {
  const file = openSync(at(name), "r+");
  const place = statSync(at(name)).size - 1000;
  const byte = Buffer.alloc(1);
  const flip = () => (readSync(file, byte, 0, 1, place), (byte[0] ^= 1), writeSync(file, byte, 0, 1, place));
  try {
    flip();
    await fresh(async (page) => {
      await page.locator("#file").setInputFiles(at(name));
      await page.locator(".banner h2", { hasText: "it is damaged" }).waitFor({ timeout: 600_000 });
    });
  } finally {
    flip();
    closeSync(file);
  }
}

/** Seconds from the click that stops a deep check until no worker has anything left to do. */
async function stop() {
  for (let round = 0; round < 5; round += 1) {
    found.stop.push(await fresh(async (page) => {
      await trust(page);
      await page.evaluate(() => document.querySelector("sealift-verifier").addEventListener("sealift-progress", ({ detail }) => (window.bytes = detail.bytes)));
      await page.locator("#file").setInputFiles(at("big"));
      await page.waitForFunction(() => window.bytes > 1e8);
      return page.evaluate(async () => {
        const root = document.querySelector("sealift-verifier").shadowRoot;
        [...root.querySelectorAll("button")].find(({ textContent }) => textContent === "Stop").click();
        const start = performance.now();
        while (!window.idle()) await new Promise((resolve) => setTimeout(resolve, 1));
        return (performance.now() - start) / 1000;
      });
    }, countCalls));
  }
  log(`idle ${found.stop.map((time) => (1000 * time).toFixed(0)).join(", ")} ms after a stop`);
}

/** Memory while a file of 1 GB is saved: in Chromium to a place of the kind that its dialog gives, in Firefox by a download. */
async function save() {
  const profile = mkdtempSync(join(tmpdir(), "sealift-profile-"));
  found.memory[`save-${kind}`] = await fresh(async (page) => {
    await trust(page);
    await page.waitForTimeout(2000);
    const idle = memory();
    await page.locator("#file").setInputFiles(at("one"));
    await page.locator(".banner.good").waitFor({ timeout: 600_000 });
    await page.waitForFunction(() => document.querySelector("sealift-verifier").reports[0].sha256, undefined, { timeout: 600_000 });
    await page.getByLabel("Filter files").fill("one");
    await page.getByRole("treeitem", { name: "one" }).click();
    const button = page.getByRole("button", { name: "Save this file" });
    await button.waitFor();
    // What the check left is not what saving takes, and saving is not to be called small beside it.
    await page.waitForTimeout(10_000);
    const { idle: before, peak: most } = await peak(page, async () => {
      const start = performance.now();
      if (kind === "chromium") await button.click();
      else await saved(page, () => button.click());
      await page.locator(".preview [role=status]", { hasText: "Saved." }).waitFor({ timeout: 600_000 });
      log(`a file of 1 GB was saved in ${((performance.now() - start) / 1000).toFixed(1)} s`);
    });
    log(`save, ${kind}: ${((most - before) / 2 ** 20).toFixed(0)} MiB above the page with the open bundle`);
    return { idle, peak: most };
  }, () => {
    if ("showSaveFilePicker" in window) window.showSaveFilePicker = async ({ suggestedName }) => (await navigator.storage.getDirectory()).getFileHandle(suggestedName, { create: true });
  }, kind === "chromium" ? () => launchWithProfile(profile) : launch);
  rmSync(profile, { recursive: true, force: true });
  const { idle, peak: most } = found.memory[`save-${kind}`];
  log(`save, ${kind}: ${((most - idle) / 2 ** 20).toFixed(0)} MiB above ${(idle / 2 ** 20).toFixed(0)}`);
}

/** Seconds from the verdict on its signature to a tree of 100,000 entries in which a directory has been opened. */
async function tree() {
  for (let round = 0; round < 3; round += 1) {
    await fresh(async (page) => {
      await trust(page);
      await page.evaluate(() => {
        const root = document.querySelector("sealift-verifier").shadowRoot;
        window.tasks = [];
        new PerformanceObserver((list) => window.tasks.push(...list.getEntries().map(({ duration }) => duration / 1000))).observe({ entryTypes: ["longtask"] });
        const look = () => {
          if (/Signed by a key you trust|Safe to install/.test(root.querySelector(".banner")?.textContent)) window.judged ??= performance.now();
          const row = root.querySelector('[role=treeitem][aria-expanded="false"]');
          if (row?.querySelector(".name")?.textContent && !window.clicked) {
            window.clicked = true;
            row.click();
          }
          if (root.querySelector('[role=treeitem][aria-level="2"] .name bdi')) window.usable ??= performance.now();
        };
        new MutationObserver(look).observe(root, { subtree: true, childList: true });
      });
      await page.locator("#file").setInputFiles(at("files"));
      await page.waitForFunction(() => window.usable);
      await page.getByRole("button", { name: "Save the report" }).waitFor({ timeout: 60_000 });
      await page.waitForTimeout(500);
      const { seconds, longest } = await page.evaluate(() => ({ seconds: (window.usable - window.judged) / 1000, longest: Math.max(0, ...window.tasks) }));
      found.tree.push(seconds);
      found.tasks.push(longest);
    });
  }
  log(`a tree ${found.tree.map((time) => time.toFixed(2)).join(", ")} s after the verdict; tasks over 50 ms: ${found.tasks.map((time) => (1000 * time).toFixed(0)).join(", ")} ms`);
}

/** Seconds of each frame while a tree of 100,000 entries is filtered and scrolled. */
async function scroll() {
  found.frames = await fresh(async (page) => {
    await page.locator("#file").setInputFiles(at("files"));
    await page.getByRole("button", { name: "Save the report" }).waitFor({ timeout: 60_000 });
    await page.waitForTimeout(1000);
    return page.evaluate(async () => {
      const find = (selector) => document.querySelector("sealift-verifier").shadowRoot.querySelector(selector);
      const frames = [];
      let last = await new Promise(requestAnimationFrame);
      const frame = async () => {
        const now = await new Promise(requestAnimationFrame);
        frames.push((now - last) / 1000);
        last = now;
      };
      const filter = find("input[type=search]");
      for (const text of ["0", "00", "00099", "0042/", ""]) {
        filter.value = text;
        filter.dispatchEvent(new Event("input"));
        for (let count = 0; count < 20; count += 1) await frame();
        const rows = find(".rows");
        for (let count = 0; count < 60; count += 1) {
          rows.scrollTop = (rows.scrollHeight * count) / 60;
          await frame();
        }
      }
      return frames;
    });
  });
  log(`the longest of ${found.frames.length} frames took ${(1000 * Math.max(...found.frames)).toFixed(1)} ms`);
}

try {
  const only = parts?.split(",") ?? ["speed", "big", "huge", "stop", "save", "tree"];
  if (only.includes("speed")) await speed();
  if (only.includes("big")) await watch("big");
  if (only.includes("huge")) {
    await watch("huge");
    await refuse("huge");
  }
  if (only.includes("stop")) await stop();
  if (only.includes("save")) await save();
  if (only.includes("tree")) {
    await tree();
    await scroll();
  }
  found.bytes = Object.fromEntries(["big", "huge", "one"].map((name) => [name, statSync(at(name)).size]));
} finally {
  await server.close();
}
console.log(JSON.stringify(found));
