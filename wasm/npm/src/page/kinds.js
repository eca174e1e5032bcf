// Detects the kind of a file by its content, since dropped files are not always bundles.

import { MAGIC, startsAsBundle } from "../opening.js";
import { MAX_BYTES, base64, isKrl } from "./policy.js";

/** Bytes at the start of a file that are searched for a private key. */
const HEAD_BYTES = 1 << 16;

const KEY = String.raw`(?:ssh-(?:ed25519|rsa)|ecdsa-sha2-\S+|sk-\S+@openssh\.com) AAAA[A-Za-z0-9+/]+=*`;
const IS_KEY = new RegExp(`^${KEY}(?: .*)?$`);
const IS_SIGNER = new RegExp(`^(?:"[^"]*"|\\S+)(?: (?:"[^"]*"|[^ "])+)? ${KEY}(?: .*)?$`);

/**
 * @typedef {{ kind: "bundle" } | { kind: "private-key" } | { kind: "other" } | { kind: "signers" | "keys" | "revocations", text: string }} Kind
 */

/**
 * @param {Blob} file
 * @returns {Promise<Kind>}
 */
export async function kindOf(file) {
  const start = async (/** @type {number} */ length) => new Uint8Array(await file.slice(0, length).arrayBuffer());
  if (startsAsBundle(await start(MAGIC.length))) return { kind: "bundle" };
  const bytes = await start(file.size > MAX_BYTES ? HEAD_BYTES : MAX_BYTES);
  if (isKrl(bytes)) return { kind: "revocations", text: base64(bytes) };
  const text = new TextDecoder().decode(bytes);
  if (isPrivateKey(text)) return { kind: "private-key" };
  if (file.size > MAX_BYTES) return { kind: "other" };
  const lines = text.split(/\r?\n/).map((line) => line.trim()).filter((line) => line !== "" && !line.startsWith("#"));
  if (lines.length === 0) return { kind: "other" };
  if (lines.every((line) => IS_KEY.test(line))) return { kind: "keys", text };
  if (lines.every((line) => IS_SIGNER.test(line.replace(/\s+/g, " ")))) return { kind: "signers", text };
  return { kind: "other" };
}

/** @param {string} text */
export function isPrivateKey(text) {
  return /-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----|^PuTTY-User-Key-File-/m.test(text);
}
