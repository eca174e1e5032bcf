// Workers, which hold readers of several bundles. Run by: node --test wasm/tests/workers.test.mjs

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";

import { openBundle } from "../npm/src/index.js";
import { Thread } from "../npm/src/threads.js";
import { kind, launch } from "./browser.mjs";
import { packed } from "./bundle.mjs";
import { site } from "./site.mjs";

const { bytes, key, contents } = packed({ more: 20 << 20 });
const trust = { allowedSigners: `os namespaces="sealift" ${key}`, compatible: ["board"] };

let [folder, server, browser] = [];
before(async () => {
  folder = mkdtempSync(join(tmpdir(), "sealift-workers-"));
  writeFileSync(join(folder, "os.sealift"), bytes);
  server = await site({ bundles: folder });
  browser = await launch();
});
after(async () => {
  await browser?.close();
  await server?.close();
  rmSync(folder, { recursive: true });
});

test("bundles share as many workers as there are cores", { skip: kind !== "chromium" && "only Chromium shows a test the workers" }, async () => {
  const page = await browser.newPage();
  await page.goto(server.origin);
  const cores = await page.evaluate(async (trust) => {
    const { openBundle } = await import("/sealift/src/index.js");
    const blob = await (await fetch("/bundles/os.sealift")).blob();
    window.open = await Promise.all(Array.from({ length: 30 }, () => openBundle(blob, trust)));
    return navigator.hardwareConcurrency;
  }, trust);
  assert.equal(page.workers().length, cores);
  const results = await page.evaluate(async () => {
    const verified = await Promise.all(window.open.map((bundle) => bundle.verify({ deep: true, jobs: 2 })));
    const texts = await Promise.all(window.open.map(async (bundle) => (await new Response(await bundle.open("text")).text()).length));
    return verified.map(({ summary }, at) => [summary.entries, texts[at]]);
  });
  assert.deepEqual(results, Array(30).fill([6, 10_000]));
  assert(page.workers().length <= cores, `${page.workers().length} workers`);
  // A query is not kept by the check of another bundle.
  const slowest = await page.evaluate(async () => {
    const [checked, ...others] = window.open;
    let isOver = false;
    const check = checked.verify({ deep: true }).then(() => (isOver = true));
    let slowest = 0;
    while (!isOver) {
      const start = performance.now();
      await Promise.all(others.slice(0, 4).map((bundle) => bundle.refs()));
      if (!isOver) slowest = Math.max(slowest, performance.now() - start);
    }
    await check;
    return slowest;
  });
  assert(slowest < 1000, `${slowest} ms`);
  // Closing one leaves the others; closing all ends the workers.
  await page.evaluate(async () => {
    for (const bundle of window.open.splice(0, 29)) bundle.close();
    await window.open[0].verify();
    window.open.pop().close();
  });
  for (let tries = 0; page.workers().length > 0; tries += 1) {
    assert(tries < 50, "workers stay");
    await page.waitForTimeout(100);
  }
  await page.close();
});

test("a worker that cannot start fails those who wait for it, and the next one is another", async () => {
  const workerUrl = pathToFileURL(join(folder, "worker.mjs"));
  const failures = await Promise.allSettled(Array.from({ length: 20 }, () => openBundle(bytes, { ...trust, workerUrl })));
  for (const { reason } of failures) assert.match(reason.message, /^a worker of file:.*worker\.mjs failed: /);
  // One that starts but is another program.
  writeFileSync(join(folder, "other.mjs"), "setInterval(() => {}, 1000)");
  const silent = openBundle(bytes, { ...trust, workerUrl: pathToFileURL(join(folder, "other.mjs")) });
  await assert.rejects(silent, /other\.mjs failed: its script gave no answer for 30 seconds; the option workerUrl or the attribute worker-url sets/);
  writeFileSync(join(folder, "worker.mjs"), `import ${JSON.stringify(new URL("../npm/src/worker.js", import.meta.url).href)};`);
  const bundle = await openBundle(bytes, { ...trust, workerUrl });
  assert.equal((await bundle.verify()).summary.entries, 6);
  bundle.close();
});

test("what breaks one bundle does not concern the others of its worker", async () => {
  const bundles = [];
  for (let count = 0; count < 20; count += 1) bundles.push(await openBundle(bytes, trust));
  const readers = await Promise.all(Array.from({ length: 8 }, () => Thread.start()));
  // More than the engine can ever allocate: it ends the instance.
  const large = new Uint8Array(2 ** 31);
  await assert.rejects(readers[0].call("supply", [0, large], [large.buffer]), { name: "RuntimeError" });
  for (const bundle of bundles) assert.equal((await bundle.verify({ deep: true })).summary.entries, 6);
  readers[1].close();
  await assert.rejects(readers[1].call("head"), /the bundle was closed/);
  for (const reader of readers.slice(2)) assert.equal(await reader.call("head"), undefined);
  for (const each of [...readers, ...bundles]) each.close();
});

test("what is called is answered or fails when its bundle is closed", async () => {
  const [one, other] = await Promise.all([openBundle(bytes, trust), openBundle(bytes, trust)]);
  const checks = [one.verify({ deep: true }), other.verify({ deep: true })];
  one.close();
  await assert.rejects(checks[0], /the bundle was closed/);
  assert.equal((await checks[1]).summary.entries, 6);
  await assert.rejects(one.refs(), /the bundle was closed/);
  assert.equal((await new Response(await other.open("text")).arrayBuffer()).byteLength, contents.text.length);
  other.close();
});

test("open bundles do not keep a program from ending", () => {
  const program = `
    const { openBundle } = await import(${JSON.stringify(new URL("../npm/src/index.js", import.meta.url).href)});
    const bundles = await Promise.all([1, 2, 3].map(() => openBundle(${JSON.stringify(join(folder, "os.sealift"))}, ${JSON.stringify(trust)})));
    bundles[0].close();
    console.log((await bundles[1].verify()).summary.entries);
  `;
  writeFileSync(join(folder, "program.mjs"), program);
  assert.equal(execFileSync(process.execPath, [join(folder, "program.mjs")], { timeout: 60_000, encoding: "utf8" }), "6\n");
});
