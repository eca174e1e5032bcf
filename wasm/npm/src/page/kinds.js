// Detects the kind of a file by its content, since dropped files are not always bundles.

import { MAX_BYTES, base64, isKrl } from "./policy.js";

/** The first bytes of a bundle. */
const MAGIC = [0x89, 0x53, 0x4c, 0x46, 0x54, 0x0d, 0x0a, 0x1a];

/** Bytes at the start of a file that are searched for a private key. */
const HEAD_BYTES = 1 << 16;

const KEY = String.raw`(?:ssh-(?:ed25519|rsa)|ecdsa-sha2-\S+|sk-\S+@openssh\.com) AAAA[A-Za-z0-9+/]+=*`;
const IS_KEY = new RegExp(`^${KEY}(?: .*)?$`);
const IS_SIGNER = new RegExp(`^(?:"[^"]*"|\\S+)(?: (?:"[^"]*"|[^ "])+)? ${KEY}(?: .*)?$`);

/**
 * @typedef {{ kind: "bundle" } | { kind: "private-key" } | { kind: "other" } | { kind: "signers" | "keys" | "revocations", text: string }} Kind
 */

/** @param {Blob} file */
export async function startsAsBundle(file) {
  const first = new Uint8Array(await file.slice(0, MAGIC.length).arrayBuffer());
  return MAGIC.every((byte, at) => first[at] === byte);
}

/**
 * @param {Blob} file
 * @returns {Promise<Kind>}
 */
export async function kindOf(file) {
  if (await startsAsBundle(file)) return { kind: "bundle" };
  const bytes = new Uint8Array(await file.slice(0, file.size > MAX_BYTES ? HEAD_BYTES : MAX_BYTES).arrayBuffer());
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
