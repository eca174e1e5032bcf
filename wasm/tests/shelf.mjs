// Bundles in the states in which an administrator meets them, as files.

import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, renameSync, rmSync, statSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";

import { sealift, target } from "./bundle.mjs";

/** Names that would do something on a page or a terminal that takes them for more than text. */
export const HOSTILE_NAMES = [
  "<img src=x onerror=alert(1)>", "</script><script>alert(1)</script>", "invoice\u202efdp.exe", "red\u001b[31m", "line\nbreak", "&lt;b&gt;", "${1+1}", "'\"`",
];

/**
 * A folder with the bundles, the trees that they were packed from, and keys.
 * @param {{ entries?: number }} [options] `entries` files are in a bundle called `many`, which is there if there are any.
 */
export function shelf({ entries = 0 } = {}) {
  const folder = mkdtempSync(join(tmpdir(), "sealift-shelf-"));
  const at = (name) => join(folder, name);
  // Node's own copying rounds times, so that a tree would not be that of its bundle any more.
  execFileSync("cp", ["-a", `${kept()}/.`, folder]);
  const names = readdirSync(folder).filter((name) => name.endsWith(".sealift")).map((name) => basename(name, ".sealift"));
  const files = Object.fromEntries(names.map((name) => [name, at(`${name}.sealift`)]));
  if (entries > 0) {
    files.many = at("many.sealift");
    const paths = Array.from({ length: entries }, (_, number) => `folder-${String(number % 100).padStart(2, "0")}/file-${number}`);
    packFiles(paths.map((path) => [path, ""]), files.many, at("release"));
  }
  const key = (name) => readFileSync(at(`${name}.pub`), "utf8").trim();
  return { folder, files, signers: `os namespaces="sealift" ${key("release")}`, stranger: key("stranger"), remove: () => rmSync(folder, { recursive: true }) };
}

/**
 * Packs files that lie nowhere: to write many takes longer than to pack them.
 * @param {[string, string][]} files Path and content of each.
 * @param {string} bundle Where it goes.
 * @param {string} key The private key that signs it.
 */
export function packFiles(files, bundle, key) {
  const args = ["pack", "tar:-", "-o", bundle, "--name", "os", "--bundle-version", "7", "--owner", "0:0", "--key", key];
  execFileSync(sealift, args, { input: tar(files), stdio: ["pipe", "ignore", "pipe"] });
}

/** A tar archive of files, as pax(1) of POSIX has it under "ustar Interchange Format". @param {[string, string][]} files */
function tar(files) {
  const blocks = files.flatMap(([path, content]) => {
    const body = Buffer.alloc(Math.ceil(Buffer.byteLength(content) / 512) * 512);
    body.write(content);
    const header = Buffer.alloc(512);
    const octal = (value, length) => `${value.toString(8).padStart(length - 1, "0")}\0`;
    const fields = [[0, path], [100, octal(0o644, 8)], [108, octal(0, 8)], [116, octal(0, 8)], [124, octal(Buffer.byteLength(content), 12)], [136, octal(1_700_000_000, 12)],
      [148, " ".repeat(8)], [156, "0"], [257, "ustar\0" + "00"]];
    for (const [offset, text] of fields) header.write(text, offset);
    const sum = Buffer.from(fields.map(([, text]) => text).join("")).reduce((sum, byte) => sum + byte, 0);
    header.write(octal(sum, 7), 148);
    return [header, body];
  });
  return Buffer.concat([...blocks, Buffer.alloc(1024)]);
}

/** Where the bundles are that all tests take copies of: they are made once for each build of the program. */
function kept() {
  const [program, text] = [sealift, fileURLToPath(import.meta.url)].map((path) => Math.round(statSync(path).mtimeMs));
  const folder = join(target, `tmp/shelf-${program}-${text}`);
  if (existsSync(folder)) return folder;
  mkdirSync(join(target, "tmp"), { recursive: true });
  const older = readdirSync(join(target, "tmp")).filter((name) => name.startsWith("shelf-") && name !== basename(folder));
  for (const name of older) rmSync(join(target, "tmp", name), { recursive: true, force: true });
  const made = mkdtempSync(join(target, "tmp/making-shelf-"));
  fill(made);
  try {
    renameSync(made, folder);
  } catch (error) {
    // The tests of another file were faster.
    if (!existsSync(folder)) throw error;
    rmSync(made, { recursive: true });
  }
  return folder;
}

