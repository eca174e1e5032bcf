// The page as the program itself serves it. Run by: node --test wasm/tests/portal.test.mjs, after cargo build --features portal

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";

import { sealift } from "./bundle.mjs";
import { shelf } from "./shelf.mjs";
import { launch } from "./browser.mjs";

let [bundles, program, url] = [];
before(async () => {
  bundles = shelf();
  program = spawn(sealift, ["portal", "--listen", "127.0.0.1:0", "--json"], { stdio: ["ignore", "pipe", "inherit"] });
  const [line] = await once(createInterface(program.stdout), "line");
  ({ url } = JSON.parse(line));
});
after(() => {
  program?.kill();
  bundles?.remove();
});

test("it checks a bundle", async () => {
  const browser = await launch();
  try {
    const page = await browser.newPage();
    const faults = [];
    page.on("pageerror", (error) => faults.push(String(error)));
    page.on("console", (message) => ["error", "warning"].includes(message.type()) && faults.push(message.text()));
    page.on("request", (request) => request.url().startsWith(url) || request.url().startsWith("blob:") || faults.push(`a request: ${request.url()}`));
    await page.goto(url);
    const field = page.getByLabel("Allowed signers", { exact: true });
    await field.fill(bundles.signers);
    await field.blur();
    for (const [name, words] of [["good", "Safe to install: os, version 7"], ["flipped", "it is damaged, or was changed"]]) {
      await page.locator("#file").setInputFiles(bundles.files[name]);
      await page.locator(".banner h2", { hasText: words }).waitFor({ timeout: 60_000 });
    }
    assert.deepEqual(faults, []);
  } finally {
    await browser.close();
  }
});

test("it gives the page's files alone, and lets nobody frame them", async () => {
  const index = await fetch(url);
  assert.equal(index.status, 200);
  assert.match(index.headers.get("content-security-policy"), /frame-ancestors 'none'/);
  assert.equal(index.headers.get("x-content-type-options"), "nosniff");
  const module = await fetch(new URL("sealift/pkg/sealift_wasm_bg.wasm", url), { method: "HEAD" });
  assert.equal(module.headers.get("content-type"), "application/wasm");
  assert(Number(module.headers.get("content-length")) > 100_000);
  for (const path of ["sealift/package.json", "sealift", "%2e%2e/etc/passwd", "index.html%00"]) {
    assert.equal((await fetch(new URL(path, url))).status, 404, path);
  }
  assert.equal((await fetch(url, { method: "POST", body: "x" })).status, 405);
});

test("an address that is taken is told", async () => {
  const second = spawn(sealift, ["portal", "--listen", new URL(url).host], { stdio: ["ignore", "ignore", "pipe"] });
  const [[line], [status]] = await Promise.all([once(createInterface(second.stderr), "line"), once(second, "exit")]);
  assert.match(line, /cannot listen on 127\.0\.0\.1:\d+: .*in use/);
  assert.equal(status, 2);
});

test("a signal ends it", async () => {
  program.kill("SIGTERM");
  const [status] = await once(program, "exit");
  assert.equal(status, 143);
});
