// The dm-verity root hashes of disk images: those that veritysetup and sealift print. Run by: node --test wasm/tests/dm-verity.test.mjs

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { copyFileSync, mkdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { openBundle } from "../npm/src/index.js";
import { dmVerity } from "../npm/src/page/dm-verity.js";
import { sealift } from "./bundle.mjs";
import { setup } from "./setup.mjs";

const { bundles, people } = await setup();
const { folder, signers } = bundles;
const at = (name) => join(folder, name);
const run = (program, ...args) => execFileSync(program, args, { encoding: "utf8", cwd: folder, stdio: ["ignore", "pipe", "pipe"] });

const TOOLS = ["mksquashfs", "mkfs.erofs", "mkfs.ext4", "veritysetup"];
const isMissing = (program) => {
  try {
    return !run("sh", "-c", `command -v ${program}`);
  } catch {
    return true;
  }
};
const missing = TOOLS.filter(isMissing);
const skip = missing.length > 0 && `needs ${missing.join(", ")}`;

mkdirSync(at("content"));
writeFileSync(at("content/large"), randomBytes(5 << 20));

/** Makes a hash tree, and returns the root hash. */
function format(data, tree, ...options) {
  const printed = run("veritysetup", "format", at(`images/${data}`), at(`images/${tree}`), "--salt=00ff", ...options);
  return /^Root hash:\s*(\w+)$/m.exec(printed)[1];
}

/** Makes images with their trees, and packs them. Returns the root hash of each. */
function packed() {
  rmSync(at("images"), { recursive: true, force: true });
  mkdirSync(at("images"));
  writeFileSync(at("images/text"), "x".repeat(10_000));
  run("mksquashfs", at("content"), at("images/a.squashfs"), "-quiet", "-no-progress");
  run("mkfs.erofs", at("images/b.erofs"), at("content"));
  run("mkfs.ext4", "-q", "-F", "-d", at("content"), at("images/c.ext4"), "8M");
  for (const name of ["d.raw", "e.img", "plain.img"]) copyFileSync(at("images/a.squashfs"), at(`images/${name}`));
  const append = (name, ...options) => format(name, name, `--hash-offset=${statSync(at(`images/${name}`)).size}`, ...options);
  const hashes = {
    "a.squashfs": append("a.squashfs"),
    "b.erofs": append("b.erofs", "--hash=sha512", "--data-block-size=512", "--hash-block-size=1024"),
    "c.ext4": append("c.ext4", "--format=0"),
    "d.raw": format("d.raw", "d.verity"),
    "e.img": format("e.img", "e.img.hash", "--data-blocks=1"),
  };
  run(sealift, "pack", at("images"), "-o", at("images.sealift"), "--name", "os", "--bundle-version", "9", "--key", at("release"), "--force");
  return hashes;
}

async function found(name) {
  const bundle = await openBundle(at("images.sealift"), { allowedSigners: signers });
  const [{ directory }] = await bundle.refs();
  const entry = (await bundle.children(directory)).find((entry) => entry.path === name);
  try {
    return await dmVerity(bundle, entry);
  } finally {
    bundle.close();
  }
}

test("of images with any file system, with a tree behind or beside", { skip }, async () => {
  const hashes = packed();
  const said = JSON.parse(run(sealift, "info", "--dm-verity", at("images.sealift"), "--json")).dm_verity;
  assert.deepEqual(Object.fromEntries(said.map(({ path, root_hash: hash }) => [path, hash])), hashes);
  for (const [name, rootHash] of Object.entries(hashes)) {
    assert.deepEqual(await found(name), { algorithm: name === "b.erofs" ? "sha512" : "sha256", rootHash }, name);
  }
  assert.equal(await found("text"), undefined);
  assert.equal(await found("plain.img"), undefined);
});

test("any range of a file in several pieces", { skip }, async () => {
  packed();
  const bundle = await openBundle(at("images.sealift"), { allowedSigners: signers });
  const content = readFileSync(at("images/a.squashfs"));
  for (const [offset, length] of [[0, 0], [0, 9], [2_097_151, 2], [2_097_152, 2_097_152], [5, 4_194_305], [content.length - 3, 9], [content.length, 9], [content.length + 9, 1]]) {
    assert.deepEqual(Buffer.from(await bundle.read("a.squashfs", offset, length)), content.subarray(offset, offset + length), `${offset} ${length}`);
  }
  bundle.close();
});

test("a superblock that cannot be used is a note, in the words of sealift", { skip }, async () => {
  packed();
  const image = readFileSync(at("images/a.squashfs"));
  const superblock = image.indexOf("verity\0\0");
  for (const [place, bytes] of [[8, [2]], [12, [9]], [32, Buffer.from("whirlpool\0")], [64, [0, 0, 0, 0]], [68, [255, 255, 255, 255]], [72, [0, 0, 0, 0, 0, 0, 0, 128]], [72, [0, 0, 0, 0, 0, 0, 0, 0]], [80, [255, 255]]]) {
    const changed = Buffer.from(image);
    changed.set(bytes, superblock + place);
    writeFileSync(at("images/a.squashfs"), changed);
    run(sealift, "pack", at("images"), "-o", at("images.sealift"), "--name", "os", "--bundle-version", "9", "--key", at("release"), "--force");
    const said = JSON.parse(run(sealift, "info", "--dm-verity", at("images.sealift"), "--json")).dm_verity.find(({ path }) => path === "a.squashfs");
    const { fault } = await found("a.squashfs");
    assert(fault && fault.replace(/9223372036854776000/, "9223372036854775808") === said.fault, `${fault}: ${said.fault}`);
  }
  writeFileSync(at("images/a.squashfs"), image);
  truncateSync(at("images/a.squashfs"), superblock + 4096);
  run(sealift, "pack", at("images"), "-o", at("images.sealift"), "--name", "os", "--bundle-version", "9", "--key", at("release"), "--force");
  assert.deepEqual(await found("a.squashfs"), { fault: "its hash tree is cut" });
});

test("the page shows it beside the file", { skip }, async () => {
  const hashes = packed();
  const { page, choose, verdict, leave } = await people.visit({ signers });
  await choose(at("images.sealift"));
  await verdict("Safe to install");
  for (const name of ["a.squashfs", "b.erofs", "d.raw"]) {
    await page.getByRole("treeitem", { name }).click();
    await page.locator(".preview .key", { hasText: hashes[name] }).waitFor();
  }
  await page.getByText("By the top block of the hash tree. sealift verify --deep compares every block.").waitFor();
  await page.getByRole("treeitem", { name: "text" }).click();
  await page.locator(".preview pre.text").waitFor();
  assert.equal(await page.locator(".preview .key").count(), 0);
  await leave();
});
