// What is dropped on the page, and where. Run by: node --test wasm/tests/drops.test.mjs

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { test } from "node:test";

import { enter, kind } from "./browser.mjs";
import { setup } from "./setup.mjs";

const { bundles, people } = await setup();
const at = (name) => join(bundles.folder, name);
execFileSync("ssh-keygen", ["-q", "-k", "-f", at("revoked.krl"), at("release.pub")]);

/** Drops files on an element, as a script sees it. */
async function drop(page, target, ...paths) {
  const files = paths.map((path) => [basename(path), readFileSync(path).toString("base64")]);
  const data = await page.evaluateHandle((files) => {
    const transfer = new DataTransfer();
    for (const [name, content] of files) transfer.items.add(new File([Uint8Array.from(atob(content), (letter) => letter.charCodeAt(0))], name));
    return transfer;
  }, files);
  return page.locator(target).evaluate((element, dataTransfer) => {
    const isTaken = (type) => !element.dispatchEvent(new DragEvent(type, { dataTransfer, bubbles: true, cancelable: true, composed: true }));
    return [isTaken("dragover"), isTaken("drop")];
  }, data);
}

test("beside the element's box, too", async () => {
  const { page, verdict, leave } = await people.visit({ signers: bundles.signers });
  for (const target of ["html", "h1", "sealift-verifier"]) {
    // What is not taken makes the browser leave the page.
    assert.deepEqual(await drop(page, target, bundles.files.good), [true, true], target);
    await verdict("Safe to install: os, version 7");
    await page.locator("sealift-verifier").evaluate((element) => element.reset());
  }
  await leave();
});

test("the verdict of what is dropped while scrolled down is in sight", async () => {
  const { page, choose, verdict, leave } = await people.visit({ signers: bundles.signers, viewport: { width: 900, height: 600 } });
  await choose(bundles.files.good);
  await verdict("Safe to install");
  await page.evaluate(() => window.scrollTo(0, document.body.scrollHeight));
  await drop(page, "html", bundles.files.flipped);
  await verdict("it is damaged");
  const { top, bottom } = await page.locator(".banner h2").evaluate((title) => title.getBoundingClientRect().toJSON());
  assert(top >= 0 && bottom <= 600, `it is at ${top}`);
  await leave();
});

test("several bundles are a list, with a verdict each", async () => {
  const { page, verdict, leave } = await people.visit({ signers: bundles.signers });
  const names = ["good", "flipped", "untrusted", "other"];
  await drop(page, "html", ...names.map((name) => bundles.files[name]));
  const rows = page.getByRole("list", { name: "Bundles" }).getByRole("button");
  const words = ["Safe to install: os, version 7", "it is damaged", "unknown signer", "Not a Sealift bundle"];
  for (const [row, text] of words.entries()) await rows.nth(row).filter({ hasText: text }).waitFor();
  assert.equal(await page.locator("sealift-verifier").evaluate(({ ok, reports }) => ok || reports.length !== 4), false);
  await rows.nth(1).click();
  await verdict("it is damaged");
  assert.equal(await rows.nth(1).getAttribute("aria-current"), "true");
  assert.equal(await page.locator(".banner:visible").count(), 1);
  await drop(page, "html", bundles.files.good);
  await verdict("Safe to install");
  assert.equal(await rows.count(), 0);
  await leave();
});

test("a field of one bundle takes no two", async () => {
  const { page, verdict, leave } = await people.visit({ signers: bundles.signers });
  await page.locator("sealift-verifier").evaluate((element) => element.removeAttribute("multiple"));
  await drop(page, "html", bundles.files.good);
  await verdict("Safe to install");
  await drop(page, "html", bundles.files.good, bundles.files.older);
  await page.getByText("2 bundles: choose one of them. Nothing was checked.").waitFor();
  assert.deepEqual(await page.locator("sealift-verifier").evaluate(({ ok, finding }) => [ok, finding.state]), [false, "empty"]);
  await leave();
});

