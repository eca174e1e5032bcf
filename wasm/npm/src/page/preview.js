// One file: its beginning, and a way to have it.

import { fill, h } from "./dom.js";
import { bytes, mode, moment } from "./words.js";

/** Bytes of a file that are shown. */
const SHOWN_BYTES = 1 << 16;

/** Files up to this size are put together in memory to be saved. */
const SAVED_BYTES = 1 << 30;

/**
 * Shows an entry, and if the bundle may be used what is in it.
 * @param {HTMLElement} place
 * @param {import("../../types.js").Bundle} bundle
 * @param {import("../../types.js").Entry} entry
 */
export async function preview(place, bundle, entry) {
  const content = h("div", { class: "content" });
  fill(place, h("h3", {}, h("bdi", {}, entry.shown)), facts(entry), content);
  if (entry.type !== "file") return;
  if (bundle.verdict.error) {
    fill(content, h("p", { class: "quiet" }, "Its content is shown when somebody whom you trust has signed the bundle."));
    return;
  }
  fill(content, h("p", { class: "quiet" }, "Reading …"));
  try {
    const start = await beginning(await bundle.open(entry));
    fill(content, saving(bundle, entry), ...shown(start, entry.size ?? 0));
  } catch (error) {
    fill(content, h("p", { class: "fault" }, `It cannot be read: ${/** @type {Error} */ (error).message}`));
  }
}

/** @param {import("../../types.js").Entry} entry */
function facts(entry) {
  const device = entry.major === undefined ? null : `, device ${entry.major}, ${entry.minor}`;
  const size = entry.size === undefined ? null : `, ${bytes(entry.size)}`;
  return h("p", { class: "quiet" }, `${mode(entry)}, owner ${entry.uid}, group ${entry.gid}, ${moment(entry.mtime)}`, size, device,
    entry.target === undefined ? null : h("bdi", {}, ` → ${entry.target}`));
}

/** @param {ReadableStream<Uint8Array>} stream */
async function beginning(stream) {
  const reader = stream.getReader();
  /** @type {Uint8Array[]} */
  const parts = [];
  for (let length = 0; length < SHOWN_BYTES; ) {
    const { done, value } = await reader.read();
    if (done) break;
    parts.push(value);
    length += value.length;
  }
  reader.cancel().catch(() => {});
  return new Uint8Array(await new Blob(/** @type {BlobPart[]} */ (parts)).arrayBuffer()).subarray(0, SHOWN_BYTES);
}

/**
 * Text as text, and anything else as bytes.
 * @param {Uint8Array} start
 * @param {number} size
 */
function shown(start, size) {
  const isCut = start.length < size;
  const more = isCut ? h("p", { class: "quiet" }, `The first ${bytes(start.length)} of ${bytes(size)}.`) : null;
  const text = asText(start, isCut);
  const isText = text !== undefined;
  return [h("pre", { tabIndex: 0, "aria-label": "Content", class: isText ? "text" : "bytes" }, isText ? text : dump(start.subarray(0, 4096))), more];
}

/**
 * @param {Uint8Array} start
 * @param {boolean} isCut
 */
function asText(start, isCut) {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(start, { stream: isCut });
    return text.includes("\0") ? undefined : visible(text);
  } catch {
    return undefined;
  }
}

/**
 * Text with all that it could hide made seen: controls, and marks that turn its direction.
 * @param {string} text
 */
function visible(text) {
  return text.replace(/[^\P{C}\n\t]|[\u2028\u2029]/gu, (mark) => `\\u{${(mark.codePointAt(0) ?? 0).toString(16)}}`);
}

/** @param {Uint8Array} part */
function dump(part) {
  const lines = [];
  for (let at = 0; at < part.length; at += 16) {
    const row = [...part.subarray(at, at + 16)];
    const digits = row.map((byte) => byte.toString(16).padStart(2, "0")).join(" ");
    const letters = row.map((byte) => (byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : ".")).join("");
    lines.push(`${at.toString(16).padStart(6, "0")}  ${digits.padEnd(47)}  ${letters}`);
  }
  return lines.join("\n");
}

/**
 * @param {import("../../types.js").Bundle} bundle
 * @param {import("../../types.js").Entry} entry
 */
function saving(bundle, entry) {
  if ((entry.size ?? 0) > SAVED_BYTES) return h("p", { class: "quiet" }, "It is too large to be saved from here: sealift cat does it.");
  const status = h("span", { class: "quiet", role: "status" });
  const save = async () => {
    fill(status, "Reading …");
    try {
      const blob = await new Response(await bundle.open(entry)).blob();
      offer(blob, entry.name);
      fill(status, "");
    } catch (error) {
      fill(status, /** @type {Error} */ (error).message);
    }
  };
  return h("p", {}, h("button", { type: "button", onclick: save }, "Save this file"), " ", status);
}

/**
 * Lets the browser save something. The type is one that no browser opens by itself.
 * @param {Blob} blob
 * @param {string} name
 */
export function offer(blob, name) {
  const url = URL.createObjectURL(new Blob([blob], { type: "application/octet-stream" }));
  h("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
