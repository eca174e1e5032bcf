// The administrator's settings: trusted keys and device tags. Settings fixed by a portal are read-only.

import { checkPolicy } from "../options.js";
import { fill, h } from "./dom.js";
import { isPrivateKey, kindOf } from "./kinds.js";
import { NAMES, forgets, forgetVersions, remember, settings } from "./memory.js";
import { MAX_BYTES, policyFor } from "./policy.js";

/** @typedef {import("./policy.js").Entered} Entered */
/** @typedef {import("./policy.js").Fixed} Fixed */
/** @typedef {HTMLInputElement | HTMLTextAreaElement} Field */

const PRIVATE = "This is a private key. This page has not stored it, and left what was there before. Keep it secret, and take the .pub file beside it.";

const FIRST = "This page trusts nobody yet. Ask the publisher for the file allowed_signers, or for a public key and its fingerprint, over another channel than the bundle's, and load it here.";

/** A form that stores its values. It emits an event "settings" for each change. */
export class Settings {
  #problem = h("p", { class: "fault", role: "alert" });
  #first = h("p", { class: "first" });
  #forgets = h("p", { class: "quiet" });
  #help = h("p", { class: "quiet", id: "signers-help" });
  /** @type {Record<keyof Entered, Field>} */
  #fields = {
    allowedSigners: h("textarea", { id: "signers", rows: 4, spellcheck: false, placeholder: 'os namespaces="sealift" ssh-ed25519 AAAA…', "aria-describedby": "signers-help" }),
    revoked: h("textarea", { id: "revoked", rows: 2, spellcheck: false, placeholder: "ssh-ed25519 AAAA…" }),
    threshold: h("input", { id: "threshold", placeholder: "1, or os=2", spellcheck: false }),
    compatible: h("input", { id: "compatible", placeholder: "board-a, board-b", spellcheck: false }),
  };
  #file = h("input", { type: "file", id: "signers-file", onchange: () => this.#load() });
  #load_ = h("p", { class: "choose" }, h("label", { htmlFor: "signers-file", class: "button" }, "Load a file"), this.#file);
  #forget = h("button", { type: "button", onclick: () => this.#forgetVersions() }, "Forget all versions seen");
  /** @type {Fixed} */
  #fixed = {};
  /** What was entered and is not stored: it is being read, or cannot be. @type {Partial<Entered>} */
  #unstored = {};
  #isReadonly = false;
  #places;

  /** @param {() => { wasmUrl?: string, workerUrl?: string }} places The URLs of the package's parts. */
  constructor(places) {
    this.#places = places;
    const { allowedSigners, revoked, threshold, compatible } = this.#fields;
    for (const name of NAMES) this.#fields[name].addEventListener("change", () => this.#entered(name));
    this.element = h("details", { class: "panel settings" },
      h("summary", {}, h("h2", {}, "Trusted keys and devices")),
      h("label", { htmlFor: "signers" }, "Allowed signers"), this.#first, this.#help, allowedSigners, this.#load_, this.#problem, this.#forgets,
      h("div", { class: "fields" },
        h("div", {}, h("label", { htmlFor: "compatible" }, "The devices' tags"), compatible),
        h("div", {}, h("label", { htmlFor: "threshold" }, "Required keys"), threshold)),
      h("label", { htmlFor: "revoked" }, "Revoked keys"), revoked,
      h("p", {}, this.#forget));
    this.update({}, false);
    this.element.open = this.#fields.allowedSigners.value === "";
  }

  /**
   * Shows the fixed settings, and otherwise the stored ones.
   * @param {Fixed} fixed
   * @param {boolean} isReadonly Whether the user may not enter anything.
   */
  update(fixed, isReadonly) {
    this.#fixed = fixed;
    this.#isReadonly = isReadonly;
    const now = isReadonly ? {} : settings();
    for (const name of NAMES) {
      this.#fields[name].value = fixed[name] ?? (isReadonly ? undefined : this.#unstored[name]) ?? now[name] ?? "";
      this.#fields[name].readOnly = !this.canChange(name);
    }
    const canTrust = this.canChange("allowedSigners");
    fill(this.#help, canTrust
      ? "One line for each key: the names of the bundles that it may sign, namespaces=\"sealift\", and the key. Nothing is sent."
      : "This site sets the trusted keys.");
    this.#load_.hidden = !canTrust;
    this.#forget.hidden = isReadonly;
    if (!canTrust) this.element.open = false;
    this.#sayFirst();
    this.#sayForgets();
  }

  /** @param {keyof Entered} name */
  canChange(name) {
    return !this.#isReadonly && this.#fixed[name] === undefined;
  }

  /** @returns {Entered} */
  get entered() {
    const of = (/** @type {keyof Entered} */ name) => (this.canChange(name) ? this.#fields[name].value : "");
    return { allowedSigners: of("allowedSigners"), revoked: of("revoked"), threshold: of("threshold"), compatible: of("compatible") };
  }

  /**
   * Sets a field to a text, as if it had been entered.
   * @param {keyof Entered} name
   * @param {string} text
   */
  set(name, text) {
    if (!this.canChange(name)) return;
    this.#fields[name].value = text;
    this.#entered(name);
  }

  /** Adds a line. @param {keyof Entered} name @param {string} line */
  add(name, line) {
    const before = this.#fields[name].value.trimEnd();
    this.set(name, before === "" ? `${line}\n` : `${before}\n${line}\n`);
  }

  /**
   * Judges by what was entered at once, and stores it if it can be read. A private key is forgotten.
   * @param {keyof Entered} name
   */
  async #entered(name) {
    const field = this.#fields[name];
    if (isPrivateKey(field.value)) {
      field.value = this.#unstored[name] ?? settings()[name] ?? "";
      fill(this.#problem, PRIVATE);
      return;
    }
    const { value } = field;
    this.#unstored[name] = value;
    fill(this.#problem);
    this.#sayFirst();
    this.element.dispatchEvent(new CustomEvent("settings"));
    try {
      await checkPolicy(policyFor({}, { allowedSigners: "", revoked: "", threshold: "", compatible: "", [name]: value }, undefined), this.#places());
    } catch (error) {
      if (field.value === value) fill(this.#problem, `This was not stored: ${/** @type {Error} */ (error).message}.`);
      return;
    }
    if (field.value !== value) return;
    delete this.#unstored[name];
    remember(name, value);
    this.#sayForgets();
  }

  async #load() {
    const [file] = this.#file.files ?? [];
    if (!file) return;
    this.#file.value = "";
    const kind = await kindOf(file);
    if (kind.kind === "signers") {
      this.set("allowedSigners", kind.text);
      return;
    }
    const bare = "These are public keys without names. Write the name of the bundles that each may sign, and namespaces=\"sealift\", before the key.";
    fill(this.#problem, kind.kind === "private-key" ? PRIVATE : kind.kind === "keys" ? bare : file.size > MAX_BYTES ? "This file is too large for allowed signers." : "This file contains no allowed signers.");
  }

  #forgetVersions() {
    forgetVersions();
    this.element.dispatchEvent(new CustomEvent("settings"));
  }

  #sayFirst() {
    fill(this.#first, this.canChange("allowedSigners") && this.#fields.allowedSigners.value.trim() === "" && FIRST);
  }

  #sayForgets() {
    fill(this.#forgets, !this.#isReadonly && (forgets()
      ? "This browser keeps nothing for this page: what you enter, and the highest versions seen, are forgotten when the page is closed."
      : "This browser stores these settings, and the highest version of each name that was safe here."));
  }
}
