// A check over a line that is slow or breaks. Run by: node --test wasm/tests/line.test.mjs

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { sealift } from "./bundle.mjs";
import { setup } from "./setup.mjs";

import { Pace } from "../npm/src/page/pace.js";
import { openBundle } from "../npm/src/index.js";
import { RunCheck, runsOf } from "../npm/src/run-check.js";

/** Bytes per second of the slow line. */
const RATE = 4_000_000;

/** How requests are answered, by their number. */
let manner = () => "good";
let asked = 0;
/** Each makes a paused answer go on. */
const paused = [];
const { server, bundles, people } = await setup({ serve: () => ({ line }) });
mkdirSync(join(bundles.folder, "large"));
writeFileSync(join(bundles.folder, "large/file"), randomBytes(40 << 20));
const large = join(bundles.folder, "large.sealift");
execFileSync(sealift, ["pack", join(bundles.folder, "large"), "-o", large, "--name", "os", "--bundle-version", "7", "--key", join(bundles.folder, "release")], { stdio: "pipe" });
const bytes = readFileSync(large);
/** When the slow line is free again. */
let free = 0;

/** Answers a request for the large bundle. */
async function line(request, response) {
  const how = /^\/line\/(mute|headless)\//.exec(request.url)?.[1] ?? manner((asked += 1));
  if (how === "whole") return response.writeHead(200, { "Content-Length": bytes.length }).write(bytes.subarray(0, 1 << 20));
  if (how === "busy") return response.writeHead(503).end();
  if (how === "cut") return request.socket.destroy();
  // Never an answer.
  if (how === "mute") return;
  const [, start, last] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range).map(Number);
  const end = Math.min(last + 1, bytes.length);
  response.writeHead(206, { "Content-Range": `bytes ${start}-${end - 1}/${bytes.length}`, "Content-Length": end - start, ETag: '"one"' });
  if (how === "headless") return response.flushHeaders();
  if (how === "paused") {
    response.write(bytes.subarray(start, start + 1000));
    return paused.push(() => response.end(bytes.subarray(start + 1000, end)));
  }
  if (how === "stalled") return response.write(bytes.subarray(start, start + 1000));
  if (how === "broken") return response.write(bytes.subarray(start, start + 1000), () => request.socket.destroy());
  if (how !== "slow") return response.end(bytes.subarray(start, end));
  // All requests share the line.
  for (let at = start; at < end && !response.destroyed; at += 100_000) {
    free = Math.max(free, performance.now()) + (100_000 / RATE) * 1000;
    await new Promise((resolve) => setTimeout(resolve, free - performance.now()));
    response.write(bytes.subarray(at, Math.min(at + 100_000, end)));
  }
  response.end();
}

/** Run in a page: its long timers end soon, and yet not before a busy machine has an answer. */
function hurry() {
  const { setTimeout: real } = window;
  window.setTimeout = (run, milliseconds, ...rest) => real(run, milliseconds >= 12_000 ? 2500 : milliseconds, ...rest);
}

const visit = async (how, options = {}) => {
  [manner, asked] = [how, 0];
  const visitor = await people.visit({ signers: bundles.signers, ...options });
  await visitor.page.getByLabel("Address of a bundle").fill("/line/os.sealift");
  await visitor.page.getByLabel("Address of a bundle").press("Enter");
  return visitor;
};

test("a request that fails is made again", async () => {
  const { verdict, leave } = await visit((number) => ({ 1: "busy", 2: "broken", 5: "busy", 7: "broken", 8: "cut", 9: "busy" })[number] ?? "good");
  await verdict("Safe to install: os, version 7");
  assert(asked > 9, `${asked} requests`);
  await leave(/503|ERR_|Failed to load|NetworkError|network/);
});

