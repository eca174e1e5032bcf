// The page, driven as a person would. Run by: node --test wasm/tests/page.test.mjs, with SEALIFT_BROWSER=firefox in that

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { bundleVectors, volumeVectors } from "./bundle.mjs";
import { expectationOf } from "./policy.mjs";
import { giving } from "./server.mjs";
import { HOSTILE_NAMES, packFiles } from "./shelf.mjs";
import { enter, hashed, kind, saved } from "./browser.mjs";
import { setup } from "./setup.mjs";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

const { bundles, people } = await setup({
  entries: 100_000,
  serve: ({ files }) => ({ bad: giving(readFileSync(files.good)), tests: fileURLToPath(new URL(".", import.meta.url)) }),
});
const visit = (options = {}) => people.visit({ signers: bundles.signers, ...options });

const CASES = {
  good: ["Safe to install: os, version 7", "good"],
  unsigned: ["nobody signed it", "bad"],
  untrusted: ["unknown signer", "bad"],
  expired: ["it has expired", "bad"],
  incompatible: ["it is for other devices", "bad"],
  flipped: ["it is damaged, or was changed", "bad"],
  head: ["the signature area is damaged", "bad"],
  truncated: ["the file is not complete", "bad"],
  trailing: ["something follows the bundle", "bad"],
  other: ["Not a Sealift bundle", "bad"],
  delta: ["Safe to install: os, version 7", "good"],
};

for (const [name, [words, tone]] of Object.entries(CASES)) {
  test(`${name}: the verdict comes first, in words`, async () => {
    const { page, choose, verdict, leave } = await visit();
    await choose(bundles.files[name]);
    await verdict(words);
    await page.getByRole("button", { name: "Save the report" }).waitFor();
    assert.equal(await page.locator(`.banner.${tone}`).count(), 1);
    assert(await page.locator(".banner svg").isVisible());
    await leave();
  });
}

test("a bundle is dropped, and another one while the first is being checked", async () => {
  const { page, verdict, leave } = await visit();
  const drop = async (name) => {
    const content = readFileSync(bundles.files[name]).toString("base64");
    const data = await page.evaluateHandle(([name, content]) => {
      const transfer = new DataTransfer();
      transfer.items.add(new File([Uint8Array.from(atob(content), (letter) => letter.charCodeAt(0))], name));
      return transfer;
    }, [`${name}.sealift`, content]);
    await page.dispatchEvent("sealift-verifier", "drop", { dataTransfer: data });
  };
  await drop("flipped");
  await drop("good");
  await verdict("Safe to install");
  // What is in this one is still being listed when the next one comes.
  await page.evaluate(async () => {
    const [many, good] = await Promise.all(["many", "good"].map(async (name) => (await fetch(`/bundles/${name}.sealift`)).blob()));
    const element = document.querySelector("sealift-verifier");
    element.check(many);
    const shown = element.shadowRoot.querySelector(".view");
    while (!shown.querySelector("[role=tree]")) await new Promise((resolve) => new MutationObserver(resolve).observe(shown, { childList: true, subtree: true }));
    element.check(good, "good.sealift");
  });
  await verdict("Safe to install");
  await page.waitForTimeout(300);
  assert.match(await page.locator(".banner").textContent(), /good\.sealift/);
  await leave();
});

test("an older version than one before", async () => {
  const { page, choose, verdict, leave } = await visit();
  await choose(bundles.files.good);
  await verdict("Safe to install");
  await choose(bundles.files.older);
  await verdict("older than version 7, already checked here");
  await page.getByRole("button", { name: "Forget it" }).click();
  await choose(bundles.files.older);
  await verdict("Safe to install: os, version 6");
  await leave();
});