/** Makes keys, trees and bundles in a folder. */
function fill(folder) {
  const at = (name) => join(folder, name);
  const runIn = (env, ...args) => execFileSync(sealift, args, { stdio: ["ignore", "ignore", "pipe"], env: { ...process.env, ...env } });
  for (const key of ["release", "stranger"]) runIn({}, "key", "generate", "-o", at(key), "--comment", `${key}@example.org`);
  const signed = ["--key", at("release")];
  const packIn = (env, tree, name, version, ...more) => (
    runIn(env, "pack", at(tree), "-o", at(`${name}.sealift`), "--name", "os", "--bundle-version", String(version), "--owner", "0:0", ...more)
  );
  const pack = (...args) => packIn({}, ...args);

  tree(at("old"), 6);
  tree(at("new"), 7);
  writeFileSync(join(at("new"), "usr/bin/added"), "#!/bin/sh\necho new\n");
  rmSync(join(at("new"), "usr/bin/gone"));
  mkdirSync(at("hostile"));
  for (const name of HOSTILE_NAMES) writeFileSync(join(at("hostile"), name.replaceAll("/", "\u2044")), `I am ${name}\n\u202e\u001b[2J`);

  pack("new", "good", 7, ...signed, "--annotate", "notes=Fixes the clock");
  pack("old", "older", 6, ...signed);
  pack("new", "unsigned", 7);
  pack("new", "untrusted", 8, "--key", at("stranger"));
  // Packed in 2019, when that was to come.
  packIn({ SOURCE_DATE_EPOCH: "1546300800" }, "new", "expired", 7, ...signed, "--expires", "2020-01-01");
  pack("new", "incompatible", 7, ...signed, "--compatible", "board-x");
  pack("hostile", "hostile", 7, ...signed, "--annotate", "by=<b>\u202eme</b>");
  pack("new", "delta", 7, ...signed, "--base", at("older.sealift"), "--allow-unsigned");
  const bytes = readFileSync(at("good.sealift"));
  const flipped = Buffer.from(bytes);
  flipped[bytes.length - 100] ^= 1;
  const head = Buffer.from(bytes);
  head[200] ^= 1;
  const others = { flipped, head, truncated: bytes.subarray(0, bytes.length - 1000), trailing: Buffer.concat([bytes, bytes]), other: Buffer.from("%PDF-1.7 and so on\n".repeat(100)) };
  for (const [name, content] of Object.entries(others)) writeFileSync(at(`${name}.sealift`), content);
}

function tree(root, version) {
  for (const folder of ["etc", "usr/bin", "usr/lib", "usr/share/doc/hello"]) mkdirSync(join(root, folder), { recursive: true });
  writeFileSync(join(root, "etc/os-release"), `ID=example\nVERSION_ID=${version}\n`);
  writeFileSync(join(root, "usr/bin/hello"), "#!/bin/sh\necho hello\n", { mode: 0o755 });
  writeFileSync(join(root, "usr/bin/gone"), "old");
  writeFileSync(join(root, "usr/lib/libhello.so.1"), noise(3_000_000, version));
  writeFileSync(join(root, "usr/lib/libcopy.so.1"), noise(3_000_000, version));
  symlinkSync("libhello.so.1", join(root, "usr/lib/libhello.so"));
  for (let page = 0; page < 40; page += 1) {
    const file = join(root, `usr/share/doc/hello/page-${page}.txt`);
    writeFileSync(file, `Page ${page}\n`.repeat(400));
    // All at once, so that a delta sets them by one rule.
    utimesSync(file, 1_700_000_000 + version, 1_700_000_000 + version);
  }
}

/** Bytes that do not compress, the same in each run. */
function noise(length, seed) {
  const words = new Uint32Array(length / 4);
  let state = seed;
  for (let at = 0; at < words.length; at += 1) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    words[at] = state ^ (state >>> 13);
  }
  return Buffer.from(words.buffer);
}