test("what stays broken is told, and can be checked again", async () => {
  const { page, verdict, leave } = await visit(() => "busy");
  await verdict("Not checked: the address cannot be read");
  await page.locator(".banner", { hasText: "the server answers 503" }).waitFor();
  manner = () => "good";
  await page.getByRole("button", { name: "Check again" }).click();
  await verdict("Safe to install");
  await leave(/503/);
});

test("a server that is silent is asked again, and not for ever", async () => {
  const { page, verdict, leave } = await visit((number) => ({ 1: "mute", 2: "stalled" })[number] ?? "good", { init: hurry });
  await verdict("Safe to install: os, version 7");
  // Of a part in the middle, too.
  [manner, asked] = [(number) => ({ 2: "mute", 3: "stalled" })[number] ?? "good", 0];
  const length = await page.evaluate(async () => {
    const { openSource } = await import("/sealift/src/sources.js");
    const source = await openSource(new URL("/line/os.sealift", location.href));
    return (await source.read(1 << 20, 1 << 20)).length;
  });
  assert.deepEqual([length, asked], [1 << 20, 4]);
  await leave(/ERR_|aborted/);
  // One that never answers is given up in the end, and one that stops in the middle of the whole file at once.
  for (const [how, said] of [["mute", "the server sent nothing for 13 seconds, in the last of 4 attempts"], ["whole", "the server sent nothing for 60 seconds"]]) {
    const { page, verdict, leave } = await visit(() => how, { init: hurry });
    await verdict("Not checked: the address cannot be read");
    await page.locator(".banner", { hasText: said }).waitFor();
    await leave(/ERR_|aborted/);
  }
});

test("an address that never answers is given up within a minute", { timeout: 120_000 }, async () => {
  await Promise.all(["mute", "headless"].map(async (how) => {
    const start = performance.now();
    await assert.rejects(openBundle(`${server.origin}/line/${how}/os.sealift`), { code: "io", message: /^the server sent nothing for 13 seconds, in the last of 4 attempts$/ });
    const seconds = (performance.now() - start) / 1000;
    assert(seconds < 60, `${seconds} s`);
  }).concat(
    assert.rejects(openBundle(readFileSync(bundles.files.good), { wasmUrl: `${server.origin}/line/mute/os.wasm` }), /os\.wasm cannot be loaded: the server sent nothing for 30 seconds; the option wasmUrl/),
  ));
});

test("the wait for a server is told, by the time since the last byte", async () => {
  const { page, leave } = await people.visit();
  [manner, asked] = [(number) => (number === 1 ? "busy" : "good"), 0];
  await page.evaluate((allowedSigners) => {
    window.waits = [];
    window.start = performance.now();
    const onWait = (wait) => window.waits.push({ ...wait, isOver: wait === undefined, at: performance.now() - window.start });
    window.done = import("/sealift/src/index.js").then(async ({ openBundle }) => {
      const bundle = await openBundle("/line/os.sealift", { allowedSigners, onWait });
      window.opened = bundle;
    });
    return window.done;
  }, bundles.signers);
  const [failed, over, ...none] = await page.evaluate(() => window.waits.splice(0));
  assert.deepEqual([failed.reason, failed.attempt, failed.attempts], ["the server answers 503 Service Unavailable", 2, 4]);
  assert.deepEqual([over.isOver, none], [true, []]);
  // All requests stop after some bytes.
  manner = () => "paused";
  await page.evaluate(() => void (window.done = window.opened.verify({ deep: true }).then(() => (window.isDone = true)), window.start = performance.now()));
  await page.waitForFunction(() => window.waits.length === 2);
  const [first, second] = await page.evaluate(() => window.waits);
  assert.deepEqual([first.seconds, first.attempt, first.attempts, first.reason], [5, 1, 6, undefined]);
  assert(first.at < 7000, `told after ${first.at} ms`);
  assert.equal(second.seconds, 6);
  // Bytes of one of them end the wait.
  paused.shift()();
  await page.waitForFunction(() => window.waits.at(-1).isOver);
  manner = () => "good";
  for (const goOn of paused.splice(0)) goOn();
  await page.waitForFunction(() => window.isDone);
  assert.equal((await page.evaluate(() => window.waits)).at(-1).isOver, true);
  await leave(/503/);
});

