// What the administrator says: whom to trust, and what the devices are. A portal may fix it, and then it is shown only.

import { fill, h } from "./dom.js";
import { remember, settings } from "./memory.js";

/** Bytes of a file of keys that are read; more is no such file. */
const MAX_BYTES = 4 << 20;

/**
 * A form that remembers what is entered. It tells of each change by an event "change" of its own.
 * @param {{ fixedSigners?: string }} options
 */
export function settingsForm({ fixedSigners }) {
  const now = settings();
  const element = h("details", { class: "panel settings" });
  const tell = () => element.dispatchEvent(new CustomEvent("settings"));
  const field = (/** @type {keyof ReturnType<typeof settings>} */ name, /** @type {HTMLInputElement | HTMLTextAreaElement} */ input) => {
    input.addEventListener("change", () => {
      remember(name, input.value);
      tell();
    });
    return input;
  };
  const signers = field("allowedSigners", h("textarea", {
    id: "signers", rows: 4, spellcheck: false, value: fixedSigners ?? now.allowedSigners ?? "", readOnly: fixedSigners !== undefined,
    placeholder: 'os namespaces="sealift" ssh-ed25519 AAAA…', "aria-describedby": "signers-help",
  }));
  const problem = h("p", { class: "fault", role: "alert" });
  const load = h("input", { type: "file", id: "signers-file", onchange: async () => {
    const [file] = load.files ?? [];
    if (!file) return;
    if (file.size > MAX_BYTES) return fill(problem, "That file is too large to be one of allowed signers.");
    fill(problem);
    signers.value = await file.text();
    signers.dispatchEvent(new Event("change"));
    load.value = "";
  } });
  const revoked = field("revoked", h("textarea", { id: "revoked", rows: 2, spellcheck: false, value: now.revoked ?? "", placeholder: "ssh-ed25519 AAAA…" }));
  const threshold = field("threshold", h("input", { id: "threshold", value: now.threshold ?? "", placeholder: "1, or os=2", spellcheck: false }));
  const compatible = field("compatible", h("input", { id: "compatible", value: now.compatible ?? "", placeholder: "board-a, board-b", spellcheck: false }));
  const summary = h("summary", {}, h("h2", {}, "Whom you trust, and what your devices are"));
  element.open = fixedSigners === undefined && !now.allowedSigners;
  fill(element, summary,
    h("label", { htmlFor: "signers" }, "Allowed signers"),
    h("p", { class: "quiet", id: "signers-help" }, fixedSigners === undefined
      ? "A line for each key: the names of the bundles that it may sign, namespaces=\"sealift\", and the key. This browser remembers them; nothing is sent."
      : "This portal says whom it trusts."),
    signers,
    fixedSigners === undefined && h("p", {}, h("label", { htmlFor: "signers-file" }, "Load a file: "), load), problem,
    h("div", { class: "fields" },
      h("div", {}, h("label", { htmlFor: "compatible" }, "The devices' tags"), compatible),
      h("div", {}, h("label", { htmlFor: "threshold" }, "Keys that must have signed"), threshold)),
    h("label", { htmlFor: "revoked" }, "Revoked keys"), revoked);
  return { element, policy: () => policyOf({ allowedSigners: signers.value, revoked: revoked.value, threshold: threshold.value, compatible: compatible.value }) };
}

/**
 * @param {Record<"allowedSigners" | "revoked" | "threshold" | "compatible", string>} entered
 * @returns {import("../../types.js").Policy}
 */
function policyOf({ allowedSigners, revoked, threshold, compatible }) {
  const words = (/** @type {string} */ text) => text.split(/[\s,]+/).filter((word) => word !== "");
  return {
    allowedSigners,
    revoked: revoked.trim() === "" ? undefined : revoked,
    threshold: words(threshold).length > 0 ? words(threshold) : undefined,
    compatible: words(compatible),
  };
}
