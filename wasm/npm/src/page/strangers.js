// Unknown signers, and how to trust their keys.

import { fill, h } from "./dom.js";

/** A name that is not a pattern: the suggestion must not trust a key for more than this bundle's name. */
const PLAIN = /^[A-Za-z0-9._+-]+$/;

/**
 * @param {import("../../types.js").Head} head
 * @param {import("../../types.js").Verdict} verdict
 * @param {((line: string) => void) | undefined} trust
 */
export function strangers({ name }, { signers, error }, trust) {
  if (error?.code !== "untrusted") return undefined;
  const principal = PLAIN.test(name) ? name : "NAME";
  return signers.filter(({ unknown, publicKey }) => unknown && publicKey).map(({ key, publicKey }) => {
    const line = `${principal} namespaces="sealift" ${publicKey}`;
    const status = h("span", { class: "quiet", role: "status" });
    const copy = async () => {
      try {
        await navigator.clipboard.writeText(line);
        fill(status, "Copied.");
      } catch {
        fill(status, "This browser does not let the page copy: select the line.");
      }
    };
    return h("div", { class: "stranger" },
      h("p", {}, "Fingerprint: ", h("span", { class: "key" }, key)),
      h("p", { class: "key line" }, line),
      h("p", {}, h("button", { type: "button", onclick: copy }, "Copy this line"), " ",
        trust && principal === name && h("button", { type: "button", onclick: () => trust(line) }, `Trust this key for ${name}`), " ", status));
  });
}
