// The page that each bundler makes of the same small app, in `dist` beside it.

import { copyFileSync, readdirSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

import { nodeResolve } from "@rollup/plugin-node-resolve";
import * as esbuild from "esbuild";
import { rollup } from "rollup";
import * as vite from "vite";
import webpack from "webpack";

const markup = (script) => `<!doctype html><title>portal</title><script type="module" src="${script}"></script>
<p id="said"></p><input type="file">`;

/** What a program says that knows where the package's parts lie, or whose bundler does. */
const app = (places, before = "") => `${before}
import { verify } from "sealift";
import "sealift/element";
const places = ${places};
const element = document.createElement("sealift-verifier");
element.setAttribute("trust-src", "/signers");
if (places.wasmUrl) element.setAttribute("wasm-url", places.wasmUrl);
if (places.workerUrl) element.setAttribute("worker-url", places.workerUrl);
document.body.append(element);
document.querySelector("input").onchange = async ({ target: { files: [file] } }) => {
  const allowedSigners = await (await fetch("/signers")).text();
  const { head, summary } = await verify(file, { allowedSigners, compatible: ["board"], deep: true, jobs: 2, ...places });
  document.querySelector("#said").textContent = [head.name, head.version, summary.entries].join(" ");
  element.check(file);
};
`;

const found = (folder, name) => createRequire(join(folder, "page.js")).resolve(name);
const write = (folder, name, text) => writeFileSync(join(folder, name), text);

/** Each takes a folder with the package installed, and resolves to the folder to serve. */
export const bundlers = {
  async vite(folder) {
    write(folder, "index.html", markup("/page.js"));
    write(folder, "page.js", app("{}"));
    await vite.build({ root: folder, configFile: false, logLevel: "warn" });
    return join(folder, "dist");
  },

  async webpack(folder) {
    write(folder, "page.js", app("{}"));
    const output = { path: join(folder, "dist"), filename: "page.js" };
    const compiler = webpack({ mode: "production", context: folder, entry: "./page.js", output, performance: { hints: false } });
    const stats = await new Promise((resolve, reject) => compiler.run((error, stats) => (error ? reject(error) : resolve(stats))));
    if (stats.hasErrors() || stats.hasWarnings()) throw new Error(stats.toString());
    write(join(folder, "dist"), "index.html", markup("/page.js"));
    return join(folder, "dist");
  },

  async esbuild(folder) {
    const places = '{ wasmUrl, workerUrl: new URL("./worker.js", import.meta.url).href }';
    write(folder, "page.js", app(places, 'import wasmUrl from "sealift/sealift_wasm_bg.wasm";'));
    const { warnings } = await esbuild.build({
      absWorkingDir: folder, entryPoints: { page: "page.js", worker: "sealift/worker" }, outdir: "dist",
      bundle: true, minify: true, format: "esm", loader: { ".wasm": "file" }, logLevel: "silent",
    });
    if (warnings.length > 0) throw new Error(JSON.stringify(warnings));
    write(join(folder, "dist"), "index.html", markup("/page.js"));
    return join(folder, "dist");
  },

  async rollup(folder) {
    const places = '{ wasmUrl: new URL("./sealift_wasm_bg.wasm", import.meta.url).href, workerUrl: new URL("./worker.js", import.meta.url).href }';
    write(folder, "page.js", app(places));
    const refuse = (warning) => { throw new Error(warning.message); };
    const input = { page: join(folder, "page.js"), worker: found(folder, "sealift/worker") };
    const build = await rollup({ input, plugins: [nodeResolve()], onwarn: refuse });
    await build.write({ dir: join(folder, "dist"), format: "es", entryFileNames: "[name].js" });
    await build.close();
    copyFileSync(found(folder, "sealift/sealift_wasm_bg.wasm"), join(folder, "dist/sealift_wasm_bg.wasm"));
    write(join(folder, "dist"), "index.html", markup("/page.js"));
    return join(folder, "dist");
  },
};

/** A page made by esbuild that says what `ready` finds, of which neither the code nor the worker was built; then of which the code lies elsewhere. */
export async function alone(folder) {
  write(folder, "page.js", `
import wasmUrl from "sealift/sealift_wasm_bg.wasm";
import { ready } from "sealift";
const said = (places) => ready(places).then(() => "it is ready", ({ message }) => message);
window.heard = [await said({}), await said({ wasmUrl })];
`);
  await esbuild.build({ absWorkingDir: folder, entryPoints: ["page.js"], outdir: "dist", bundle: true, format: "esm", loader: { ".wasm": "file" }, logLevel: "silent" });
  write(join(folder, "dist"), "index.html", markup("/page.js"));
  return join(folder, "dist");
}

/** All files below a folder, by their names. */
export const filesOf = (folder) => readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile()).map(({ name }) => name);

/** Vite's own server, for development. */
export async function viteServer(folder) {
  write(folder, "index.html", markup("/page.js"));
  write(folder, "page.js", app("{}"));
  const server = await vite.createServer({ root: folder, configFile: false, logLevel: "warn", server: { port: 0, host: "127.0.0.1" } });
  await server.listen();
  return { url: server.resolvedUrls.local[0], close: () => server.close() };
}
