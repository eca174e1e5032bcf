// <sealift-verifier>: a drop area for bundles, their results, and a form field that is valid when the bundles are safe.

import { code } from "../threads.js";
import { Check } from "./check.js";
import { Chooser } from "./chooser.js";
import { Doubt } from "./doubt.js";
import { ElementBase, fill, h, icon } from "./dom.js";
import { NOTHING } from "./finding.js";
import { basesAmong, gathered } from "./gathered.js";
import { isOurs, memory } from "./memory.js";
import { POLICY_ATTRIBUTES, policyFor, readFixed } from "./policy.js";
import { listen } from "./reach.js";
import { Settings } from "./settings.js";
import { sheet } from "./style.js";
import { View } from "./view.js";
import { count, number } from "./words.js";

/** @typedef {import("../../types.js").BundleSource} BundleSource */
/** @typedef {{ check: Check, view: View, said: string, wasOk: boolean }} Item */

/** The elements in a document; one of them receives dropped files. @type {Set<SealiftVerifier>} */
const present = new Set();

/** Its attributes, events and functions are documented in ../../element.d.ts. */
export class SealiftVerifier extends ElementBase {
  static formAssociated = true;
  static observedAttributes = ["src", "base-src", "deep", "hide", "multiple", "required", "name", "wasm-url", "worker-url", ...POLICY_ATTRIBUTES];

  #internals = this.attachInternals();
  #root = this.attachShadow({ mode: "open" });
  #chooser = new Chooser();
  #settings = new Settings();
  #sum = h("p", { class: "sum", role: "status" });
  #list = h("ul", { class: "list", "aria-label": "Bundles", tabIndex: -1 });
  #views = h("div");
  /** @type {Item[]} */
  #items = [];
  /** @type {Item | undefined} */
  #selected;
  /** The settings fixed by attributes; rejects if they are not available. @type {Promise<import("./policy.js").Fixed>} */
  #fixed = Promise.resolve({});
  #loading = new AbortController();
  #connected = new AbortController();
  /** Only the latest selection counts. */
  #choice = 0;
  #isDisabled = false;
  /** Whether it is in a document, or is being moved to another place. */
  #isHere = false;

