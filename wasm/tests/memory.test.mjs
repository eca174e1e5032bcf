// The memory that a page takes for a large bundle. Run by: node --test wasm/tests/memory.test.mjs

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createCipheriv } from "node:crypto";
import { once } from "node:events";
import { appendFileSync, closeSync, mkdtempSync, openSync, readFileSync, readdirSync, rmSync, statSync, statfsSync, writeFileSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { json } from "node:stream/consumers";
import { test } from "node:test";

import { start } from "./browser.mjs";
import { sealift } from "./bundle.mjs";
import { site } from "./site.mjs";

const CONTENT_BYTES = 2_000_000_000;
/** The content, the chunks that pack sets aside, and the bundle. */
const DISK_BYTES = 3 * CONTENT_BYTES;
const MOST_BYTES = 350 * 2 ** 20;

const NAME = "by address the renderer takes at most 350 MiB at 2 GB";

const PAGE = `<!doctype html>
<title>A large bundle</title>
<script>
  addEventListener("sealift-verdict", async ({ detail }) => {
    if (detail.state === "checking") return;
    const report = (await detail.complete) ?? detail.report;
    await fetch("/report", { method: "POST", body: JSON.stringify(report) });
  });
</script>
<script type="module" src="/sealift/src/element.js"></script>
<sealift-verifier src="/bundles/noise.sealift" trust-src="/bundles/signers.txt" settings="readonly"></sealift-verifier>`;

test(NAME, { skip: shortage(), timeout: 1_500_000 }, async ({ signal }) => {
  const folder = mkdtempSync(join(tmpdir(), "sealift-memory-"));
  try {
    const bundle = pack(folder);
    const { report, ranges, peak } = await check(folder, signal);
    assert.deepEqual([report.error, report.state, report.sound, report.trusted, report.deep], [undefined, "safe", true, true, true]);
    assert.equal(report.fileBytes, statSync(bundle).size);
    assert.equal(covered(ranges), statSync(bundle).size);
    assert(peak <= MOST_BYTES, `${(peak / 2 ** 20).toFixed(0)} MiB`);
  } finally {
    rmSync(folder, { recursive: true, maxRetries: 10 });
  }
});

/** Why the test cannot run on this machine, if so. */
function shortage() {
  const { bavail, bsize } = statfsSync(tmpdir());
  if (bavail * bsize >= DISK_BYTES) return false;
  const reason = `needs ${DISK_BYTES / 1e9} GB of free space in ${tmpdir()}`;
  if (process.env.SEALIFT_SKIPPED) appendFileSync(process.env.SEALIFT_SKIPPED, `memory::${NAME}\t${reason}\n`);
  return reason;
}

/** Packs a bundle of content that does not compress, and returns its path; beside it are its allowed signers. */
function pack(folder) {
  const [noise, key, bundle] = ["noise", "key", "noise.sealift"].map((name) => join(folder, name));
  const run = (...args) => execFileSync(sealift, args, { stdio: ["ignore", "ignore", "pipe"] });
  writeNoise(noise);
  run("key", "generate", "-o", key);
  run("pack", noise, "-o", bundle, "--level", "1", "--key", key, "--name", "os", "--bundle-version", "1");
  rmSync(noise);
  writeFileSync(join(folder, "signers.txt"), `os namespaces="sealift" ${readFileSync(`${key}.pub`, "utf8")}`);
  return bundle;
}

function writeNoise(path) {
  const cipher = createCipheriv("aes-128-ctr", Buffer.alloc(16), Buffer.alloc(16));
  const zeros = Buffer.alloc(CONTENT_BYTES / 1000);
  const file = openSync(path, "w");
  for (let part = 0; part < 1000; part += 1) writeSync(file, cipher.update(zeros));
  closeSync(file);
}

/** Opens the page in a browser; returns its report, what it requested of the bundle, and the most bytes of memory that a renderer had. */
async function check(folder, signal) {
  signal.throwIfAborted();
  let tell;
  const told = new Promise((resolve) => (tell = resolve));
  const server = await site({
    bundles: folder,
    "page.html": (request, response) => response.writeHead(200, { "Content-Type": "text/html" }).end(PAGE),
    report: (request, response) => (tell(json(request)), response.writeHead(204).end()),
  });
  const browser = start(`${server.origin}/page.html`, join(folder, "profile"));
  const ended = once(browser, "exit");
  signal.addEventListener("abort", () => browser.kill());
  const peaks = new Map();
  const timer = setInterval(() => notePeaks(browser.pid, peaks), 100);
  try {
    const report = await Promise.race([told, ended.then(([code]) => assert.fail(`the browser ended with ${code}`))]);
    notePeaks(browser.pid, peaks);
    assert(peaks.size > 0, "the browser has no renderer");
    return { report, ranges: server.ranges.filter(({ path }) => path === "bundles/noise.sealift"), peak: Math.max(...peaks.values()) };
  } finally {
    clearInterval(timer);
    browser.kill();
    await ended;
    await server.close();
  }
}

/** Notes the most resident bytes that each renderer of the browser has had, by its process. The kernel keeps them: no peak lies between two looks. */
function notePeaks(browser, peaks) {
  const parents = new Map();
  const renderers = [];
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      const status = readFileSync(`/proc/${pid}/status`, "utf8");
      parents.set(Number(pid), Number(/^PPid:\s+(\d+)/m.exec(status)[1]));
      if (readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("--type=renderer")) renderers.push([Number(pid), 1024 * Number(/^VmHWM:\s+(\d+) kB/m.exec(status)[1])]);
    } catch {
      // It has ended.
    }
  }
  const isOurs = (pid) => pid !== undefined && (pid === browser || isOurs(parents.get(pid)));
  for (const [pid, peak] of renderers.filter(([pid]) => isOurs(pid))) peaks.set(pid, peak);
}

/** The number of bytes from the file's first that were requested without a gap. */
function covered(ranges) {
  let end = 0;
  for (const range of ranges.toSorted((a, b) => a.start - b.start)) if (range.start <= end) end = Math.max(end, range.end);
  return end;
}