test("the browser remembers whom to trust, and judges anew when that changes", async () => {
  const { page, choose, verdict, leave } = await visit({ signers: "" });
  await choose(bundles.files.good);
  await verdict("unknown signer");
  const field = page.getByLabel("Allowed signers", { exact: true });
  await enter(field, "os nonsense");
  await verdict("your settings cannot be read");
  await enter(field, bundles.signers);
  await verdict("Safe to install");
  // They are stored once they were read.
  await page.waitForFunction((signers) => localStorage.getItem("sealift.allowedSigners") === signers, bundles.signers);
  await page.reload();
  await choose(bundles.files.good);
  await verdict("Safe to install");
  await page.getByText("Trusted keys and devices").click();
  await enter(page.getByLabel("The devices' tags"), "board-x");
  await choose(bundles.files.incompatible);
  await verdict("Safe to install");
  await enter(page.getByLabel("Revoked keys"), bundles.signers.split('" ')[1]);
  await verdict("signed with a revoked key");
  await leave();
});

test("what is entered while a bundle is being opened counts", async () => {
  const { page, verdict, leave } = await visit({ signers: "" });
  await page.evaluate(async () => {
    const file = await (await fetch("/bundles/many.sealift")).blob();
    const gate = new Promise((resolve) => (window.goOn = resolve));
    let reads = 0;
    const read = async (offset, length) => {
      // The first has the head, and the index lies in more.
      if ((reads += 1) > 1) await gate;
      return new Uint8Array(await file.slice(offset, offset + length).arrayBuffer());
    };
    document.querySelector("sealift-verifier").check({ size: file.size, read });
  });
  await verdict("unknown signer");
  const field = page.getByLabel("Allowed signers", { exact: true });
  await enter(field, bundles.signers);
  await page.evaluate(() => window.goOn());
  await verdict("Safe to install");
  await leave();
});

test("files are browsed, found, looked at and saved", async () => {
  const { page, choose, verdict, leave } = await visit();
  await choose(bundles.files.good);
  await verdict("Safe to install");
  await page.getByRole("treeitem", { name: "usr" }).click();
  await page.getByRole("treeitem", { name: "bin" }).click();
  await page.getByRole("treeitem", { name: "hello" }).first().click();
  assert.equal(await page.locator(".preview pre").textContent(), "#!/bin/sh\necho hello\n");
  await page.getByLabel("Filter files").fill("os-rel");
  await page.getByRole("treeitem", { name: "etc/os-release" }).click();
  assert.equal(await page.locator(".preview pre").textContent(), "ID=example\nVERSION_ID=7\n");
  const { name, path } = await saved(page, () => page.getByRole("button", { name: "Save this file" }).click());
  assert.equal(name, "os-release");
  assert.equal(readFileSync(path, "utf8"), "ID=example\nVERSION_ID=7\n");
  await page.getByLabel("Filter files").fill("libhello.so.1");
  await page.getByRole("treeitem", { name: "libhello.so.1" }).first().click();
  await page.locator(".preview pre.bytes").waitFor();
  await leave();
});

test("the content of what nobody trusts is not shown", async () => {
  const { page, choose, verdict, leave } = await visit();
  await choose(bundles.files.untrusted);
  await verdict("unknown signer");
  await page.getByLabel("Filter files").fill("os-release");
  await page.getByRole("treeitem", { name: "os-release" }).first().click();
  await page.getByText("Its content is shown when the bundle is safe to install.").waitFor();
  await leave();
});

test("by keyboard alone", async () => {
  const { page, choose, verdict, leave } = await visit();
  await choose(bundles.files.good);
  await verdict("Safe to install");
  await page.getByRole("tree").focus();
  for (const key of ["End", "ArrowRight", "ArrowRight", "ArrowRight", "ArrowDown", "Enter"]) {
    await page.keyboard.press(key);
    await page.waitForTimeout(50); // rows come when the worker has sent them
  }
  await page.locator(".preview h3", { hasText: "usr/bin/added" }).waitFor();
  await page.keyboard.press("ArrowLeft");
  await page.keyboard.press("ArrowLeft");
  assert.equal(await page.getByRole("treeitem", { name: "bin" }).getAttribute("aria-expanded"), "false");
  await leave();
});

