// Sorts selected or dropped files into bundles to check and notes about the rest. Nothing changes the trusted keys without the user's consent.

import { openBundle } from "../open.js";
import { h } from "./dom.js";
import { kindOf } from "./kinds.js";
import { setsOf } from "./sets.js";
import { count } from "./words.js";

/** @typedef {import("./settings.js").Settings} Settings */

/**
 * @param {{ file: File, isWithin: boolean }[]} files
 * @param {number} left The number of files that were not examined.
 * @param {Settings} settings
 * @param {() => string | undefined} bundleName Of the displayed bundle.
 */
export async function gathered(files, left, settings, bundleName) {
  const kinds = await Promise.all(files.map(({ file }) => kindOf(file).catch(() => ({ kind: /** @type {const} */ ("other") }))));
  /** @type {import("./check.js").Base[]} */
  const bundles = [];
  /** @type {File[]} */
  const volumes = [];
  /** @type {HTMLElement[]} */
  const notes = [];
  let [others, recovery] = [left, 0];
  kinds.forEach((kind, at) => {
    const { file, isWithin } = files[at];
    const isBundle = kind.kind === "bundle" || (kind.kind === "other" && (!isWithin || file.name.endsWith(".sealift")));
    if (isBundle) bundles.push({ source: file, name: file.name });
    else if (kind.kind === "volume") volumes.push(file);
    else if (kind.kind === "recovery") recovery += 1;
    else if (kind.kind === "private-key") notes.push(h("p", { class: "fault" }, h("bdi", {}, file.name), " is a private key. This page has not stored it; keep it secret."));
    else if (isWithin || kind.kind === "other") others += 1;
    else notes.push(offered(file.name, kind.kind, kind.text, settings, bundleName));
  });
  const sets = await setsOf(volumes);
  if (sets.length > 1) notes.push(h("p", { class: "quiet" }, `These volumes are of ${sets.length} sets, and each set is checked by itself: volumes of other bundles, of another split, or with other signatures do not belong together.`));
  if (recovery > 0) notes.push(h("p", { class: "quiet" }, `${count(recovery, "recovery volume is", "recovery volumes are")} not needed here: sealift repair makes lost volumes again with ${recovery === 1 ? "it" : "them"}.`));
  if (others > 0) notes.push(h("p", { class: "quiet" }, `${count(others, "other file was", "other files were")} ignored.`));
  return { bundles: [...bundles, ...sets], notes };
}

/**
 * @param {string} name
 * @param {"signers" | "keys" | "revocations"} kind
 * @param {string} text
 * @param {Settings} settings
 * @param {() => string | undefined} bundleName
 */
function offered(name, kind, text, settings, bundleName) {
  const lines = text.split(/\r?\n/).filter((line) => line.trim() !== "" && !line.startsWith("#"));
  const status = h("span", { role: "status" });
  const button = (/** @type {string} */ words, /** @type {() => void} */ run) => h("button", { type: "button", onclick: (/** @type {Event} */ event) => {
    run();
    status.textContent = "Done.";
    /** @type {HTMLButtonElement} */ (event.currentTarget).disabled = true;
  } }, words);
  const of = bundleName();
  const isPlain = of !== undefined && /^[A-Za-z0-9._+-]+$/.test(of);
  const canTrust = settings.canChange("allowedSigners");
  const canRevoke = settings.canChange("revoked");
  const what = { signers: count(lines.length, "allowed signer"), keys: count(lines.length, "public key"), revocations: "a revocation list" }[kind];
  const buttons = [
    kind === "signers" && canTrust && button("Use these allowed signers", () => settings.set("allowedSigners", text)),
    kind === "keys" && canTrust && isPlain && button(`Trust ${lines.length === 1 ? "this key" : "these keys"} for ${of}`, () => lines.forEach((line) => settings.add("allowedSigners", `${of} namespaces="sealift" ${line.trim()}`))),
    kind === "keys" && canRevoke && button(`Revoke ${lines.length === 1 ? "this key" : "these keys"}`, () => lines.forEach((line) => settings.add("revoked", line.trim()))),
    kind === "revocations" && canRevoke && button("Use this revocation list", () => settings.set("revoked", text)),
  ].filter(Boolean);
  const hint = buttons.length === 0 ? " This site sets this itself, so the file is ignored." : kind === "keys" && canTrust && !isPlain ? " To trust a key for the name of a bundle, check that bundle first." : "";
  return h("p", {}, h("bdi", {}, name), `: ${what}.${hint} `, buttons.flatMap((each) => [each, " "]), status);
}

/**
 * Returns the deltas whose bases, or some of them, are among the same bundles, each with these bases.
 * @param {import("./check.js").Base[]} bundles
 * @param {{ wasmUrl?: string, workerUrl?: string }} places
 * @returns {Promise<Map<import("./check.js").Base, import("./check.js").Base[]>>}
 */
export async function basesAmong(bundles, places) {
  const heads = await Promise.all(bundles.map(({ source }) => headOf(source, places)));
  const found = new Map();
  heads.forEach((head, at) => {
    const wanted = head?.delta?.bases.map(({ indexDigest }) => indexDigest) ?? [];
    const isBase = (/** @type {import("../../types.js").Head | undefined} */ other) => other && !other.delta && wanted.includes(other.indexDigest);
    const bases = bundles.filter((_, other) => isBase(heads[other]));
    if (bases.length > 0) found.set(bundles[at], bases);
  });
  return found;
}

/**
 * @param {import("../../types.js").BundleSource} source
 * @param {{ wasmUrl?: string, workerUrl?: string }} places
 */
async function headOf(source, places) {
  try {
    const bundle = await openBundle(source, places);
    bundle.close();
    return bundle.head;
  } catch {
    return undefined; // its own check reports why
  }
}
