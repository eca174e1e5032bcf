// The example of a portal: a form that is sent when the bundle is safe, and a server that verifies again. Run by: node --test wasm/tests/upload.test.mjs

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, openAsBlob, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

import { sealift } from "./bundle.mjs";
import { shelf } from "./shelf.mjs";
import { visitors } from "./visitors.mjs";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
let [bundles, desk, server, people, page, leave] = [];
const kept = () => readdirSync(join(desk, "kept"));

before(async () => {
  bundles = shelf();
  desk = mkdtempSync(join(tmpdir(), "sealift-upload-"));
  cpSync(here("../examples/upload"), desk, { recursive: true });
  mkdirSync(join(desk, "node_modules"));
  symlinkSync(here("../npm"), join(desk, "node_modules/sealift"));
  mkdirSync(join(desk, "kept"));
  writeFileSync(join(desk, "signers"), bundles.signers);
  server = spawn(process.execPath, ["server.mjs", "signers", "kept", "0"], { cwd: desk, stdio: ["ignore", "pipe", "inherit"] });
  const origin = await new Promise((resolve, reject) => {
    server.stdout.once("data", (line) => resolve(new URL(String(line).trim()).origin));
    server.once("exit", (code) => reject(new Error(`the server ended with ${code}`)));
  });
  server.origin = origin;
  people = visitors({ origin });
  ({ page, leave } = await people.visit());
});
after(async () => {
  await people?.close();
  server?.kill();
  bundles?.remove();
  rmSync(desk, { recursive: true, force: true });
});

test("nothing, damaged, unknown and old bundles do not leave the browser", async () => {
  const posts = [];
  page.on("request", (request) => request.method() === "POST" && posts.push(request.url()));
  const send = () => page.getByRole("button", { name: "Upload" }).click();
  await send();
  for (const [name, words] of [["flipped", "it is damaged"], ["untrusted", "unknown signer"], ["unsigned", "nobody signed it"], ["expired", "it has expired"], ["other", "Not a Sealift bundle"]]) {
    await page.locator("#file").setInputFiles(bundles.files[name]);
    await page.locator(".banner h2", { hasText: words }).waitFor();
    await page.waitForFunction(() => document.querySelector("sealift-verifier").finding.state === "refused");
    await send();
    assert.match(await page.locator("sealift-verifier").evaluate(({ validationMessage }) => validationMessage), new RegExp(words));
  }
  assert.deepEqual([posts, kept()], [[], []]);
});

test("a good bundle is sent and kept, by its signed name", async () => {
  await page.locator("#file").setInputFiles(bundles.files.good);
  await page.locator(".banner h2", { hasText: "Safe to install: os, version 7" }).waitFor();
  // The verdict does not wait for the file's SHA-256, the form does.
  await page.waitForFunction(() => document.querySelector("form").checkValidity());
  await page.getByRole("button", { name: "Upload" }).click();
  await page.getByText("os version 7 is kept.").waitFor();
  assert.deepEqual(kept(), ["os-7.sealift"]);
  assert(readFileSync(join(desk, "kept/os-7.sealift")).equals(readFileSync(bundles.files.good)));
  await leave(/favicon|404/);
});

test("who goes around the element meets the server", async () => {
  rmSync(join(desk, "kept/os-7.sealift"));
  const post = async (body, headers) => {
    const response = await fetch(`${server.origin}/upload`, { method: "POST", body, headers });
    return [response.status, await response.text()];
  };
  const form = async (name, as = "bundle") => {
    const data = new FormData();
    data.set(as, new File([await openAsBlob(bundles.files[name])], "../../good.sealift"));
    return data;
  };
  for (const [name, code] of [["flipped", "chunk"], ["untrusted", "untrusted"], ["unsigned", "untrusted"], ["expired", "expired"], ["other", "header"], ["trailing", "trailing"]]) {
    const [status, text] = await post(await form(name));
    assert.deepEqual([status, text.startsWith(`Refused (${code}): `)], [422, true], `${name}: ${text}`);
  }
  assert.equal((await post(await form("good", "another")))[0], 400);
  assert.equal((await post("no form"))[0], 400);
  assert.equal((await post("x", { "Content-Type": "multipart/form-data; boundary=x" }))[0], 400);
  assert.deepEqual(kept(), []);
  assert.equal((await post(await form("good")))[0], 201);
  assert.deepEqual(kept(), ["os-7.sealift"]);
  const [status, text] = await post(await form("older"));
  assert.deepEqual([status, text], [422, "Refused (downgrade): version 7 of os is kept already.\n"]);
  assert.deepEqual(kept(), ["os-7.sealift"]);
});

test("a bundle in volumes is kept as them, and one of them alone is not", async () => {
  execFileSync(sealift, ["split", bundles.files.good, "--size", "2100KiB", "-o", join(desk, "parts")], { stdio: "pipe" });
  const files = readdirSync(join(desk, "parts")).sort().map((name) => join(desk, "parts", name));
  const visitor = await people.visit();
  await visitor.page.locator("#file").setInputFiles(files);
  await visitor.page.locator(".banner h2", { hasText: "Safe to install: os, version 7" }).waitFor();
  await visitor.page.waitForFunction(() => document.querySelector("form").checkValidity());
  await visitor.page.getByRole("button", { name: "Upload" }).click();
  await visitor.page.getByText("os version 7 is kept.").waitFor();
  await visitor.leave(/favicon|404/);
  const kept = join(desk, "kept/os-7.volumes");
  assert.deepEqual(readdirSync(kept).sort().map((name) => readFileSync(join(kept, name)).toString("hex")), files.map((file) => readFileSync(file).toString("hex")));
  execFileSync(sealift, ["verify", kept, "--trust", join(desk, "signers"), "--state", join(desk, "state")], { stdio: "pipe" });
  const data = new FormData();
  data.set("bundle", new File([await openAsBlob(files[1])], "os.sealift"));
  const response = await fetch(`${server.origin}/upload`, { method: "POST", body: data });
  assert.deepEqual([response.status, (await response.text()).slice(0, 18)], [422, "Refused (header): "]);
  rmSync(kept, { recursive: true });
});

test("no request ends the server", async () => {
  const get = (path) => new Promise((resolve, reject) => request(server.origin, { path }, (response) => (response.resume(), resolve(response.statusCode))).on("error", reject).end());
  for (const path of ["//", "/sealift", "/sealift/", "/sealift/src", "/sealift/src/", "/sealift/../signers", "/sealift/%2e%2e/signers", "/sealift/..%2fsigners", "/none", "/upload", "*", "http://["]) assert.equal(await get(path), 404, path);
  assert.equal(await get("/sealift/src/element.js"), 200);
});
