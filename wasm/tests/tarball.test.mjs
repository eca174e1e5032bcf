// The tarball in Node, and in a page that Vite makes. Run by: node --test wasm/tests/tarball.test.mjs

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { build, createServer, preview } from "vite";

import { packed } from "./bundle.mjs";
import { project } from "./project.mjs";
import { launch } from "./browser.mjs";

const PROGRAM = `
import { openAsBlob } from "node:fs";
import { verify } from "sealift";
const { head, summary } = await verify(await openAsBlob(process.argv[2]), { allowedSigners: process.argv[3], compatible: ["board"], deep: true });
console.log(head.name, head.version, summary.entries);
`;

test("it is installed and used", () => {
  const { bytes, key } = packed();
  const { folder, run, remove } = project({ "program.js": PROGRAM, "os.sealift": bytes });
  try {
    for (const file of ["README.md", "LICENSE-MIT", "LICENSE-APACHE", "types.d.ts", "element.d.ts", "src/element.js"]) {
      assert(existsSync(join(folder, "node_modules/sealift", file)), file);
    }
    assert.equal(run(process.execPath, "program.js", "os.sealift", `os namespaces="sealift" ${key}`), "os 7 5\n");
  } finally {
    remove();
  }
});

const PAGE = `<!doctype html><title>portal</title><script type="module" src="/page.js"></script>
<p id="said"></p><input type="file"><sealift-verifier trust-src="/signers"></sealift-verifier>`;

const SCRIPT = `
import { verify } from "sealift";
import "sealift/element";
document.querySelector("input").onchange = async ({ target: { files: [file] } }) => {
  const allowedSigners = await (await fetch("/signers")).text();
  const { head, summary } = await verify(file, { allowedSigners, compatible: ["board"], deep: true, jobs: 2 });
  document.querySelector("#said").textContent = [head.name, head.version, summary.entries].join(" ");
  document.querySelector("sealift-verifier").check(file);
};
`;

const serving = {
  "built by Vite": async (config) => (await build(config), preview(config)),
  "in Vite's own server": async (config) => (await createServer(config)).listen(),
};

for (const [how, serve] of Object.entries(serving)) {
  test(`a page ${how}`, async () => {
    const { bytes, key } = packed();
    const { folder, remove } = project({ "index.html": PAGE, "page.js": SCRIPT, "os.sealift": bytes });
    const browser = await launch();
    let server;
    try {
      const here = { port: 0, host: "127.0.0.1" };
      server = await serve({ root: folder, configFile: false, logLevel: "warn", server: here, preview: here });
      const page = await browser.newPage();
      const faults = [];
      page.on("pageerror", (error) => faults.push(String(error)));
      page.on("console", (message) => message.type() === "error" && faults.push(message.text()));
      await page.route("**/signers", (route) => route.fulfill({ body: `os namespaces="sealift" ${key}` }));
      await page.goto(server.resolvedUrls.local[0]);
      await page.locator("body > input").setInputFiles(join(folder, "os.sealift"));
      await page.locator("#said", { hasText: "os 7 5" }).waitFor({ timeout: 20_000 });
      await page.locator("sealift-verifier .banner h2", { hasText: "it is for other devices" }).waitFor();
      assert.deepEqual(faults, []);
    } finally {
      await server?.close();
      await browser.close();
      remove();
    }
  });
}