test("what changed against the bundle before", async () => {
  const { page, choose, verdict, leave } = await visit();
  await choose(bundles.files.good);
  await verdict("Safe to install");
  await page.locator("#older").setInputFiles(bundles.files.older);
  await page.getByText("os version 7 compared with os version 6").waitFor();
  const rows = await page.locator("tbody tr").evaluateAll((rows) => rows.map((row) => [...row.cells].map((cell) => cell.textContent)));
  const found = rows.filter(([what]) => what !== "metadata").map(([what, name]) => `${what} ${name}`).sort();
  assert.deepEqual(found, [
    "added usr/bin/added", "changed etc/os-release", "changed usr/lib/libcopy.so.1", "changed usr/lib/libhello.so.1", "removed usr/bin/gone",
  ]);
  await leave();
});

test("a delta says what it changes", async () => {
  const { page, choose, verdict, leave } = await visit();
  await choose(bundles.files.delta);
  await verdict("Safe to install");
  await page.getByText("It is a delta: the device checks the result against its installed version.").waitFor();
  const names = await page.locator("tbody td:nth-child(2)").allTextContents();
  assert(names.includes("usr/bin/added") && names.includes("etc/os-release"), names.join());
  await leave();
});

test("names are text", async () => {
  const { page, choose, verdict, leave } = await visit();
  await choose(bundles.files.hostile);
  await verdict("Safe to install");
  const names = (await page.getByRole("treeitem").locator(".name").allTextContents()).sort();
  assert.equal(names.length, HOSTILE_NAMES.length);
  assert(names.includes("invoice\\u{202e}fdp.exe") && names.includes("red\\u{1b}[31m") && names.includes("line\\nbreak") && names.includes("<img src=x onerror=alert(1)>"), names.join("\n"));
  assert.equal(await page.locator("sealift-verifier img, sealift-verifier script, sealift-verifier b").count(), 0);
  for (let row = 0; row < names.length; row += 1) {
    await page.getByRole("treeitem").nth(row).click();
    await page.locator(".preview pre", { hasText: "\\u{202e}\\u{1b}[2J" }).waitFor();
  }
  const text = await page.locator("sealift-verifier").evaluate((element) => element.shadowRoot.textContent);
  assert(!/[\u202e\u001b]/.test(text));
  await leave();
});

test("an address is read by ranges, and does not stay beside the verdict on a file", async () => {
  const { page, choose, verdict, leave } = await visit();
  const field = page.getByLabel("Address of a bundle");
  await field.fill("/bundles/good.sealift");
  await field.press("Enter");
  await verdict("Safe to install");
  assert.equal(await field.inputValue(), "/bundles/good.sealift");
  await choose(bundles.files.flipped);
  await verdict("it is damaged, or was changed");
  assert.equal(await field.inputValue(), "");
  await leave();
});

test("servers that lie are found out, and said to be so", async () => {
  const { page, verdict, leave } = await visit();
  const cases = {
    whole: ["Safe to install: os, version 7", "Signed by a key you trust"],
    short: ["the address cannot be read", "the server announced 262144 bytes and sent 262143"],
    liar: ["something follows the bundle", "the file continues after the end of the bundle"],
    other: ["the address cannot be read", "the server sent bytes 4097 to"],
    changed: ["the file changed", "the file on the server was changed while it was read"],
    gone: ["the address cannot be read", "the server answers 404"],
    silent: ["the address cannot be read", "the response shows no Content-Range"],
    missing: ["the address cannot be read", "the server answers 404"],
  };
  for (const [how, [words, reason]] of Object.entries(cases)) {
    await page.getByLabel("Address of a bundle").fill(`/bad/${how}`);
    await page.getByLabel("Address of a bundle").press("Enter");
    await page.locator(".banner", { hasText: `/bad/${how}` }).filter({ hasText: reason }).waitFor();
    await verdict(words);
  }
  await leave(/status of 404/);
});

