// Delta bundles over their bases, as an administrator checks them. Run by: node --test wasm/tests/delta.test.mjs, with SEALIFT_BROWSER=firefox in that

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";

import { vectors } from "./bundle.mjs";
import { desk } from "./chosen.mjs";

const all = new Map(vectors().map((vector) => [vector.name.replace(".vec", ""), vector]));
/** Those that are good over their bases, and bring files. */
const GOOD = ["good-delta", "good-delta-suffix", "good-delta-two-bases", "good-delta-ostree", "good-delta-ostree-history"];
const WHOLE = "every byte is undamaged, and so is every file that results with";

let [made, folder, at, run, chosen] = [];
const basesOf = (name) => all.get(name).keys.base;
const withBases = (name) => basesOf(name).flatMap((base) => ["--base", at(base)]);

before(async () => {
  made = await desk(({ folder, signers, at, run, key }) => {
    writeFileSync(join(folder, "signers"), `${signers}\n`);
    for (const name of [...GOOD, "difference-digest", "object-id-delta"]) {
      for (const each of [name, ...basesOf(name)]) writeFileSync(at(each), all.get(each).bytes);
      const { name: own, version } = JSON.parse(run("info", at(name), "--json")).identity;
      run("sign", at(name), ...key, "--name", own, "--bundle-version", String(version));
    }
  });
  ({ folder, at, run, chosen } = made);
});
after(() => made?.close());

/** Whether the program finds a regular file there. */
async function isFile(name, path) {
  try {
    return Boolean(run("cat", at(name), path, "--trust", join(folder, "signers"), "--state", join(folder, "state"), ...withBases(name)));
  } catch ({ stderr }) {
    assert.match(String(stderr), /is a (directory|symbolic link)|not a regular file/);
    return false;
  }
}

for (const name of GOOD) {
  test(`${name}, over what it is relative to`, async () => {
    const { page, banner, leave } = await chosen(name);
    await banner("It is a delta: the device checks the result");
    const isCommit = name.includes("ostree");
    const hint = page.getByText("The names that change in them are known only with the base");
    assert.equal(await hint.count(), isCommit ? 1 : 0);
    assert.equal(await page.getByRole("tree").count(), 0);
    // In any order: each is known by its digest.
    await page.locator("#base").setInputFiles(basesOf(name).map(at).reverse());
    await banner(WHOLE);
    const { base } = await page.locator("sealift-verifier").evaluate(({ reports }) => reports[0]);
    const indexes = basesOf(name).map((base) => JSON.parse(run("info", at(base), "--json")).identity.index_digest);
    assert.deepEqual([base.checked, base.bases.map(({ indexDigest }) => indexDigest)], [true, indexes]);

    // The tree that results, and what it changes of the first base.
    const paths = run("ls", at(name), ...withBases(name)).toString().trim().split("\n");
    await page.getByText(`${paths.length} entries, `).first().waitFor();
    assert.equal(await hint.count(), 0);
    const { added, changed, removed, metadata } = await page.locator("sealift-verifier").evaluate(({ reports }) => reports[0].summary.delta);
    assert(added + changed + removed + metadata > 0);
    await page.getByText(`${added} added, ${changed} changed, ${removed} removed, ${metadata} metadata only.`).waitFor();

    // Files of the bases and of the delta are shown.
    for (const path of paths.slice(0, 8)) {
      const shown = path.slice(path.indexOf(":") + 1);
      await page.getByPlaceholder("Filter by name").fill(shown);
      await page.locator(".row", { has: page.getByText(shown, { exact: true }) }).first().click();
      await page.locator(".preview h3", { hasText: shown }).waitFor();
      if (await isFile(name, path)) await page.getByRole("button", { name: "Save this file" }).waitFor();
    }
    await leave();
  });
}

test("what is added and removed is counted the same with and without the base", async () => {
  const write = (path) => (mkdirSync(dirname(join(folder, path)), { recursive: true }), writeFileSync(join(folder, path), "text"));
  for (const path of ["old/kept/a", "old/gone/a", "old/gone/deep/b", "old/replaced"]) write(path);
  for (const path of ["new/kept/a", "new/kept/b", "new/fresh/a", "new/fresh/deep/b", "new/fresh/deep/c", "new/replaced/a"]) write(path);
  execFileSync("find", [join(folder, "old"), join(folder, "new"), "-exec", "touch", "--date=@1700000000", "{}", "+"]);
  const pack = (tree, name, ...more) => run("pack", join(folder, tree), "-o", at(name), "--name", "os", ...made.key, ...more);
  pack("old", "before", "--bundle-version", "1");
  pack("new", "after", "--bundle-version", "2", "--base", at("before"), "--allow-unsigned");
  const { page, banner, leave } = await chosen("after");
  const counts = () => page.locator("sealift-verifier").evaluate(({ reports }) => {
    const { added, changed, removed, metadata } = reports[0].summary.delta;
    return [added, changed, removed, metadata];
  });
  const sum = page.getByText("2 added, 1 changed, 1 removed, 0 metadata only.", { exact: true });
  const row = page.getByRole("cell", { name: "fresh/deep/c", exact: true });
  const once = page.getByText("A new directory counts once, with everything below it.", { exact: true });
  assert.deepEqual(await counts(), [2, 1, 1, 0]);
  await sum.waitFor();
  assert.deepEqual([await row.count(), await once.count()], [1, 1]);
  await page.locator("#base").setInputFiles(at("before"));
  await banner(WHOLE);
  assert.deepEqual(await counts(), [2, 1, 1, 0]);
  await row.waitFor({ state: "detached" });
  await sum.waitFor();
  assert.equal(await once.count(), 0);
  await leave();
});

test("one of two bases is not enough, and the other one is named", async () => {
  const { page, banner, verdict, leave } = await chosen("good-delta-two-bases");
  await page.locator("#base").setInputFiles(at("good-base"));
  await banner("This page did not check it over its base: the base: the bundle needs ");
  await verdict("Safe to install");
  await page.locator("sealift-verifier").evaluate((element) => element.setAttribute("base-src", "/bundles/good-two-refs.sealift /bundles/good-base.sealift"));
  await page.locator("#file").setInputFiles(at("good-delta-two-bases"));
  await banner(WHOLE);
  await leave();
});

test("a delta that does not become what was signed is refused where its base is there", async () => {
  for (const [name, words] of [["difference-digest", "index: the bytes do not match their digest"], ["object-id-delta", "its content does not match its id"]]) {
    const { page, banner, verdict, leave } = await chosen(name);
    await page.locator("#base").setInputFiles(basesOf(name).map(at));
    await verdict("it is damaged, or was changed");
    await banner(words);
    await leave();
  }
});
