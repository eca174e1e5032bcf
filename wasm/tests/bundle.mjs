// Bundles and the loop that feeds them to a verifier, for the tests in this folder.

import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));
const sealift = join(resolve(root, process.env.CARGO_TARGET_DIR ?? "target"), "debug/sealift");

/** A small signed bundle, and the public half of its key. */
export function packed() {
  const desk = mkdtempSync(join(tmpdir(), "sealift-wasm-"));
  try {
    const [tree, key, file] = ["tree", "key", "os.sealift"].map((name) => join(desk, name));
    mkdirSync(join(tree, "folder"), { recursive: true });
    writeFileSync(join(tree, "empty"), "");
    writeFileSync(join(tree, "text"), "some text ".repeat(1000));
    writeFileSync(join(tree, "folder/large"), randomBytes(20_000));
    writeFileSync(join(tree, "folder/hole"), "");
    truncateSync(join(tree, "folder/hole"), 300_000);
    execFileSync(sealift, ["key", "generate", "-o", key]);
    const identity = ["--name", "os", "--bundle-version", "7", "--compatible", "board", "--expires", "2100-01-01"];
    execFileSync(sealift, ["pack", tree, "-o", file, "--key", key, "--chunk-size", "4096", ...identity]);
    return { bytes: readFileSync(file), key: readFileSync(`${key}.pub`, "utf8").trim() };
  } finally {
    rmSync(desk, { recursive: true });
  }
}

/** The vectors of the specification: what stands in their headers, by key, and the input's bytes. */
export function vectors() {
  const folder = join(root, "spec/vectors");
  return readdirSync(folder).filter((name) => name.endsWith(".vec")).map((name) => {
    const file = readFileSync(join(folder, name));
    const end = file.indexOf("\n\n");
    const keys = {};
    for (const line of file.subarray(0, end).toString().split("\n")) {
      const [key, value] = [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 1).trim()];
      (keys[key] ??= []).push(value);
    }
    return { name, keys, bytes: file.subarray(end + 2) };
  });
}

/**
 * Supplies a file, `size` bytes at a time at most, and finishes. `judge` sees the verifier as soon as there is a head.
 */
export function feed(verifier, bytes, { size = Infinity, judge } = {}) {
  let unjudged = judge;
  for (let step = verifier.next(); !step.done; step = verifier.next()) {
    const [offset, length] = step.need;
    const part = bytes.subarray(offset, offset + Math.min(length, size));
    if (part.length === 0) break; // a stream that has ended
    verifier.supply(offset, part);
    if (unjudged && verifier.head()) {
      unjudged(verifier);
      unjudged = undefined;
    }
  }
  return verifier.finish();
}
