// Bundles in the states in which an administrator meets them, as files.

import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { sealift } from "./bundle.mjs";

/** Names that would do something on a page or a terminal that takes them for more than text. */
export const HOSTILE_NAMES = [
  "<img src=x onerror=alert(1)>", "</script><script>alert(1)</script>", "invoice\u202efdp.exe", "red\u001b[31m", "line\nbreak", "&lt;b&gt;", "${1+1}", "'\"`",
];

/** Makes the bundles, with keys; `entries` files are in the one called `many`. */
export function shelf({ entries = 0 } = {}) {
  const folder = mkdtempSync(join(tmpdir(), "sealift-shelf-"));
  const at = (name) => join(folder, name);
  const runIn = (env, ...args) => execFileSync(sealift, args, { stdio: ["ignore", "ignore", "pipe"], env: { ...process.env, ...env } });
  const run = (...args) => runIn({}, ...args);
  for (const key of ["release", "stranger"]) run("key", "generate", "-o", at(key), "--comment", `${key}@example.org`);
  const key = (name) => readFileSync(at(`${name}.pub`), "utf8").trim();
  const signed = ["--key", at("release")];
  const packIn = (env, tree, name, version, ...more) => (
    runIn(env, "pack", at(tree), "-o", at(`${name}.sealift`), "--name", "os", "--bundle-version", String(version), "--owner", "0:0", ...more), at(`${name}.sealift`)
  );
  const pack = (...args) => packIn({}, ...args);

  tree(at("old"), 6);
  tree(at("new"), 7);
  writeFileSync(join(at("new"), "usr/bin/added"), "#!/bin/sh\necho new\n");
  rmSync(join(at("new"), "usr/bin/gone"));
  mkdirSync(at("hostile"));
  for (const name of HOSTILE_NAMES) writeFileSync(join(at("hostile"), name.replaceAll("/", "\u2044")), `I am ${name}\n\u202e\u001b[2J`);

  const files = {
    good: pack("new", "good", 7, ...signed, "--annotate", "notes=Fixes the clock"),
    older: pack("old", "older", 6, ...signed),
    unsigned: pack("new", "unsigned", 7),
    untrusted: pack("new", "untrusted", 8, "--key", at("stranger")),
    // Packed in 2019, when that was to come.
    expired: packIn({ SOURCE_DATE_EPOCH: "1546300800" }, "new", "expired", 7, ...signed, "--expires", "2020-01-01"),
    incompatible: pack("new", "incompatible", 7, ...signed, "--compatible", "board-x"),
    hostile: pack("hostile", "hostile", 7, ...signed, "--annotate", "by=<b>\u202eme</b>"),
  };
  files.delta = pack("new", "delta", 7, ...signed, "--base", files.older, "--allow-unsigned");
  const bytes = readFileSync(files.good);
  const flipped = Buffer.from(bytes);
  flipped[bytes.length - 100] ^= 1;
  const head = Buffer.from(bytes);
  head[200] ^= 1;
  for (const [name, content] of [["flipped", flipped], ["head", head], ["truncated", bytes.subarray(0, bytes.length - 1000)], ["trailing", Buffer.concat([bytes, bytes])], ["other", Buffer.from("%PDF-1.7 and so on\n".repeat(100))]]) {
    files[name] = at(`${name}.sealift`);
    writeFileSync(files[name], content);
  }
  if (entries > 0) {
    for (let number = 0; number < entries; number += 1) {
      const inside = join(at("many"), `folder-${String(number % 100).padStart(2, "0")}`);
      if (number < 100) mkdirSync(inside, { recursive: true });
      writeFileSync(join(inside, `file-${number}`), "");
    }
    files.many = pack("many", "many", 7, ...signed);
  }
  return { folder, files, signers: `os namespaces="sealift" ${key("release")}`, stranger: key("stranger"), remove: () => rmSync(folder, { recursive: true }) };
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
