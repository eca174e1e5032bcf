// Unknown signers, and how to trust their keys: only whoever has the fingerprint from elsewhere is offered it.

import { fill, h } from "./dom.js";

/** A name that is not a pattern: the suggestion must not trust a key for more than this bundle's name. */
const PLAIN = /^[A-Za-z0-9._+-]+$/;

/** The fewest characters of a fingerprint that are compared: 72 bits, which nobody finds another key for. */
const ENOUGH = 12;

/**
 * @param {import("../../types.js").Head} head
 * @param {import("../../types.js").Verdict} verdict
 * @param {((line: string) => void) | undefined} trust Missing where the site sets the trusted keys.
 */
export function strangers({ name }, { signers, error }, trust) {
  if (error?.code !== "untrusted" || !trust) return undefined;
  const unknown = signers.filter(({ unknown, publicKey, key }) => unknown && publicKey && key);
  if (unknown.length === 0) return undefined;
  const result = h("div", { role: "status" });
  const field = h("input", { type: "text", id: "fingerprint", autocomplete: "off", spellcheck: false, placeholder: "SHA256:…" });
  const compare = (/** @type {Event} */ event) => {
    event.preventDefault();
    const given = fingerprintIn(field.value);
    const signer = unknown.find(({ key, publicKey }) => given !== "" && (`${key}`.startsWith(given) || isKey(given, `${publicKey}`)));
    if (given.length < "SHA256:".length + ENOUGH) fill(result, h("p", {}, `Enter at least the first ${ENOUGH} characters behind SHA256:.`));
    else if (signer) fill(result, offer(name, `${signer.publicKey}`, trust));
    else fill(result, h("p", {}, "This is not the key that signed the bundle. Do not install it, and tell the publisher."));
  };
  return h("form", { class: "stranger", onsubmit: compare },
    h("label", { htmlFor: "fingerprint" }, "The fingerprint that the publisher gave you, not with this file but by phone, on paper or on their site"),
    h("p", { class: "fields" }, field, h("button", { type: "submit" }, "Compare")), result);
}

/**
 * Returns the fingerprint, or its beginning, in what a person entered: alone, in a line of `ssh-keygen -l`, or with nothing before it; or a public key.
 * @param {string} text
 */
function fingerprintIn(text) {
  const [key] = /(?:ssh|ecdsa|sk)-\S+ AAAA[A-Za-z0-9+/=]+/.exec(text) ?? [];
  const [, digits] = /(?:SHA256:)?([A-Za-z0-9+/]{4,43})(?=[\s=]|$)/.exec(text.replace(/^\s*\d+\s+/, "").trim()) ?? [];
  return key ?? (digits === undefined ? "" : `SHA256:${digits}`);
}

/** @param {string} given @param {string} publicKey */
const isKey = (given, publicKey) => given === publicKey.split(" ").slice(0, 2).join(" ");

/**
 * @param {string} name
 * @param {string} publicKey
 * @param {(line: string) => void} trust
 */
function offer(name, publicKey, trust) {
  const isPlain = PLAIN.test(name);
  const line = `${isPlain ? name : "NAME"} namespaces="sealift" ${publicKey}`;
  const status = h("span", { class: "quiet", role: "status" });
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(line);
      fill(status, "Copied.");
    } catch {
      fill(status, "This browser does not let the page copy: select the line.");
    }
  };
  return [
    h("p", {}, `It is this key. If you trust the publisher, its bundles of the name ${name} count from now on.`),
    h("p", { class: "key line" }, line),
    h("p", {}, isPlain && h("button", { type: "button", onclick: () => trust(line) }, `Trust this key for ${name}`), " ",
      h("button", { type: "button", onclick: copy }, "Copy this line"), " ", status),
  ];
}