test("the page says for how long nothing has come, and tries again when it is asked to", async () => {
  const { page, verdict, leave } = await visit((number) => (number > 1 ? "stalled" : "good"));
  const said = page.locator(".progress .wait");
  await page.getByText(/^The server has sent nothing for [5-7] s\.$/).waitFor({ timeout: 9000 });
  // A clock, and neither a rate nor a time left that would not be true.
  await page.getByText(/^The server has sent nothing for (8|9) s\.$/).waitFor({ timeout: 5000 });
  assert.equal(await page.getByText(/ left$/).filter({ visible: true }).count(), 0);
  assert.equal(await page.locator("sealift-verifier").evaluate(({ finding }) => finding.state), "checking");
  manner = () => "good";
  await page.getByRole("button", { name: "Try again" }).click();
  await verdict("Safe to install: os, version 7");
  assert.equal(await said.textContent(), "");
  assert.equal(await page.getByRole("button", { name: "Try again" }).isVisible(), false);
  await leave(/ERR_|aborted/);
});

test("no more is asked of a server at once than a browser has connections to it", async () => {
  const runs = runsOf({ lengths: new Uint32Array(40).fill(8 << 20), chunksAt: 0 }, new Set());
  for (const [handle, expected] of [[{ url: "https://example.org/os.sealift", size: 40 << 23, validator: null }, 6], [{ blob: new Blob() }, 10]]) {
    let [now, most] = [0, 0];
    const call = async () => {
      most = Math.max(most, (now += 1));
      await new Promise((resolve) => setTimeout(resolve, 5));
      now -= 1;
      return { found: [], read: 8 << 20 };
    };
    const threads = Array.from({ length: 5 }, () => Promise.resolve({ call }));
    await new RunCheck({ handle, thread: await threads[0] }, threads, runs, undefined, () => {}).run();
    assert.equal(most, expected);
  }
});

test("a slow line shows its rate and what is left, from the beginning", async () => {
  const { page, leave } = await visit((number) => (number > 1 ? "slow" : "good"));
  await page.getByText(/MB of 41\.9 MB, .* left/).first().waitFor({ timeout: 4000 });
  await page.waitForTimeout(4000);
  const text = await page.locator(".progress .quiet").textContent();
  const [, done, rate, left] = /^([\d.]+) MB of 41\.9 MB, ([\d.]+) MB\/s, ([\d.]+) s left$/.exec(text).map(Number);
  assert(rate > RATE / 2e6 && rate < RATE / 0.6e6, text);
  assert(Math.abs(left - (41.9 - done) / rate) < 1, text);
  await leave(/ERR_|aborted/);
});

test("what comes together after a long time was not fast", () => {
  const pace = new Pace();
  const runs = [[0, 0], [8, 34], [16, 34.02], [24, 34.03], [32, 34.1]];
  const said = runs.map(([megabytes, seconds]) => pace.take(megabytes * 1e6, 3.3e9, seconds));
  assert.match(said.at(-1), /^32\.0 MB of 3\.30 GB, 938 kB\/s, 58 min left$/);
});

test("a line that becomes slow is said to be so within seconds", () => {
  const pace = new Pace();
  for (let tenths = 0, done = 0; tenths <= 300; tenths += 2) {
    const seconds = tenths / 10;
    done += (seconds <= 15 ? 8e6 : 1e6) / 5;
    const text = pace.take(done, 1e9, seconds);
    if (seconds > 1 && seconds <= 15) assert.match(text, /, 8\.\d\d MB\/s, /, `after ${seconds} s`);
    if (seconds > 19) assert.match(text, /, 1\.00 MB\/s, /, `after ${seconds} s`);
  }
});
