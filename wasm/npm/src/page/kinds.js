// Detects the kind of a file by its content, since dropped files are not always bundles.

import { MAGIC, startsAsBundle } from "../opening.js";
import { startsAsVolume } from "../volumes.js";
import { MAX_BYTES, base64, isKrl } from "./policy.js";

/** Bytes at the start of a file that are searched for a private key. */
const HEAD_BYTES = 1 << 16;

const KEY = String.raw`(?:ssh-(?:ed25519|rsa)|ecdsa-sha2-\S+|sk-\S+@openssh\.com) AAAA[A-Za-z0-9+/]+=*`;
const IS_KEY = new RegExp(`^${KEY}(?: .*)?$`);
const IS_SIGNER = new RegExp(`^(?:"[^"]*"|\\S+)(?: (?:"[^"]*"|[^ "])+)? ${KEY}(?: .*)?$`);

/**
 * @typedef {{ kind: "bundle" } | { kind: "volume" } | { kind: "recovery" } | { kind: "private-key" } | { kind: "other" } | { kind: "signers" | "keys" | "revocations", text: string }} Kind
 */

/**
 * @param {Blob} file
 * @returns {Promise<Kind>}
 */
export async function kindOf(file) {
  const start = async (/** @type {number} */ length) => new Uint8Array(await file.slice(0, length).arrayBuffer());
  if (startsAsBundle(await start(MAGIC.length))) return { kind: "bundle" };
  const bytes = await start(file.size > MAX_BYTES ? HEAD_BYTES : MAX_BYTES);
  const part = startsAsVolume(bytes);
  if (part) return { kind: part };
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

/** The beginnings of private keys as text: armour of PEM, OpenSSH and PGP, PuTTY's, age's and signify's files. */
const SECRETS = [/-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----/i, /^PuTTY-User-Key-File-/m, /AGE-(?:SECRET-KEY|PLUGIN-[A-Z0-9-]+)-1/i, /^untrusted comment: .*secret key/im];

/** A line of base64 alone, as stands between BEGIN and END. */
const BODY = /^[A-Za-z0-9+/]{40,}={0,2}$/;

/** @param {string} text */
export function isPrivateKey(text) {
  return SECRETS.some((secret) => secret.test(text)) || text.split(/\s+/).some((line) => BODY.test(line) && isSecretBody(atob(line.slice(0, 40))));
}

/**
 * Whether these are the first bytes of a private key, of which only the lines between BEGIN and END were copied.
 * @param {string} bytes A letter for each.
 */
function isSecretBody(bytes) {
  if (bytes.startsWith("openssh-key-v1")) return true;
  const [tag, length, ...rest] = [...bytes].map((letter) => letter.charCodeAt(0));
  // PKCS #1, PKCS #8 and SEC 1: a sequence that begins with the version 0 or 1.
  const [type, size, version] = rest.slice(length > 0x80 ? length - 0x80 : 0);
  if (tag === 0x30 && type === 2 && size === 1 && version <= 1) return true;
  // PGP (RFC 9580, 4.2 and 5.5): a packet of a secret key or subkey, and a version from 3 to 6 behind its length.
  if ([0xc5, 0xc7].includes(tag)) return rest.slice(length < 192 ? 0 : length < 224 ? 1 : 4)[0] <= 6 && rest.length > 0;
  return [0x94, 0x95, 0x96, 0x9c, 0x9d, 0x9e].includes(tag) && [3, 4, 5, 6].includes(rest[[0, 1, 3][tag & 3]]);
}