test("a file that changes while it is read", async () => {
  const { page, choose, verdict, leave } = await visit();
  const [file, whole] = [join(bundles.folder, "changing"), readFileSync(bundles.files.good)];
  writeFileSync(file, whole);
  // The page says so, and goes on where the file is what it was: not before it is chosen again.
  await choose(file);
  await verdict("Safe to install");
  await hashed(page);
  writeFileSync(file, whole.subarray(1));
  await page.getByLabel("Filter files").fill("libhello.so.1");
  await page.getByRole("treeitem", { name: "libhello.so.1" }).first().click();
  // Firefox reads on in the file that is there now, whose chunk is another one.
  const seen = kind === "firefox" ? /is damaged|does not match|digest/ : "it was changed or removed since it was chosen";
  await page.locator(".preview", { hasText: seen }).waitFor();
  // Now in the midst of a check, which is held up until the file is another one.
  writeFileSync(file, whole);
  await page.evaluate(() => {
    const { arrayBuffer } = Blob.prototype;
    Blob.prototype.arrayBuffer = async function () {
      // By its first bytes alone it is told that it is a bundle.
      if (this.size > 8) await new Promise((resolve) => (window.goOn = resolve));
      return arrayBuffer.call(this);
    };
  });
  await choose(file);
  while (!(await page.evaluate(() => Boolean(window.goOn)))) await page.waitForTimeout(20);
  writeFileSync(file, whole.subarray(1));
  await page.evaluate(() => window.goOn());
  if (kind === "firefox") await page.locator(".banner.bad").waitFor();
  else await verdict("the file changed");
  await leave();
});

test("a portal says whom it trusts, and what is checked", async () => {
  const { page, leave } = await visit({ signers: null });
  const check = (signers) => page.evaluate(([src, trust]) => new Promise((resolve) => {
    const element = document.createElement("sealift-verifier");
    element.setAttribute("trust-src", trust);
    element.setAttribute("src", src);
    element.addEventListener("sealift-verdict", ({ detail }) => resolve(detail.report));
    document.querySelector("main").replaceChildren(element);
  }), ["/bundles/good.sealift", signers]);
  const data = `/bundles/${basename(bundles.files.other)}`;
  assert.equal((await check(data)).error.kind, "trust-file");
  const { sound, trusted, deep, head, summary } = await check("/bundles/signers.txt");
  assert.deepEqual([sound, trusted, deep, head.version, summary.entries > 40], [true, true, true, "7", true]);
  assert(await page.getByLabel("Allowed signers", { exact: true }).evaluate((field) => field.readOnly));
  await leave();
});

test("the report is saved", async () => {
  const { page, choose, verdict, leave } = await visit();
  await choose(bundles.files.flipped);
  await verdict("it is damaged");
  const { path } = await saved(page, () => page.getByRole("button", { name: "Save the report" }).click());
  const { sound, trusted, error, head } = JSON.parse(readFileSync(path, "utf8"));
  assert.deepEqual([sound, trusted, error.kind, head.name], [false, true, "chunk", "os"]);
  await leave();
});

test("of 100,000 entries only those exist that are seen", async (t) => {
  const { page, choose, verdict, leave } = await visit();
  await choose(bundles.files.many);
  await verdict("Safe to install");
  await page.getByRole("button", { name: "Save the report" }).waitFor();
  await page.waitForTimeout(500);
  const { longest, most } = await page.evaluate(async () => {
    const find = (selector) => document.querySelector("sealift-verifier").shadowRoot.querySelector(selector);
    const frame = () => new Promise(requestAnimationFrame);
    const tasks = [];
    new PerformanceObserver((list) => tasks.push(...list.getEntries().map(({ duration }) => duration))).observe({ entryTypes: ["longtask"] });
    let most = 0;
    const filter = find("input[type=search]");
    for (const text of ["f", "fi", "file-9", "folder-42/", ""]) {
      filter.value = text;
      filter.dispatchEvent(new Event("input"));
      for (let at = 0; at < 20; at += 1) await frame();
      const rows = find(".rows");
      for (let at = 0; at < 30; at += 1) {
        rows.scrollTop = (rows.scrollHeight * at) / 30;
        await frame();
        most = Math.max(most, rows.querySelectorAll("[role=treeitem]").length);
      }
    }
    return { longest: Math.max(0, ...tasks), most };
  });
  assert(most > 0 && most < 200, `${most} rows`);
  // The browser tells of tasks from 50 ms on, of which there are none where nothing else runs.
  t.diagnostic(`the longest task took ${longest} ms`);
  await leave();
});