test("keys and lists are known by what they are, and taken when the person says so", async () => {
  const { page, choose, verdict, leave } = await people.visit();
  await choose(bundles.files.good);
  await verdict("unknown signer");
  const press = (name) => page.getByRole("button", { name }).click();
  await drop(page, "html", at("signers.txt"));
  await page.getByText("signers.txt: 1 allowed signer.").waitFor();
  await verdict("unknown signer"); // nobody is trusted unasked
  await press("Use these allowed signers");
  await verdict("Safe to install");
  await drop(page, "html", at("revoked.krl"));
  await page.getByText("revoked.krl: a revocation list.").waitFor();
  await verdict("Safe to install");
  await press("Use this revocation list");
  await verdict("revoked key");
  await enter(page.getByLabel("Revoked keys"), "");
  await verdict("Safe to install");
  await choose(bundles.files.untrusted);
  await verdict("unknown signer");
  await drop(page, "html", at("stranger.pub"));
  await page.getByText("stranger.pub: 1 public key.").waitFor();
  await page.locator(".notes").getByRole("button", { name: "Trust this key for os" }).click();
  await verdict("Safe to install: os, version 8");
  await leave();
});

test("a private key is neither taken nor stored", async () => {
  const { page, leave } = await people.visit();
  const secret = readFileSync(at("release"), "utf8");
  await drop(page, "html", at("release"));
  await page.getByText("release is a private key. This page has not stored it; keep it secret.").waitFor();
  await page.locator("#signers-file").setInputFiles(at("release"));
  await page.getByText("This is a private key. This page has not stored it").waitFor();
  const field = page.getByLabel("Allowed signers", { exact: true });
  const stored = () => page.evaluate(() => localStorage.getItem("sealift.allowedSigners"));
  await enter(field, bundles.signers);
  await page.waitForFunction(() => localStorage.getItem("sealift.allowedSigners") !== null);
  const body = (text) => text.split("\n").filter((line) => line !== "" && !line.startsWith("-----")).join("\n");
  for (const [name, text] of Object.entries({ "OpenSSH's": secret, ...secrets() })) {
    const parts = /^-----/m.test(text) ? [text, body(text), body(text).replaceAll("\n", " ")] : [text];
    for (const part of parts) {
      for (const given of [part, `${bundles.signers}\n${part}`]) {
        await enter(field, given);
        assert.equal(await field.inputValue(), bundles.signers, name);
      }
    }
  }
  await page.getByText("This is a private key. This page has not stored it, and left what was there before.").waitFor();
  assert.equal(await stored(), bundles.signers);
  for (const name of ["threshold", "revoked"]) await enter(page.locator(`#${name}`), secret);
  assert.deepEqual(await page.evaluate(() => Object.keys(localStorage).sort()), ["sealift.allowedSigners"]);
  await leave();
});

