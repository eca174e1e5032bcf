// Each block of the package's README, run as it stands. Run by: node --test wasm/tests/readme.test.mjs

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

import { launch } from "./browser.mjs";
import { target } from "./bundle.mjs";
import { shelf } from "./shelf.mjs";
import { site } from "./site.mjs";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const readme = readFileSync(here("../npm/README.md"), "utf8");
const blocks = [...readme.matchAll(/^```(\w*)\n(.*?)^```$/gms)].map(([, language, text]) => ({ language, text }));
const of = (language) => blocks.filter((block) => block.language === language).map(({ text }) => text);

let [bundles, folder] = [];
const sh = (text) => execFileSync("sh", ["-eu", "-c", text], {
  cwd: folder, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"],
  env: { ...process.env, npm_config_offline: "true", PATH: here("../node_modules/.bin") + delimiter + process.env.PATH },
});

before(() => {
  bundles = shelf();
  ({ folder } = bundles);
  const run = (program, ...args) => execFileSync(program, args, { cwd: folder });
  run("cp", join(target, "web/sealift-0.0.0.tgz"), ".");
  run("cp", bundles.files.good, "os.sealift");
  writeFileSync(join(folder, "allowed_signers"), `${bundles.signers}\n`);
  writeFileSync(join(folder, "package.json"), '{ "private": true, "type": "module" }');
  sh(of("sh")[0]);
});
after(() => bundles?.remove());

test("all kinds of blocks are known", () => {
  assert.deepEqual([...new Set(blocks.map(({ language }) => language))].sort(), ["html", "http", "js", "sh", "tsx"]);
  assert.deepEqual(["sh", "html", "tsx", "http", "js"].map((language) => of(language).length), [2, 2, 1, 1, 3]);
  // It begins with how to install it, the element, a gate in a form, and the headers.
  assert.deepEqual(blocks.slice(0, 5).map(({ language }) => language), ["sh", "html", "html", "tsx", "http"]);
  assert(existsSync(join(folder, "node_modules/sealift/src/index.js")));
});

test("the programs", () => {
  const [checks, looks] = of("js");
  const [, publicKey] = bundles.signers.split('"sealift" ');
  for (const [signers, expected] of [[publicKey, /^os version 7 is sound/], ["ssh-ed25519 AAAA...", /^trust-file /]]) {
    writeFileSync(join(folder, "program.js"), checks.replace("ssh-ed25519 AAAA...", signers));
    assert.match(sh("node program.js"), expected);
  }
  writeFileSync(join(folder, "program.js"), looks);
  const said = sh("node program.js");
  assert.match(said, /trusted: true/);
  assert.match(said, /\netc\/os-release|etc\/os-release ID=example\nVERSION_ID=7\n/);
  assert.match(said, /\n1\n$/);
});

test("the element, under the policy", async () => {
  const [html] = of("html");
  const headers = Object.fromEntries(of("http")[0].trim().split("\n").map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 1).trim()]));
  const server = await site({
    node_modules: join(folder, "node_modules"), updates: folder,
    allowed_signers: (request, response) => response.writeHead(200).end(bundles.signers),
    "favicon.ico": (request, response) => response.writeHead(204).end(),
    "page.html": (request, response) => response.writeHead(200, { "Content-Type": "text/html", ...headers }).end(`<!doctype html><title>x</title>${html}`),
  });
  const browser = await launch();
  try {
    const page = await browser.newPage();
    const faults = [];
    page.on("pageerror", (error) => faults.push(String(error)));
    page.on("console", (message) => message.type() === "error" && faults.push(message.text()));
    await page.goto(`${server.origin}/page.html`);
    await page.locator("sealift-verifier .banner.good").waitFor({ timeout: 60_000 });
    assert.deepEqual(faults, []);
  } finally {
    await browser.close();
    await server.close();
  }
});

for (const [name, make] of Object.entries({
  "plain HTML": () => ({ body: of("html")[1], scripts: {} }),
  React: () => {
    writeFileSync(join(folder, "upload.tsx"), of("tsx")[0]);
    writeFileSync(join(folder, "main.tsx"), 'import { createRoot } from "react-dom/client";\nimport { Upload } from "./upload";\ncreateRoot(document.querySelector("main")!).render(<Upload />);\n');
    for (const part of ["react", "react-dom", "scheduler", "@types", "csstype"]) if (!existsSync(join(folder, "node_modules", part))) symlinkSync(here(`../node_modules/${part}`), join(folder, "node_modules", part));
    sh("tsc --noEmit --strict --jsx react-jsx --module esnext --moduleResolution bundler --target es2022 --lib esnext,dom,dom.iterable --types react main.tsx");
    sh("esbuild main.tsx --bundle --format=esm --jsx=automatic --external:sealift/element --outfile=main.js");
    const script = readFileSync(join(folder, "main.js"), "utf8").replaceAll('"sealift/element"', '"/node_modules/sealift/src/element.js"');
    return { body: '<main></main><script type="module" src="/main.js"></script>', scripts: { "main.js": script } };
  },
})) {
  test(`a gate in ${name}`, async () => {
    const { body, scripts } = make();
    const answer = (type, text) => (request, response) => response.writeHead(200, { "Content-Type": type }).end(text);
    const posts = [];
    const server = await site({
      node_modules: join(folder, "node_modules"),
      allowed_signers: answer("text/plain", bundles.signers), revoked: answer("text/plain", "# none\n"), "floors.json": answer("application/json", "{}"),
      "favicon.ico": (request, response) => response.writeHead(204).end(),
      "page.html": answer("text/html", `<!doctype html><html lang="en"><title>x</title>${body}`),
      ...Object.fromEntries(Object.entries(scripts).map(([path, text]) => [path, answer("text/javascript", text)])),
      upload: async (request, response) => {
        posts.push([...(await new Response(request, { headers: request.headers, duplex: "half" }).formData()).keys()].sort());
        response.writeHead(200, { "Content-Type": "text/plain" }).end("thanks");
      },
    });
    const browser = await launch();
    try {
      const page = await browser.newPage();
      await page.goto(`${server.origin}/page.html`);
      const send = page.getByRole("button", { name: "Upload" });
      for (const [file, safe] of [["flipped", false], ["good", true]]) {
        await page.locator("sealift-verifier #file").setInputFiles(bundles.files[file]);
        await page.waitForFunction((safe) => document.querySelector("sealift-verifier").finding.state === (safe ? "safe" : "refused"), safe);
        if (safe) await page.waitForFunction(() => document.querySelector("sealift-verifier").checkValidity());
        if (await send.isEnabled()) await send.click();
        else assert.equal(safe, false);
        if (!safe) assert.deepEqual(posts, []);
      }
      await page.getByText("thanks").waitFor();
      assert.deepEqual(posts, [["bundle", "bundle.digest", "bundle.sha256", "bundle.size", "bundle.time"]]);
    } finally {
      await browser.close();
      await server.close();
    }
  });
}

test("the bundler's lines", () => {
  const page = of("js")[2];
  assert.match(page, /^\/\/ page\.js\n/);
  writeFileSync(join(folder, "page.js"), page);
  sh(of("sh")[1]);
  for (const file of ["page.js", "worker.js"]) assert(existsSync(join(folder, "dist", file)), file);
  assert.match(readFileSync(join(folder, "dist/page.js"), "utf8"), /sealift_wasm_bg-\w+\.wasm/);
});
