// The tarball in Node, in TypeScript, and in pages that bundlers make. Run by: node --test wasm/tests/tarball.test.mjs

import assert from "node:assert/strict";
import { existsSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { launch } from "./browser.mjs";
import { packed } from "./bundle.mjs";
import { alone, bundlers, filesOf, viteServer } from "./bundlers.mjs";
import { project } from "./project.mjs";
import { site } from "./site.mjs";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));

const PROGRAM = `
import { verify } from "sealift";
import "sealift/element";
const { head, summary } = await verify(process.argv[2], { allowedSigners: process.argv[3], compatible: ["board"], deep: true });
console.log(head.name, head.version, summary.entries);
`;

test("it is installed and used", () => {
  const { bytes, key } = packed();
  const { folder, run, remove } = project({ "program.js": PROGRAM, "os.sealift": bytes });
  try {
    for (const file of ["README.md", "LICENSE-MIT", "LICENSE-APACHE", "types.d.ts", "element.d.ts", "react.d.ts", "src/element.js"]) {
      assert(existsSync(join(folder, "node_modules/sealift", file)), file);
    }
    assert.equal(run(process.execPath, "program.js", "os.sealift", `os namespaces="sealift" ${key}`), "os 7 5\n");
  } finally {
    remove();
  }
});

for (const program of ["page", "server"]) {
  test(`strict TypeScript takes a ${program}`, () => {
    const { folder, run, remove } = project({ "program.ts": readFileSync(here(`typed/${program}.ts`)) });
    try {
      symlinkSync(here("../node_modules/@types"), join(folder, "node_modules/@types"));
      const [lib, types] = program === "page" ? [["esnext", "dom"], []] : [["esnext"], ["node"]];
      const compilerOptions = { strict: true, noEmit: true, exactOptionalPropertyTypes: true, target: "es2022", module: "nodenext", lib, types };
      writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["program.ts"] }));
      run(process.execPath, here("../node_modules/typescript/bin/tsc"));
    } catch ({ stdout }) {
      assert.fail(String(stdout));
    } finally {
      remove();
    }
  });
}

const { bytes, key } = packed();

/** Opens a page that was built, lets it check a bundle, and looks for all that it complains of. */
async function look(url, file) {
  const browser = await launch();
  try {
    const page = await browser.newPage();
    const faults = [];
    page.on("pageerror", (error) => faults.push(String(error)));
    page.on("console", (message) => message.type() === "error" && faults.push(message.text()));
    await page.route("**/signers", (route) => route.fulfill({ body: `os namespaces="sealift" ${key}` }));
    await page.goto(url);
    await page.locator("body > input").setInputFiles(file);
    await page.locator("#said", { hasText: "os 7 5" }).waitFor({ timeout: 60_000 });
    await page.locator("sealift-verifier .banner h2", { hasText: "for other devices" }).waitFor();
    assert.deepEqual(faults, []);
  } finally {
    await browser.close();
  }
}

for (const [name, build] of Object.entries(bundlers)) {
  test(`a page built by ${name}`, async () => {
    const { folder, remove } = project({ "os.sealift": bytes });
    let server;
    try {
      const dist = await build(folder);
      const files = filesOf(dist);
      // These find the module that looks into images by themselves; others are told where it is.
      const modules = ["vite", "webpack"].includes(name) ? 2 : 1;
      assert.equal(files.filter((file) => file.endsWith(".wasm")).length, modules, files.join());
      // The page, its worker, and where a bundler divides them so a part that both have.
      const scripts = files.filter((file) => file.endsWith(".js"));
      assert(scripts.length >= 2 && scripts.length <= 3, scripts.join());
      assert(scripts.filter((file) => /worker/.test(file)).length <= 1, scripts.join());
      server = await site({}, dist);
      await look(server.origin, join(folder, "os.sealift"));
    } finally {
      await server?.close();
      remove();
    }
  });
}

test("a page in Vite's own server", async () => {
  const { folder, remove } = project({ "os.sealift": bytes });
  const server = await viteServer(folder);
  try {
    await look(server.url, join(folder, "os.sealift"));
  } finally {
    await server.close();
    remove();
  }
});

test("a page built without the parts fails when it starts, with the sentence that mends it", async () => {
  const { folder, remove } = project({});
  const browser = await launch();
  let server;
  try {
    const dist = await alone(folder);
    server = await site({}, dist);
    const page = await browser.newPage();
    await page.goto(server.origin);
    await page.waitForFunction(() => window.heard);
    const [code, worker] = await page.evaluate(() => window.heard);
    assert.match(code, /sealift_wasm_bg\.wasm cannot be loaded: the server answers 404; the option wasmUrl or the attribute wasm-url sets its address$/);
    assert.match(worker, /^a worker of .*worker\.js failed: .*; the option workerUrl or the attribute worker-url sets its address$/);
  } finally {
    await server?.close();
    await browser.close();
    remove();
  }
});

test("a build that lacks the parts says where to put them", async () => {
  const { folder, remove } = project({ "os.sealift": bytes });
  const browser = await launch();
  let server;
  try {
    const dist = await bundlers.esbuild(folder);
    server = await site({}, dist);
    const page = await browser.newPage();
    writeFileSync(join(dist, "index.html"), "<!doctype html><title>x</title>");
    await page.goto(server.origin);
    for (const [option, message] of [["wasmUrl", /none cannot be loaded: the server answers 404; the option wasmUrl or the attribute wasm-url sets its address/], ["workerUrl", /a worker of .*none failed: .*the option workerUrl or the attribute worker-url sets/]]) {
      const said = await page.evaluate(async (option) => {
        const { verify } = await import("/sealift/src/index.js");
        return verify(new Blob(["x"]), { [option]: "/none" }).then(() => "nothing", (error) => `${error.name} ${error.code}: ${error.message}`);
      }, option);
      assert.match(said, /^Error undefined: /);
      assert.match(said, message);
    }
  } finally {
    await server?.close();
    await browser.close();
    remove();
  }
});
