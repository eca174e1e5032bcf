// The tarball that `cargo xtask web` makes, in a project that has nothing else. Run by: node --test wasm/tests/tarball.test.mjs

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { packed, target } from "./bundle.mjs";

const PROGRAM = `
import { openAsBlob } from "node:fs";
import { verify } from "sealift";
const { head, summary } = await verify(await openAsBlob(process.argv[2]), { allowedSigners: process.argv[3], compatible: ["board"], deep: true });
console.log(head.name, head.version, summary.entries);
`;

test("it is installed and used", () => {
  const folder = mkdtempSync(join(tmpdir(), "sealift-tarball-"));
  try {
    const { bytes, key } = packed();
    writeFileSync(join(folder, "package.json"), '{ "private": true, "type": "module" }');
    writeFileSync(join(folder, "program.js"), PROGRAM);
    writeFileSync(join(folder, "os.sealift"), bytes);
    const run = (program, ...args) => execFileSync(program, args, { cwd: folder, encoding: "utf8" });
    run("npm", "install", "--silent", "--offline", "--no-audit", "--no-fund", join(target, "web/sealift-0.0.0.tgz"));
    for (const file of ["README.md", "LICENSE-MIT", "LICENSE-APACHE", "types.d.ts", "element.d.ts", "src/element.js"]) {
      assert(existsSync(join(folder, "node_modules/sealift", file)), file);
    }
    assert.equal(run(process.execPath, "program.js", "os.sealift", `os namespaces="sealift" ${key}`), "os 7 5\n");
  } finally {
    rmSync(folder, { recursive: true });
  }
});
