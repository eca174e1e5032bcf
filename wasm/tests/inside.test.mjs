// Looking into images, archives and compressed files. Run by: node --test wasm/tests/inside.test.mjs

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { linkSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { saved } from "./browser.mjs";
import { desk } from "./chosen.mjs";
import { openBundle } from "../npm/src/index.js";

const TOOLS = ["mksquashfs", "mkfs.ext4", "mkfs.erofs", "xorriso", "tar", "bsdtar", "cpio", "sfdisk", "gzip", "xz", "zstd", "bzip2", "lz4"];
const isMissing = (program) => {
  try {
    return !execFileSync("sh", ["-c", `command -v ${program}`], { encoding: "utf8" });
  } catch {
    return true;
  }
};
const missing = TOOLS.filter(isMissing);
const skip = missing.length > 0 && `needs ${missing.join(", ")}`;

/** The files of the tree that is in each image, by their paths. */
const files = {
  "etc/os-release": Buffer.from("ID=example\nVERSION_ID=7\n"),
  "etc/motd": Buffer.from("a line that is there often\n".repeat(9000)),
  "usr/lib/large": randomBytes(3 << 20),
  "usr/lib/one": Buffer.from("1"),
};

let [made, at, chosen] = [];

/** Makes images of one tree with real tools, and packs them. */
function fill({ folder, at, run, key }) {
  const sh = (text) => execFileSync("sh", ["-euc", text], { cwd: folder, stdio: ["ignore", "ignore", "pipe"] });
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(join(folder, "tree", path, ".."), { recursive: true });
    writeFileSync(join(folder, "tree", path), content);
  }
  symlinkSync("os-release", join(folder, "tree/etc/link"));
  linkSync(join(folder, "tree/etc/motd"), join(folder, "tree/etc/motd-again"));
  mkdirSync(join(folder, "images"));
  sh("mksquashfs tree images/gzip.squashfs -quiet -no-progress -comp gzip");
  sh("mksquashfs tree images/xz.squashfs -quiet -no-progress -comp xz");
  sh("mksquashfs tree images/zstd.squashfs -quiet -no-progress -comp zstd");
  sh("mksquashfs tree images/lz4.squashfs -quiet -no-progress -comp lz4");
  sh("mkfs.ext4 -q -F -d tree images/a.ext4 16M");
  sh("mkfs.erofs -zlz4hc images/a.erofs tree");
  sh("xorriso -as mkisofs -quiet -R -o images/a.iso tree");
  sh("tar -cf images/a.tar -C tree .");
  sh("(cd tree && find . | cpio -o -H newc --quiet) > images/a.cpio");
  sh("bsdtar -cf images/a.zip --format=zip -C tree .");
  for (const program of ["gzip", "xz", "zstd", "bzip2", "lz4"]) sh(`${program} -c images/a.tar > images/a.tar.${program}`);
  // A stream of which nobody stated the length.
  sh("zstd -c < images/a.tar > images/piped.zst");
  // A disk with a file system in its second partition, and that disk in a squashfs.
  sh("truncate -s 20M disk.img; printf 'label: gpt\\nsize=1M\\nsize=16M\\n' | sfdisk -q disk.img");
  const start = JSON.parse(execFileSync("sfdisk", ["--json", join(folder, "disk.img")], { encoding: "utf8" })).partitiontable.partitions[1].start;
  sh(`dd if=images/a.ext4 of=disk.img bs=512 seek=${start} conv=notrunc`);
  sh("mkdir outer; cp disk.img outer/disk.img; mksquashfs outer images/outer.squashfs -quiet -no-progress");
  // Damaged: its tables are not there.
  const cut = readFileSync(join(folder, "images/gzip.squashfs"));
  writeFileSync(join(folder, "images/0-cut.squashfs"), cut.subarray(0, cut.length >> 1));
  writeFileSync(join(folder, "images/0-text"), "no image");
  sh("echo alone > alone; gzip -c alone > images/alone.gz");
  run("pack", join(folder, "images"), "-o", at("images"), "--name", "os", "--bundle-version", "1", ...key);
  mkdirSync(join(folder, "both"));
  sh("cp images/a.tar both/both.tar; cp tree/etc/motd both/motd");
  run("pack", join(folder, "both"), "-o", at("made"), "--name", "os", "--bundle-version", "2", ...key, "--recipes");
}

before(async () => {
  if (skip) return;
  made = await desk(fill);
  ({ at, chosen } = made);
});
after(() => made?.close());

const opened = (name) => openBundle(at(name), { allowedSigners: made.signers });

/** Returns all entries of a container, by their paths. */
async function walk(container, directory = 0) {
  const found = {};
  for (const entry of await container.children(directory)) {
    found[entry.path] = entry;
    if (entry.type === "dir") Object.assign(found, await walk(container, entry.directory));
  }
  return found;
}

const bytesOf = async (stream) => Buffer.from(await new Response(stream).arrayBuffer());

const WHOLE = [
  ["gzip.squashfs", "squashfs"], ["xz.squashfs", "squashfs"], ["zstd.squashfs", "squashfs"], ["lz4.squashfs", "squashfs"], ["a.ext4", "ext4"], ["a.erofs", "erofs"],
  ["a.iso", "iso9660"], ["a.tar", "tar"], ["a.cpio", "cpio"], ["a.zip", "zip"],
  ...["gzip", "xz", "zstd", "bzip2", "lz4"].map((program) => [`a.tar.${program}`, "tar"]), ["piped.zst", "tar"],
];