/** Private keys as programs write them. */
function secrets() {
  const run = (...args) => execFileSync(args[0], args.slice(1), { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
  const keys = { "age's": "# created: 2026-01-01\nAGE-SECRET-KEY-1QQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQ\n" };
  for (const [name, type, format] of [["PEM's RSA", "rsa", "PEM"], ["PKCS #8's RSA", "rsa", "PKCS8"], ["PEM's ECDSA", "ecdsa", "PEM"], ["PKCS #8's ECDSA", "ecdsa", "PKCS8"]]) {
    const file = at(`${type}-${format}`);
    run("ssh-keygen", "-q", "-t", type, "-N", "", "-m", format, "-f", file);
    keys[name] = readFileSync(file, "utf8");
  }
  keys["PKCS #8's Ed25519"] = generateKeyPairSync("ed25519").privateKey.export({ type: "pkcs8", format: "pem" });
  // An armour's beginning: the packet of a secret key of version 4, RFC 9580, 5.5.3.
  keys["PGP's"] = `-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n${Buffer.from([0x95, 0x01, 0x98, 0x04, ...Buffer.alloc(44, 7)]).toString("base64")}\n-----END PGP PRIVATE KEY BLOCK-----\n`;
  return keys;
}

test("only what can be read is stored, and the rest says why not", async () => {
  const { page, choose, verdict, leave } = await people.visit({ signers: bundles.signers });
  await page.waitForFunction(() => localStorage.getItem("sealift.allowedSigners") !== null);
  for (const [label, text, words] of [["Allowed signers", "os nonsense", /This was not stored: line 1 of the allowed signers/], ["Revoked keys", "nonsense", /This was not stored: line 1 of the revocation list/], ["Required keys", "none", /This was not stored: /]]) {
    const field = page.getByLabel(label, { exact: true });
    const before = await field.inputValue();
    await enter(field, text);
    await page.getByText(words).waitFor();
    // It is shown for correction, and nothing is safe by it.
    assert.equal(await field.inputValue(), text);
    await choose(bundles.files.good);
    await verdict("your settings cannot be read");
    await enter(field, before);
    await verdict("Safe to install");
  }
  assert.deepEqual(await page.evaluate(() => Object.entries(localStorage).filter(([, value]) => /non/.test(value))), []);
  await leave();
});

test("what is no file of keys is not loaded as one", async () => {
  const { page, leave } = await people.visit({ signers: bundles.signers });
  for (const [name, words] of [["release.pub", "These are public keys without names."], [basename(bundles.files.other), "This file contains no allowed signers."]]) {
    await page.locator("#signers-file").setInputFiles(at(name));
    await page.getByText(words).waitFor();
    assert.equal(await page.getByLabel("Allowed signers", { exact: true }).inputValue(), bundles.signers);
  }
  await page.locator("#signers-file").setInputFiles(at("signers.txt"));
  await page.getByText("This file contains no allowed signers.").waitFor({ state: "hidden" });
  await leave();
});

// Only the browser's own drag makes entries of a directory.
test("of a directory the bundles are taken", { skip: kind !== "chromium" && "only Chromium lets a test drag files" }, async () => {
  mkdirSync(join(bundles.folder, "stick/updates"), { recursive: true });
  for (const [name, from] of [["os.sealift", bundles.files.good], ["updates/old.sealift", bundles.files.older], ["updates/signers.txt", at("signers.txt")], ["photo.jpg", bundles.files.other], ["broken.sealift", bundles.files.other]]) {
    writeFileSync(join(bundles.folder, "stick", name), readFileSync(from));
  }
  const { page, leave } = await people.visit({ signers: bundles.signers });
  const devtools = await page.context().newCDPSession(page);
  const data = { items: [], files: [join(bundles.folder, "stick")], dragOperationsMask: 1 };
  for (const type of ["dragEnter", "dragOver", "drop"]) await devtools.send("Input.dispatchDragEvent", { type, x: 400, y: 700, data });
  const rows = page.getByRole("list", { name: "Bundles" }).getByRole("button");
  for (const words of ["os.sealiftSafe to install", "broken.sealiftNot a Sealift bundle", "old.sealift"]) await rows.filter({ hasText: words }).waitFor();
  await page.getByText("2 other files were ignored.").waitFor();
  await leave();
});

test("an address that is none, of another kind, and one that the page's own policy blocks", async () => {
  const { page, verdict, leave } = await people.visit({ signers: bundles.signers });
  const field = page.getByLabel("Address of a bundle");
  for (const [address, title, reason] of [
    ["http://", "Not checked: this is not an address", "Invalid URL"],
    ["ftp://example.org/os", "Not checked: this is not an address", "ftp:"],
    ["https://example.org/os.sealift", "Not checked: the page may not read from there", "allows addresses of"],
    ["http://example.org/os.sealift", "Not checked: the page may not read from there", "allows addresses of"],
  ]) {
    await field.fill(address);
    await field.press("Enter");
    await page.locator(".banner", { hasText: address }).waitFor();
    await verdict(title);
    if (kind === "chromium" || reason !== "Invalid URL") await page.locator(".banner", { hasText: reason }).waitFor();
  }
  await leave(/Content Security Policy|Content-Security-Policy|example\.org/);
});