  constructor() {
    super();
    this.#root.adoptedStyleSheets = [sheet()];
    fill(this.#root, this.#chooser.element, this.#chooser.notes, this.#sum, this.#list, this.#views, this.#settings.element);
    this.#list.hidden = true;
    this.#settings.element.addEventListener("settings", () => this.#judge());
    this.#chooser.element.addEventListener("files", (event) => this.#take(/** @type {CustomEvent} */ (event).detail));
    this.#chooser.element.addEventListener("address", (event) => this.#checkAddress(/** @type {CustomEvent} */ (event).detail, true));
  }

  connectedCallback() {
    // Preloads the module. If this fails, the check fails too and reports the reason.
    code(this.#places().wasmUrl).catch(() => {});
    listen();
    // Firefox highlights a required field only if it is focusable.
    if (!this.hasAttribute("tabindex")) this.tabIndex = -1;
    this.#connected = new AbortController();
    const { signal } = this.#connected;
    present.add(this);
    document.addEventListener("dragover", (event) => this.#dragOver(event), { signal });
    document.addEventListener("drop", (event) => this.#drop(event), { signal });
    document.addEventListener("dragleave", () => this.#chooser.highlight(false), { signal });
    // Timers do not fire while a page is asleep.
    const look = () => document.visibilityState === "visible" && this.#items.forEach(({ check }) => check.look());
    document.addEventListener("visibilitychange", look, { signal });
    window.addEventListener("pageshow", look, { signal });
    // Another page of this site has seen a later version, or changed the trusted keys.
    window.addEventListener("storage", ({ key }) => isOurs(key) && this.#loadPolicy(), { signal });
    memory.addEventListener("seen", () => this.#items.forEach(({ check }) => check.compareVersions()), { signal });
    this.#update();
    // It was only moved: its checks and their listeners stay.
    if (this.#isHere) return;
    this.#isHere = true;
    this.#chooser.deep = this.getAttribute("deep") !== "no";
    this.#loadPolicy();
    this.#checkSrc();
  }

  disconnectedCallback() {
    present.delete(this);
    this.#connected.abort();
    // An element that is moved is back at once.
    queueMicrotask(() => {
      if (this.isConnected || !this.#isHere) return;
      this.#isHere = false;
      this.#loading.abort();
      if (this.#items.length > 0) this.reset();
    });
  }

  /**
   * @param {string} name
   * @param {string | null} before
   * @param {string | null} after
   */
  attributeChangedCallback(name, before, after) {
    if (!this.isConnected || before === after) return;
    if (name === "settings") this.#update();
    if (POLICY_ATTRIBUTES.includes(name)) return this.#loadPolicy();
    if (name === "src") return this.#checkSrc();
    if (name === "base-src") return this.#items.forEach(({ check, view }) => (check.rebase(), view.compareWithBase()));
    if (name === "wasm-url" || name === "worker-url") return this.#items.forEach(({ check }) => void check.restart());
    if (name === "deep") {
      this.#chooser.deep = after !== "no";
      if (this.#chooser.deep) this.#items.forEach(({ check }) => check.deepen());
    }
    this.#update();
  }

  /** @param {boolean} isDisabled */
  formDisabledCallback(isDisabled) {
    this.#isDisabled = isDisabled;
    this.#update();
  }

  formResetCallback() {
    this.reset();
    this.#checkSrc();
  }

  #places() {
    return { wasmUrl: this.getAttribute("wasm-url") ?? undefined, workerUrl: this.getAttribute("worker-url") ?? undefined };
  }

  get form() {
    return this.#internals.form;
  }

  get name() {
    return this.getAttribute("name") ?? "";
  }

  set name(name) {
    this.setAttribute("name", name);
  }

  get type() {
    return "sealift-verifier";
  }

  get willValidate() {
    return this.#internals.willValidate;
  }

  get validity() {
    return this.#internals.validity;
  }

  get validationMessage() {
    return this.#internals.validationMessage;
  }

  checkValidity() {
    return this.#internals.checkValidity();
  }

  reportValidity() {
    return this.#internals.reportValidity();
  }

  /** Whether there are bundles, and all are safe to install. */
  get ok() {
    return this.#items.length > 0 && this.#items.every(({ check }) => check.finding.ok);
  }

  /** The facts about the displayed bundle. */
  get finding() {
    return this.#selected?.check.finding ?? NOTHING;
  }

  get reports() {
    return this.#items.map(({ check }) => check.report);
  }

  /**
   * Checks a bundle, and shows the result. Previous bundles are dropped.
   * @param {BundleSource} source
   * @param {string} [name]
   */
  check(source, name = nameOf(source)) {
    return this.#start([{ source, name }]);
  }

  stop() {
    for (const { check } of this.#items) check.stop();
  }

  /** Restores the state before anything was selected. */
  reset() {
    this.#clear();
    this.#emit("sealift-reset", undefined);
  }

  focus(/** @type {FocusOptions | undefined} */ options) {
    (this.#selected?.view.banner ?? this.#chooser.input).focus(options);
  }

  #clear() {
    this.#choice += 1;
    for (const { check, view } of this.#items) {
      check.close();
      view.close();
    }
    this.#items = [];
    this.#selected = undefined;
    fill(this.#views);
    this.#chooser.say();
    this.#publish();
  }

  /**
   * @param {{ source: BundleSource, name: string, fault?: Error, bases?: import("./check.js").Base[] }[]} sources `fault` states why there is nothing to
   * read.
   * @param {boolean} [isAsked] Whether the user asked, and so waits for the verdict.
   */
  async #start(sources, isAsked = false) {
    this.#clear();
    const listener = {
      policy: (/** @type {string | undefined} */ name) => this.#policy(name),
      bases: () => this.#bases(),
      places: () => this.#places(),
      started: (/** @type {Check} */ check) => this.#emit("sealift-start", { source: check.source, name: check.name }),
      changed: (/** @type {Check} */ check) => this.#changed(check, isAsked),
      progressed: (/** @type {Check} */ check, /** @type {import("../../types.js").Progress} */ progress) => this.#progressed(check, progress),
    };
    const portal = {
      judge: () => this.#judge(),
      hides: (/** @type {string} */ part) => this.#hides(part),
      bases: () => this.#bases(),
      trust: (/** @type {string} */ line) => this.#settings.add("allowedSigners", line),
      canTrust: () => this.#settings.canChange("allowedSigners"),
    };
    this.#items = sources.map(({ source, name, fault, bases }) => {
      const check = new Check(source, name, this.#chooser.deep, listener, fault, bases);
      return { check, view: new View(check, portal), said: "", wasOk: false };
    });
    const items = this.#items;
    fill(this.#views, items.map(({ view }) => view.element));
    this.#select(items[0]);
    if (isAsked) items[0]?.view.banner.scrollIntoView({ block: "nearest" });
    for (const item of items) {
      if (this.#items !== items) return;
      if (!item.check.isRead) await item.check.run();
    }
  }

  /** @param {Item | undefined} item */
  #select(item) {
    this.#selected = item;
    for (const each of this.#items) each.view.element.hidden = each !== item;
    this.#publish();
  }

  /**
   * @param {Check} check
   * @param {boolean} isAsked
   */
  #changed(check, isAsked) {
    const item = this.#items.find((each) => each.check === check);
    if (!item) return;
    item.view.show();
    this.#publish();
    const { state, ok, title, error } = check.finding;
    const said = JSON.stringify([state, title, error]);
    // Work in progress is only announced if a bundle was safe before and is no longer known to be.
    if (said === item.said || (state === "checking" && !item.wasOk)) return;
    item.said = said;
    item.wasOk = ok;
    const isEnd = this.#items.every(({ check }) => check.finding.state !== "checking");
    if (isAsked && isEnd && this.#hasIdleFocus()) (this.#items.length > 1 ? this.#list : item.view.banner).focus();
    this.#emit("sealift-verdict", { ok, state, source: check.source, name: check.name, report: check.report, complete: check.complete });
  }

  /** Whether the user is not using another control. */
  #hasIdleFocus() {
    const active = document.activeElement;
    return active === document.body || active === null || (active === this && [null, this.#chooser.input].includes(/** @type {any} */ (this.#root.activeElement)));
  }

  /**
   * @param {Check} check
   * @param {import("../../types.js").Progress} progress
   */
  #progressed(check, progress) {
    this.#items.find((each) => each.check === check)?.view.progress(progress);
    this.#emit("sealift-progress", { source: check.source, name: check.name, ...progress });
  }

  /**
   * @param {string} type
   * @param {unknown} detail
   */
  #emit(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail, bubbles: true, composed: true }));
  }

  /** Updates the form's value, and shows the list. */
  #publish() {
    const anchor = this.#chooser.isOpen ? this.#chooser.input : this.#selected?.view.banner;
    const bad = this.#items.find(({ check }) => !check.finding.ok)?.check;
    const lost = this.name !== "" && this.#items.find(({ check }) => carried(check) === undefined)?.check;
    if (bad) this.#internals.setValidity({ customError: true }, this.#items.length > 1 ? `${bad.name}: ${bad.finding.title}` : bad.finding.title, anchor);
    else if (lost) this.#internals.setValidity({ customError: true }, `${lost.name}: a form cannot send this; choose a file.`, anchor);
    else if (this.#items.length === 0 && this.hasAttribute("required")) this.#internals.setValidity({ valueMissing: true }, "Choose a bundle.", anchor);
    else this.#internals.setValidity({});
    this.#internals.setFormValue(this.#value());
    const rows = this.#items.length < 2 ? [] : this.#items;
    this.#list.hidden = this.#sum.hidden = rows.length === 0;
    const findings = rows.map(({ check }) => check.finding);
    const isEnd = findings.every(({ state }) => state !== "checking");
    const sum = rows.length === 0 ? "" : isEnd ? `${number(findings.filter(({ ok }) => ok).length)} of ${count(rows.length, "bundle")} safe to install.` : `Checking ${count(rows.length, "bundle")} …`;
    if (this.#sum.textContent !== sum) this.#sum.textContent = sum;
    // Rows are updated in place, so that they keep the focus.
    while (this.#list.children.length > rows.length) this.#list.lastElementChild?.remove();
    rows.forEach((item, at) => {
      const { finding, name } = item.check;
      const button = this.#list.children[at]?.querySelector("button") ?? h("button", { type: "button", onclick: () => this.#select(this.#items[at]) });
      if (!button.isConnected) this.#list.append(h("li", {}, button));
      button.className = finding.tone;
      button.setAttribute("aria-current", String(item === this.#selected));
      fill(button, icon(finding.tone), h("span", {}, h("bdi", {}, name), h("span", { class: "quiet" }, finding.title)));
    });
  }

  /** Returns the form's value, which contains safe bundles only. */
  #value() {
    if (!this.ok || this.name === "") return null;
    const values = this.#items.map(({ check }) => carried(check));
    const data = new FormData();
    for (const value of values) if (value !== undefined) data.append(this.name, value);
    return data;
  }

  /** An attribute "readonly" would exempt the element from form validation. */
  get #isReadonly() {
    return this.getAttribute("settings") === "readonly";
  }

  /** @param {string} part */
  #hides(part) {
    return (this.getAttribute("hide") ?? "").split(/[\s,]+/).includes(part);
  }

  #update() {
    const hides = (/** @type {string} */ part) => this.#hides(part);
    this.#chooser.update({ hides, isDisabled: this.#isDisabled, isReadonly: this.#isReadonly, isMultiple: this.hasAttribute("multiple") });
    this.#settings.element.hidden = hides("settings");
    for (const { view } of this.#items) view.update();
    this.#publish();
  }

  #loadPolicy() {
    this.#loading.abort();
    this.#loading = new AbortController();
    const { signal } = this.#loading;
    const isReadonly = this.#isReadonly;
    const comes = (/** @type {string} */ name) => (this.hasAttribute(name) ? "" : undefined);
    // If settings fixed by the portal are unavailable, those stored in this browser must not replace them.
    this.#settings.update({
      allowedSigners: comes("trust-src"), revoked: comes("revoked-src"),
      threshold: this.getAttribute("threshold") ?? undefined, compatible: this.getAttribute("compatible") ?? undefined,
    }, isReadonly);
    this.#fixed = readFixed(this, signal).then((fixed) => {
      signal.throwIfAborted();
      this.#settings.update(fixed, isReadonly);
      return fixed;
    });
    this.#fixed.catch(() => {});
    this.#judge();
  }

  /** @param {string | undefined} name */
  async #policy(name) {
    const fixed = await this.#fixed;
    return policyFor(fixed, this.#settings.entered, name);
  }

  #judge() {
    for (const { check } of this.#items) check.judge();
  }

  /** Returns the bases that `base-src` names, separated by spaces. */
  #bases() {
    const addresses = (this.getAttribute("base-src") ?? "").split(/\s+/).filter((address) => address !== "");
    return addresses.map((address) => ({ source: address, name: address }));
  }

  #checkSrc() {
    const src = this.getAttribute("src");
    if (src !== null) this.#checkAddress(src, false);
    else if (this.#items.length > 0) this.reset();
  }

  /**
   * @param {string} address
   * @param {boolean} isAsked
   */
  #checkAddress(address, isAsked) {
    try {
      const source = new URL(address, document.baseURI);
      if (!["http:", "https:", "blob:", "data:"].includes(source.protocol)) throw new TypeError(`addresses that begin with ${source.protocol} cannot be read`);
      this.#start([{ source, name: address }], isAsked);
    } catch (error) {
      this.#start([{ source: address, name: address, fault: new Doubt("address", /** @type {Error} */ (error).message) }], isAsked);
    }
  }

  /** @param {{ files: { file: File, isWithin: boolean }[], left: number }} given */
  async #take({ files, left }) {
    const choice = (this.#choice += 1);
    const { bundles, notes } = await gathered(files, left, this.#settings, () => this.#selected?.check.facts.head?.name);
    if (choice !== this.#choice) return;
    const bases = bundles.length > 1 ? await basesAmong(bundles, this.#places()) : new Map();
    if (choice !== this.#choice) return;
    if (bundles.length > 0) this.#chooser.clearAddress();
    const isMultiple = this.hasAttribute("multiple");
    // If all others are bases of one, they are checked as one bundle.
    const [[delta, own = []] = []] = bases;
    const chosen = !isMultiple && delta && bases.size === 1 && own.length === bundles.length - 1 ? [delta] : bundles;
    const isTooMany = chosen.length > 1 && !isMultiple;
    if (isTooMany) this.reset();
    else if (chosen.length > 0) this.#start(chosen.map((file) => ({ source: file, name: file.name, bases: bases.get(file) })), true);
    this.#chooser.say(isTooMany && h("p", { class: "fault" }, `${count(bundles.length, "bundle")}: choose one of them. Nothing was checked.`), notes);
  }

  /** @param {DragEvent} event */
  #isMine(event) {
    if (event.defaultPrevented || !event.dataTransfer?.types.includes("Files")) return false;
    const path = event.composedPath();
    if (path.some((target) => target instanceof HTMLInputElement && target.type === "file" && !this.#root.contains(target))) return false;
    const all = [...present];
    return (all.find((each) => path.includes(each)) ?? all.find((each) => each.#chooser.isOpen)) === this;
  }

  /** @param {DragEvent} event */
  #dragOver(event) {
    if (!this.#isMine(event)) return;
    event.preventDefault();
    this.#chooser.highlight(true);
  }

  /** @param {DragEvent} event */
  #drop(event) {
    if (!this.#isMine(event)) return;
    event.preventDefault();
    this.#chooser.highlight(false);
    if (event.dataTransfer && this.#chooser.isOpen) this.#chooser.drop(event.dataTransfer);
  }
}

/**
 * Returns what a form sends of a bundle: the file or the address. A stream was read already.
 * @param {Check} check
 */
function carried({ source, name }) {
  if (source instanceof File) return source;
  if (source instanceof Blob || source instanceof Uint8Array) return new File([/** @type {BlobPart} */ (source)], name);
  return source instanceof URL || typeof source === "string" ? String(source) : undefined;
}

/** @param {BundleSource} source */
function nameOf(source) {
  if (source instanceof File) return source.name;
  return source instanceof URL || typeof source === "string" ? String(source) : "the bundle";
}
