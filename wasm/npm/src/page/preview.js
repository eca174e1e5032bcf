// One file: a preview of its beginning, and a button to save it.

import { dmVerity } from "./dm-verity.js";
import { fill, h } from "./dom.js";
import { lookingInto } from "./look.js";
import { saving } from "./save.js";
import { bytes, mode, moment } from "./words.js";

/** Bytes of a text file that are shown. */
const SHOWN_BYTES = 1 << 16;

/** Bytes of a binary file that are shown. */
const DUMPED_BYTES = 4096;

/** Bytes in each row, which fits a phone. */
const DUMPED_ROW = 8;

/** @typedef {import("./tree.js").Entry} Entry */

/** The selected file, with its content as long as its bundle is safe. It emits an event "open" with a file that is opened as a container, and the container, as its detail. */
export class Preview {
  #bundle;
  #isSafe;
  /** @type {Entry | undefined} */
  #entry;
  /** Results of earlier selections are dropped. */
  #turn = 0;

  /**
   * @param {import("../../types.js").Bundle} bundle
   * @param {boolean} isSafe
   */
  constructor(bundle, isSafe) {
    this.#bundle = bundle;
    this.#isSafe = isSafe;
    this.element = h("div", { class: "preview" }, h("p", { class: "quiet" }, "Choose a file to see what is in it."));
  }

  /** @param {boolean} isSafe */
  update(isSafe) {
    if (isSafe === this.#isSafe) return;
    this.#isSafe = isSafe;
    if (this.#entry) this.choose(this.#entry);
  }

  /** @param {Entry} entry */
  async choose(entry) {
    this.#entry = entry;
    const turn = (this.#turn += 1);
    const [image, content] = [h("div"), h("div", { class: "content" })];
    fill(this.element, h("h3", {}, h("bdi", {}, entry.shown)), facts(entry), image, content);
    if (entry.type !== "file") return;
    if (!this.#isSafe) {
      fill(content, h("p", { class: "quiet" }, "Its content is shown when the bundle is safe to install."));
      return;
    }
    fill(content, h("p", { class: "quiet" }, "Reading …"));
    try {
      const from = /** @type {import("../../types.js").Bundle} */ (entry.within ?? this.#bundle);
      const start = await beginning(await from.open(/** @type {any} */ (entry)));
      if (turn !== this.#turn) return;
      const open = (/** @type {import("../../types.js").Container} */ container) => this.element.dispatchEvent(new CustomEvent("open", { detail: { entry, container } }));
      const isText = asText(start, start.length < (entry.size ?? 0)) !== undefined;
      const look = isText || entry.container ? null : lookingInto(from, entry, open);
      fill(content, saving(from, /** @type {any} */ (entry), () => this.#isSafe), look, ...shown(start, entry.size ?? 0));
      if (entry.within) return;
      const found = await dmVerity(this.#bundle, /** @type {any} */ (entry));
      if (turn === this.#turn && found) fill(image, ...ofImage(found));
    } catch (error) {
      if (turn === this.#turn && /** @type {{ code?: unknown }} */ (error).code === "unsupported") {
        fill(content, h("p", { class: "quiet" }, "The device makes this file from others, and then checks it. This page does not make it, and so does not look into it: sealift ls and sealift cat do."));
        return;
      }
      const isStream = error instanceof TypeError && !this.#bundle.isSeekable;
      const why = isStream ? "The server sends the file only as a whole. Download it and choose it here, to see what is in its files." : `This page cannot read it: ${/** @type {Error} */ (error).message}`;
      if (turn === this.#turn) fill(content, h("p", { class: "fault" }, why));
    }
  }
}

/** @param {Entry} entry */
function facts(entry) {
  const device = entry.major === undefined ? null : `, device ${entry.major}, ${entry.minor}`;
  const size = entry.size === undefined ? null : `, ${bytes(entry.size)}`;
  const metadata = entry.within ? `in a ${entry.within.kind} container` : `${mode(/** @type {any} */ (entry))}, owner ${entry.uid}, group ${entry.gid}, ${moment(entry.mtime)}`;
  return h("p", { class: "quiet" }, metadata, size, device,
    entry.target === undefined ? null : h("bdi", {}, ` → ${entry.target}`));
}

/** @param {{ algorithm: string, rootHash: string } | { fault: string }} found */
function ofImage(found) {
  if ("fault" in found) return [h("p", {}, `A disk image whose dm-verity root hash is unknown: ${found.fault}.`)];
  const { algorithm, rootHash } = found;
  return [h("p", {}, `dm-verity root hash (${algorithm}): `, h("span", { class: "key" }, rootHash)),
    h("p", { class: "quiet" }, "By the top block of the hash tree. sealift verify --deep compares every block.")];
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
 * Shows text as text, and otherwise a dump of the first bytes.
 * @param {Uint8Array} start
 * @param {number} size
 */
function shown(start, size) {
  const text = asText(start, start.length < size);
  const isText = text !== undefined;
  const part = isText ? start : start.subarray(0, DUMPED_BYTES);
  const more = part.length < size ? h("p", { class: "quiet" }, `The first ${bytes(part.length)} of ${bytes(size)}.`) : null;
  return [h("pre", { tabIndex: 0, "aria-label": "Content", class: isText ? "text" : "bytes" }, isText ? text : dump(part)), more];
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
 * Makes invisible characters in text visible: controls, and characters that change the text direction.
 * @param {string} text
 */
function visible(text) {
  return text.replace(/[^\P{C}\n\t]|[\u2028\u2029]/gu, (mark) => `\\u{${(mark.codePointAt(0) ?? 0).toString(16)}}`);
}

/** @param {Uint8Array} part */
function dump(part) {
  const lines = [];
  for (let at = 0; at < part.length; at += DUMPED_ROW) {
    const row = [...part.subarray(at, at + DUMPED_ROW)];
    const digits = row.map((byte) => byte.toString(16).padStart(2, "0")).join(" ");
    const letters = row.map((byte) => (byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : ".")).join("");
    lines.push(`${at.toString(16).padStart(4, "0")}  ${digits.padEnd(DUMPED_ROW * 3 - 1)}  ${letters}`);
  }
  return lines.join("\n");
}
