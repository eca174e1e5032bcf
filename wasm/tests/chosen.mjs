// What tests of deltas and recipes share: a folder with a key, a site that serves it, and people who choose its bundles.

import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { sealift } from "./bundle.mjs";
import { site } from "./site.mjs";
import { visitors } from "./visitors.mjs";

/**
 * Makes them in `before`, and is closed in `after`.
 * @param {(desk: { folder: string, signers: string, at: Function, run: Function, key: string[] }) => void} fill Writes the bundles into the folder.
 */
export async function desk(fill) {
  const folder = mkdtempSync(join(tmpdir(), "sealift-chosen-"));
  const at = (name) => join(folder, `${name}.sealift`);
  const run = (...args) => execFileSync(sealift, args, { stdio: ["ignore", "pipe", "pipe"], maxBuffer: 1 << 28 });
  const key = ["--key", join(folder, "release")];
  run("key", "generate", "-o", join(folder, "release"));
  const signers = `* namespaces="sealift" ${readFileSync(join(folder, "release.pub"), "utf8").trim()}`;
  const made = { folder, signers, at, run, key };
  fill(made);
  const server = await site({ bundles: folder });
  const people = visitors(server);
  /** A page at which this bundle was chosen. */
  const chosen = async (name) => {
    const visitor = await people.visit({ signers });
    await visitor.choose(at(name));
    await visitor.verdict("Safe to install");
    const banner = (text) => visitor.page.locator(".view:not([hidden]) .banner", { hasText: text }).waitFor({ timeout: 60_000 });
    return { ...visitor, banner };
  };
  const close = async () => {
    await people.close();
    await server.close();
    rmSync(folder, { recursive: true });
  };
  return { ...made, chosen, close };
}