test("files of images that real tools made have their content", { skip }, async () => {
  const bundle = await opened("images");
  for (const [name, kind] of WHOLE) {
    const container = await bundle.inside(name);
    assert.equal(container.kind, kind, name);
    const found = await walk(container);
    for (const [path, content] of Object.entries(files)) {
      assert.equal(found[path].size, content.length, `${name}//${path}`);
      assert((await bytesOf(await container.open(found[path]))).equals(content), `${name}//${path}`);
      assert(Buffer.from(await container.read(found[path], 5, 9)).equals(content.subarray(5, 14)), `${name}//${path}`);
    }
    assert.equal(found.etc.children, (await container.children(found.etc.directory)).length);
    if (kind === "squashfs" || kind === "tar") {
      assert.deepEqual([found["etc/link"].type, found["etc/link"].target], ["symlink", "os-release"]);
      assert.equal(found["etc/motd-again"].file, found["etc/motd"].file);
    }
    const root = await container.children();
    assert.deepEqual([root.length, await container.children(0, 1, 1)], [container.entries, root.slice(1, 2)]);
  }
  bundle.close();
});

test("a container in a container in a container", { skip }, async () => {
  const bundle = await opened("images");
  const outer = await bundle.inside("outer.squashfs");
  const [disk] = await outer.children();
  const partitions = await outer.inside(disk);
  assert.equal(partitions.kind, "gpt");
  const [, second] = await partitions.children();
  const inner = await partitions.inside(second);
  const found = await walk(inner);
  assert.equal(inner.kind, "ext4");
  for (const [path, content] of Object.entries(files)) assert((await bytesOf(await inner.open(found[path]))).equals(content), path);
  assert.equal(await inner.inside(found["etc/os-release"]), undefined);
  bundle.close();
});

test("what is no container, and what is damaged", { skip }, async () => {
  const bundle = await opened("images");
  assert.equal(await bundle.inside("0-text"), undefined);
  const { opaque } = await bundle.inside("0-cut.squashfs");
  assert.match(opaque, /^squashfs, offset \d+: /);
  const alone = await bundle.inside("alone.gz");
  const [content] = await alone.children();
  assert.deepEqual([alone.kind, content.name, content.type, content.size], ["gzip", "", "file", 6]);
  assert.equal(String(await bytesOf(await alone.open(content))), "alone\n");
  bundle.close();
});

test("a call can be stopped, and does not disturb the next one", { skip }, async () => {
  const bundle = await opened("images");
  const container = await bundle.inside("a.tar");
  const { "usr/lib/large": large } = await walk(container);
  const stop = new AbortController();
  const reading = container.read(large, 0, large.size, stop.signal);
  stop.abort();
  await assert.rejects(reading, { name: "AbortError" });
  assert(Buffer.from(await container.read(large, 0, large.size)).equals(files["usr/lib/large"]));
  bundle.close();
});

test("no bytes of a bundle that must not be used, nor of a file that the device makes", { skip }, async () => {
  const untrusted = await openBundle(at("images"));
  await assert.rejects(untrusted.inside("a.tar"), { code: "untrusted" });
  untrusted.close();
  const bundle = await opened("made");
  await assert.rejects(bundle.inside("both.tar"), { code: "unsupported" });
  bundle.close();
});

test("the page opens them like directories, shows files and saves them", { skip }, async () => {
  const { page, leave } = await chosen("images");
  const asked = [];
  page.on("request", (request) => asked.push(request.url()));
  const row = (name) => page.getByRole("treeitem").filter({ has: page.getByText(name, { exact: true }) });
  const isLoaded = () => asked.some((url) => url.endsWith("sealift_inside_bg.wasm"));
  await row("0-text").click();
  await page.locator(".preview pre.text").waitFor();
  assert.equal(await page.getByRole("button", { name: "Look into this file" }).count(), 0);
  await row("a.erofs").click();
  await page.getByRole("button", { name: "Look into this file" }).waitFor();
  assert(!isLoaded());
  await page.getByRole("button", { name: "Look into this file" }).click();
  await row("etc").click();
  assert(isLoaded());
  await row("os-release").click();
  await page.locator(".preview h3", { hasText: "a.erofs//etc/os-release" }).waitFor();
  await page.locator(".preview pre.text", { hasText: "VERSION_ID=7" }).waitFor();
  const { name, path } = await saved(page, () => page.getByRole("button", { name: "Save this file" }).click());
  assert.deepEqual([name, readFileSync(path)], ["os-release", files["etc/os-release"]]);
  // It closes and opens as a directory does.
  await row("a.erofs").click();
  await row("os-release").waitFor({ state: "detached" });
  await row("a.erofs").click();
  await row("etc").waitFor();
  await row("a.erofs").click();
  await row("0-cut.squashfs").click();
  await page.getByRole("button", { name: "Look into this file" }).click();
  await page.getByText("It cannot be taken apart: squashfs, offset").waitFor();
  await leave();
});

test("the module is missing: the message says what sets its address", { skip }, async () => {
  const bundle = await openBundle(at("images"), { allowedSigners: made.signers, insideUrl: join(made.folder, "missing.wasm") });
  await assert.rejects(bundle.inside("a.tar"), /the code that looks into images at .*missing\.wasm cannot be loaded: .*the option insideUrl or the attribute inside-url sets its address/);
  bundle.close();
});
