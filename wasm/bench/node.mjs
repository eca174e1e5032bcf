// The package in Node: seconds to check a file as a stream, and as a Blob of openAsBlob, in a process of its own as programs have it.
// Run by wasm/bench/page.mjs: node wasm/bench/node.mjs BUNDLE ALLOWED_SIGNERS. Prints JSON.

import { createReadStream, openAsBlob, readFileSync } from "node:fs";

import { verify } from "../npm/src/index.js";

const [bundle, signers] = process.argv.slice(2);
const allowedSigners = readFileSync(signers, "utf8");
const found = {};
for (const [name, source] of [["nodeStream", () => createReadStream(bundle)], ["nodeBlob", () => openAsBlob(bundle)]]) {
  const start = performance.now();
  await verify(await source(), { allowedSigners });
  found[name] = (performance.now() - start) / 1000;
}
console.log(JSON.stringify(found));