test("the tree is used while the contents of very many files are checked", async () => {
  const file = join(bundles.folder, "tiny.sealift");
  const files = Array.from({ length: 30_000 }, (_, number) => [`folder-${number % 30}/file-${number}`, `I am ${number}\n`]);
  packFiles(files, file, join(bundles.folder, "release"));
  const { page, choose, verdict, leave } = await visit({ init: () => {
    const { postMessage } = Worker.prototype;
    window.answered = [];
    Worker.prototype.postMessage = function (data, ...rest) {
      const hear = ({ data: { id, came } }) => {
        if (id !== data.id || came !== undefined) return;
        window.answered.push(data.name);
        this.removeEventListener("message", hear);
      };
      this.addEventListener("message", hear);
      return postMessage.call(this, data, ...rest);
    };
  } });
  await page.evaluate(() => {
    const element = document.querySelector("sealift-verifier");
    new MutationObserver(() => {
      const closed = element.shadowRoot.querySelector("[role=treeitem][aria-level='1'][aria-expanded=false]");
      if (closed?.textContent && !window.clicked) {
        window.clicked = true;
        closed.click();
      }
    }).observe(element.shadowRoot, { childList: true, subtree: true });
  });
  await choose(file);
  await verdict("Safe to install");
  // The directory was opened before its contents had been checked.
  const answered = await page.evaluate(() => window.answered);
  const opened = answered.indexOf("children", answered.indexOf("children") + 1);
  assert(opened > 0 && opened < answered.indexOf("check"), answered.join());
  await leave();
});

for (const colorScheme of ["light", "dark"]) {
  for (const viewport of [{ width: 1200, height: 900 }, { width: 390, height: 800 }]) {
    test(`nothing is hard to use: ${colorScheme}, ${viewport.width} wide`, async () => {
      const { page, choose, verdict, leave } = await visit({ colorScheme, viewport });
      await page.evaluate(axe);
      for (const [name, [words]] of Object.entries({ ...CASES, none: [] })) {
        if (name !== "none") {
          await choose(bundles.files[name]);
          await verdict(words);
          await page.getByRole("button", { name: "Save the report" }).waitFor();
        }
        const { violations } = await page.evaluate(() => window.axe.run({ resultTypes: ["violations"] }));
        const serious = violations.filter(({ impact }) => ["serious", "critical"].includes(impact));
        assert.deepEqual(serious.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)]), [], name);
        const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
        assert.equal(overflow, 0, `${name} is wider than the page`);
      }
      await leave();
    });
  }
}

test("the vectors", async () => {
  const { page, leave } = await visit({ signers: null });
  const ofBundles = bundleVectors().map(({ name, keys, bytes }) => ({ name, keys, files: [bytes], expected: expectationOf(keys).expected }));
  const ofVolumes = volumeVectors().map(({ name, keys, files, expected }) => ({ name, keys, files, expected, isSet: true }));
  const all = [...ofBundles, ...ofVolumes].map(({ files, ...vector }) => ({ ...vector, contents: files.map((bytes) => bytes.toString("base64")) }));
  const wrong = await page.evaluate(async (all) => {
    const { openBundle } = await import("/sealift/src/index.js");
    const { wordOf } = await import("/tests/policy.mjs");
    const wrong = [];
    const next = all.values();
    const work = async () => {
      for (const { name, keys, contents, expected, isSet } of next) {
        const blobs = contents.map((content) => new Blob([Uint8Array.from(atob(content), (letter) => letter.charCodeAt(0))]));
        const found = await wordOf(openBundle, isSet ? blobs : blobs[0], keys, { jobs: 2 });
        if (found !== expected) wrong.push(`${name}: expected ${expected}, found ${found}`);
      }
    };
    await Promise.all([work(), work(), work()]);
    return wrong;
  }, all);
  assert.deepEqual(wrong, []);
  await leave();
});
