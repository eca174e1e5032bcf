// A project that has nothing but the tarball that `cargo xtask web` makes.

import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { target } from "./bundle.mjs";

/** Installs the tarball beside these files, contents by name. */
export function project(files) {
  const folder = mkdtempSync(join(tmpdir(), "sealift-project-"));
  const run = (program, ...args) => execFileSync(program, args, { cwd: folder, encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] });
  writeFileSync(join(folder, "package.json"), '{ "private": true, "type": "module" }');
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content);
  run("npm", "install", "--silent", "--offline", "--no-audit", "--no-fund", join(target, "web/sealift-0.0.0.tgz"));
  return { folder, run, remove: () => rmSync(folder, { recursive: true }) };
}
