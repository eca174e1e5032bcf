// The package in pages that make it hard: policies, scripts of another origin, frames. Run by: node --test wasm/tests/embedding.test.mjs

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { launch } from "./browser.mjs";
import { packed } from "./bundle.mjs";
import { site } from "./site.mjs";

const { bytes, key } = packed();
const signers = `os namespaces="sealift" ${key}`;

let [browser, own, other] = [];
before(async () => {
  // A server for others: it allows its scripts to be used by any page.
  other = await site({}, undefined, { "Access-Control-Allow-Origin": "*" });
  browser = await launch();
});
after(async () => {
  await browser?.close();
  await other?.close();
});

/** What a page, or the frame in it, says of the bundle: its module comes from `from`, with these headers and these options. */
async function said({ from = "", policy, options = "", frame, faults = [] }) {
  const script = `
    const bytes = new Uint8Array(${JSON.stringify([...bytes])});
    let text;
    try {
      const { verify } = await import("${from}/sealift/src/index.js");
      await import("${from}/sealift/src/element.js");
      const { head } = await verify(new Blob([bytes]), { allowedSigners: ${JSON.stringify(signers)}, compatible: ["board"], deep: true, jobs: 2, ${options} });
      text = head.name + " " + head.version;
    } catch (error) {
      text = error.name + " " + typeof error.code + ": " + error.message;
    }
    document.querySelector("p").textContent = text;`;
  const allowed = { "Access-Control-Allow-Origin": "*" };
  const html = (body) => (request, response) => response.writeHead(200, { "Content-Type": "text/html", ...(policy ? { "Content-Security-Policy": policy } : {}) }).end(body);
  const content = '<!doctype html><title>x</title><p></p><script type="module" src="/script.js"></script>';
  own = await site({
    "inside.html": html(content),
    "page.html": html(frame ? `<!doctype html><title>x</title><iframe sandbox="${frame}" src="/inside.html"></iframe>` : content),
    "script.js": (request, response) => response.writeHead(200, { "Content-Type": "text/javascript", ...allowed }).end(script),
  }, undefined, allowed);
  const page = await browser.newPage();
  try {
    page.on("console", (message) => message.type() === "error" && !/favicon/.test(message.location().url) && faults.push(message.text()));
    await page.goto(`${own.origin}/page.html`);
    const paragraph = (frame ? page.frameLocator("iframe") : page).locator("p", { hasText: /./ });
    await paragraph.waitFor({ timeout: 60_000 });
    return await paragraph.textContent();
  } finally {
    await page.close();
    await own.close();
  }
}

const SCRIPTS = "script-src 'self' 'wasm-unsafe-eval'";

test("a strict policy, as the README has it", async () => {
  const faults = [];
  const policy = `default-src 'none'; ${SCRIPTS}; worker-src 'self'; connect-src 'self'; style-src 'self'`;
  assert.equal(await said({ policy, faults }), "os 7");
  assert.deepEqual(faults, []);
});

test("a policy that asks for Trusted Types", async () => {
  for (const allowed of ["", "; trusted-types sealift"]) {
    const faults = [];
    assert.equal(await said({ policy: `${SCRIPTS}; require-trusted-types-for 'script'${allowed}`, faults }), "os 7");
    assert.deepEqual(faults, []);
  }
  const text = await said({ policy: `${SCRIPTS}; require-trusted-types-for 'script'; trusted-types other` });
  assert.match(text, /^Error undefined: a worker of http.*worker\.js cannot be started: TypeError/);
});

test("a script of another origin", async () => {
  const faults = [];
  assert.equal(await said({ from: other.origin, faults }), "os 7");
  const policy = `script-src 'self' 'wasm-unsafe-eval' ${other.origin}; connect-src ${other.origin}; worker-src blob: ${other.origin}`;
  assert.equal(await said({ from: other.origin, policy, faults }), "os 7");
  assert.equal(await said({ from: other.origin, policy: `${policy}; require-trusted-types-for 'script'`, faults }), "os 7");
  assert.deepEqual(faults, []);
  // A policy that allows no such worker is named, and nothing is called damage.
  const refused = await said({ from: other.origin, policy: `script-src 'self' 'wasm-unsafe-eval' ${other.origin}; connect-src ${other.origin}; worker-src 'self'` });
  assert.match(refused, /^Error undefined: a worker of http.*worker\.js (failed: .*policy|cannot be started)/);
});

test("the same with a worker of the page's own", async () => {
  const policy = `script-src 'self' 'wasm-unsafe-eval' ${other.origin}; connect-src 'self'; worker-src 'self'`;
  const options = 'workerUrl: "/sealift/src/worker.js", wasmUrl: "/sealift/pkg/sealift_wasm_bg.wasm"';
  assert.equal(await said({ from: other.origin, policy, options }), "os 7");
});

test("a sandboxed frame", async () => {
  const faults = [];
  assert.equal(await said({ frame: "allow-scripts", faults }), "os 7");
  assert.equal(await said({ frame: "allow-scripts allow-same-origin" }), "os 7");
  assert.equal(await said({ frame: "allow-scripts", from: other.origin, faults }), "os 7");
  assert.deepEqual(faults, []);
});
