// <sealift-verifier>: a drop area for bundles, their results, and a form field that is valid when the bundles are safe.

import { ready } from "../open.js";
import { Check } from "./check.js";
import { Chooser } from "./chooser.js";
import { Doubt } from "./doubt.js";
import { ElementBase, fill, h } from "./dom.js";
import { NOTHING } from "./finding.js";
import { attend, hindrance, valueOf } from "./gate.js";
import { basesAmong, gathered } from "./gathered.js";
import { isOurs, memory } from "./memory.js";
import { POLICY_ATTRIBUTES, policyFor } from "./policy.js";
import { listen } from "./reach.js";
import { Rows } from "./rows.js";
import { OLD, Rules } from "./rules.js";
import { nameOfVolumes } from "./sets.js";
import { Settings } from "./settings.js";
import { sheet } from "./style.js";
import { View } from "./view.js";
import { count } from "./words.js";

/** @typedef {import("../../types.js").BundleSource} BundleSource */
/** @typedef {{ check: Check, view: View, said: string, wasOk: boolean }} Item */

/** Milliseconds between two readings of the rules while a bundle is safe by them, so that a form never takes it by old ones. */
const AGAIN = OLD * 0.75;

/** The elements in a document; one of them receives dropped files. @type {Set<SealiftVerifier>} */
const present = new Set();

/** Its attributes, events and functions are documented in ../../element.d.ts. */
export class SealiftVerifier extends ElementBase {
  static formAssociated = true;
  static observedAttributes = ["src", "base-src", "deep", "hide", "multiple", "required", "name", "variant", "wasm-url", "worker-url", "inside-url", ...POLICY_ATTRIBUTES];

  #internals = this.attachInternals();
  #root = this.attachShadow({ mode: "open", delegatesFocus: true });
  #chooser = new Chooser();
  #settings = new Settings(() => this.#places());
  #rows = new Rows((at) => this.#select(this.#items[at]));
  #views = h("div");
  /** @type {Item[]} */
  #items = [];
  /** @type {Item | undefined} */
  #selected;
  #rules = new Rules(this);
  /** @type {Promise<void> | undefined} */
  #refreshing;
  #connected = new AbortController();
  #attended = new AbortController();
  /** Only the latest selection counts. */
  #choice = 0;
  #isDisabled = false;
  /** Whether it is in a document, or is being moved to another place. */
  #isHere = false;
  /** Attributes that changed while it was being moved. @type {Set<string>} */
  #missed = new Set();
  /** The nodes above it, from which events are told once it is removed. @type {EventTarget[]} */
  #above = [];
  /** The value of `ok` that was told last. */
  #toldOk = false;

  constructor() {
    super();
    this.#root.adoptedStyleSheets = [sheet()];
    fill(this.#root, this.#chooser.element, this.#chooser.notes, this.#rows.sum, this.#rows.list, this.#views, this.#settings.element);
    this.#settings.element.addEventListener("settings", () => this.#judge());
    this.#chooser.element.addEventListener("files", (event) => this.#take(/** @type {CustomEvent} */ (event).detail));
    this.#chooser.element.addEventListener("address", (event) => this.#checkAddress(/** @type {CustomEvent} */ (event).detail, true));
  }

  connectedCallback() {
    // A wrong address of the module or of the worker shows at once, and not with the first bundle.
    ready(this.#places()).catch((error) => this.#chooser.warn(/** @type {Error} */ (error).message));
    listen();
    this.#connected = new AbortController();
    const { signal } = this.#connected;
    present.add(this);
    this.#above = pathAbove(this);
    document.addEventListener("dragover", (event) => this.#dragOver(event), { signal });
    document.addEventListener("drop", (event) => this.#drop(event), { signal });
    document.addEventListener("dragleave", () => this.#chooser.highlight(false), { signal });
    document.addEventListener("visibilitychange", () => this.#look(), { signal });
    window.addEventListener("pageshow", () => this.#look(), { signal });
    const timer = setInterval(() => document.visibilityState === "visible" && this.#items.some(({ check }) => check.finding.ok) && this.#refresh(), AGAIN);
    signal.addEventListener("abort", () => clearInterval(timer));
    // Another page of this site has seen a later version, or changed the trusted keys.
    window.addEventListener("storage", ({ key }) => isOurs(key) && this.#loadPolicy(), { signal });
    memory.addEventListener("seen", () => this.#items.forEach(({ check }) => check.compareVersions()), { signal });
    this.#attend();
    const missed = [...this.#missed];
    this.#missed.clear();
    // It was only moved: its checks and their listeners stay.
    if (this.#isHere) {
      missed.forEach((name) => this.#attributeChanged(name));
      this.#update();
      return;
    }
    this.#isHere = true;
    this.#chooser.deep = this.getAttribute("deep") !== "no";
    this.#update();
    this.#loadPolicy();
    this.#checkSrc();
  }

  disconnectedCallback() {
    present.delete(this);
    this.#connected.abort();
    this.#attended.abort();
    // An element that is moved is back at once.
    queueMicrotask(() => {
      if (this.isConnected || !this.#isHere) return;
      this.#isHere = false;
      this.#rules.stop();
      if (this.#items.length > 0) this.reset();
    });
  }

  /**
   * @param {string} name
   * @param {string | null} before
   * @param {string | null} after
   */
  attributeChangedCallback(name, before, after) {
    if (before === after) return;
    if (this.isConnected) this.#attributeChanged(name);
    else if (this.#isHere) this.#missed.add(name);
  }

  /** @param {string} name */
  #attributeChanged(name) {
    if (name === "settings") this.#update();
    if (POLICY_ATTRIBUTES.includes(name)) return this.#loadPolicy();
    if (name === "src") return this.#checkSrc();
    if (name === "base-src") return this.#items.forEach(({ check, view }) => (check.rebase(), view.compareWithBase()));
    if (name === "wasm-url" || name === "worker-url" || name === "inside-url") {
      this.#chooser.warn();
      return this.#items.forEach(({ check }) => void check.restart());
    }
    if (name === "deep") {
      this.#chooser.deep = this.getAttribute("deep") !== "no";
      if (this.#chooser.deep) this.#items.forEach(({ check }) => check.deepen());
    }
    this.#update();
  }

  formAssociatedCallback() {
    if (this.isConnected) this.#attend();
    this.#update();
  }

  #attend() {
    this.#attended.abort();
    this.#attended = new AbortController();
    if (this.form) attend(this, this.form, this.#attended.signal);
  }

  /** Timers do not fire while a page is asleep. */
  #look() {
    if (document.visibilityState !== "visible") return;
    for (const { check } of this.#items) check.look();
    if (this.#rules.isOld) this.#refresh();
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
    return { wasmUrl: this.getAttribute("wasm-url") ?? undefined, workerUrl: this.getAttribute("worker-url") ?? undefined, insideUrl: this.getAttribute("inside-url") ?? undefined };
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

  /** Whether there are bundles, and all are safe to install. Older ones beside a newer one are left aside. */
  get ok() {
    const findings = this.#items.map(({ check }) => check.finding);
    return findings.some(({ ok }) => ok) && findings.every(({ ok, state }) => ok || state === "older");
  }

  /** Whether a form takes a bundle from it. */
  get carries() {
    return this.ok && this.name !== "" && !this.#isDisabled;
  }

  /** Whether the rules were read so long ago that a form takes nothing by them. */
  get isOld() {
    return this.#rules.isOld;
  }

  get variant() {
    return this.getAttribute("variant") ?? (this.form ? "compact" : "full");
  }

  get #isCompact() {
    return this.variant === "compact";
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

  /**
   * Reads the rules again, and files that may have been replaced unnoticed. Resolves to whether all bundles are safe by what was found; a form that
   * is submitted waits for it.
   */
  async recheck() {
    await this.#refresh();
    await Promise.all(this.#items.map(({ check }) => check.reread()));
    return this.ok;
  }

  stop() {
    for (const { check } of this.#items) check.stop();
  }

  /** Restores the state before anything was selected. */
  reset() {
    this.#clear();
    this.#publish();
    this.#tell();
    this.#emit("sealift-reset", undefined);
  }

  focus(/** @type {FocusOptions | undefined} */ options) {
    (this.#selected?.view.banner ?? this.#chooser.input).focus(options);
  }

  #clear() {
    this.#choice += 1;
    for (const item of this.#items) close(item);
    this.#items = [];
    this.#selected = undefined;
    fill(this.#views);
    this.#chooser.say();
  }

  /** Drops one bundle of several. The focus goes to the next one. @param {Check} check */
  #remove(check) {
    const at = this.#items.findIndex((item) => item.check === check);
    const [item] = this.#items.splice(at, 1);
    close(item);
    item.view.element.remove();
    const next = this.#items[at] ?? this.#items.at(-1);
    if (!next) this.reset();
    this.#compareItems();
    if (this.#selected === item) this.#select(next);
    this.#publish();
    this.#tell();
    (next?.view.banner ?? this.#chooser.input).focus();
  }

  /**
   * @param {{ source: BundleSource, name: string, fault?: Error, bases?: import("./check.js").Base[] }[]} sources `fault` states why there is nothing to
   * read.
   * @param {boolean} [isAsked] Whether the user asked, and so waits for the verdict.
   */
  async #start(sources, isAsked = false) {
    this.#clear();
    // What the rules were for the bundle before may not be what they are now.
    if (!this.#rules.isNew) this.#loadPolicy();
    const listener = {
      policy: (/** @type {string | undefined} */ name) => this.#policy(name),
      bases: () => this.#bases(),
      places: () => this.#places(),
      started: (/** @type {Check} */ check) => this.#emit("sealift-start", { source: check.source, name: check.name }),
      changed: (/** @type {Check} */ check) => this.#changed(check, isAsked),
      progressed: (/** @type {Check} */ check, /** @type {import("../../types.js").Progress} */ progress) => this.#progressed(check, progress),
      waits: (/** @type {Check} */ check, /** @type {import("../../types.js").Wait | undefined} */ wait) => this.#items.find((each) => each.check === check)?.view.wait(wait),
      isLocked: () => this.#isReadonly,
    };
    const portal = {
      judge: () => this.#judge(),
      hides: (/** @type {string} */ part) => this.#hides(part),
      bases: () => this.#bases(),
      trust: (/** @type {string} */ line) => this.#settings.add("allowedSigners", line),
      canTrust: () => this.#settings.canChange("allowedSigners"),
      isLocked: () => this.#isReadonly,
      isCompact: () => this.#isCompact,
      remove: (/** @type {Check} */ check) => this.#remove(check),
    };
    this.#items = sources.map(({ source, name, fault, bases }) => {
      const check = new Check(source, name, this.#chooser.deep, listener, fault, bases);
      return { check, view: new View(check, portal), said: "", wasOk: false };
    });
    const items = this.#items;
    fill(this.#views, items.map(({ view }) => view.element));
    this.#select(items[0]);
    this.#tell();
    if (isAsked) items[0]?.view.banner.scrollIntoView({ block: "nearest" });
    for (const item of items) {
      if (this.#items !== items) return;
      if (!item.check.isRead) await item.check.run();
    }
  }

  /** @param {Item | undefined} item */
  #select(item) {
    this.#selected = item;
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
    this.#compareItems();
    this.#publish();
    const { state, ok, title, error } = check.finding;
    const said = JSON.stringify([state, title, error]);
    // Work in progress is only announced if a bundle was safe before and is no longer known to be.
    if (said === item.said || (state === "checking" && !item.wasOk)) return this.#tell();
    item.said = said;
    item.wasOk = ok;
    const isEnd = this.#items.every(({ check }) => check.finding.state !== "checking");
    const isList = this.#items.length > 1 && !this.#isCompact;
    if (isAsked && isEnd && this.#hasIdleFocus()) (isList ? this.#rows.list : this.#items[0].view.banner).focus();
    this.#toldOk = this.ok;
    this.#emit("sealift-verdict", { ok: this.ok, state, source: check.source, name: check.name, report: check.report, complete: check.complete });
  }

  /** Tells a change of `ok` that is no bundle's: one was dropped, or another was chosen. */
  #tell() {
    if (this.ok === this.#toldOk) return;
    this.#toldOk = this.ok;
    this.#emit("sealift-verdict", { ok: this.ok, state: this.finding.state });
  }

  /** Finds the bundles that are older than another one that is safe. */
  #compareItems() {
    for (const { check } of this.#items) {
      const others = this.#items.filter((other) => other.check !== check && other.check.finding.ok && other.check.facts.head?.name === check.facts.head?.name);
      check.besides(others.map((other) => other.check.facts.head?.version ?? "0"));
    }
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
    const event = () => new CustomEvent(type, { detail, bubbles: true, composed: true });
    this.dispatchEvent(event());
    if (this.isConnected) return;
    // Listeners above the place from which it was removed hear of it, too.
    this.#above.find((node) => !(node instanceof Node) || node.isConnected)?.dispatchEvent(event());
  }

  /** Updates the form's value, and shows the list. */
  #publish() {
    const checks = this.#items.map(({ check }) => check);
    const safe = checks.filter(({ finding }) => finding.ok);
    const bad = !this.ok && checks.find(({ finding }) => !finding.ok && finding.state !== "older");
    const lack = this.name === "" ? undefined : safe.map(hindrance).find((words) => words !== undefined);
    const anchor = this.#chooser.isOpen ? this.#chooser.input : this.#selected?.view.banner;
    if (bad) this.#internals.setValidity({ customError: true }, checks.length > 1 ? `${bad.name}: ${bad.finding.title}` : bad.finding.title, anchor);
    else if (lack) this.#internals.setValidity({ customError: true }, lack, anchor);
    else if (checks.length === 0 && this.hasAttribute("required")) this.#internals.setValidity({ valueMissing: true }, "Choose a bundle.", anchor);
    else this.#internals.setValidity({});
    this.#internals.setFormValue(this.carries && !lack ? valueOf(this.name, safe) : null);
    const isCompact = this.#isCompact;
    for (const item of this.#items) item.view.element.hidden = !isCompact && item !== this.#selected;
    this.#rows.show(checks, this.#items.findIndex((item) => item === this.#selected), isCompact);
    this.#chooser.hasBundles(checks.length > 0);
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
    this.#chooser.update({
      hides, isDisabled: this.#isDisabled, isReadonly: this.#isReadonly, isMultiple: this.hasAttribute("multiple"), isCompact: this.#isCompact,
      isGate: this.form !== null && this.name !== "",
    });
    this.#settings.element.hidden = hides("settings") || this.#isReadonly;
    for (const { view } of this.#items) view.update();
    this.#publish();
  }

  #loadPolicy() {
    const comes = (/** @type {string} */ name) => (this.hasAttribute(name) ? "" : undefined);
    // If settings fixed by the portal are unavailable, those stored in this browser must not replace them.
    this.#settings.update({
      allowedSigners: comes("trust-src"), revoked: comes("revoked-src"),
      threshold: this.getAttribute("threshold") ?? undefined, compatible: this.getAttribute("compatible") ?? undefined,
    }, this.#isReadonly);
    this.#rules.load();
    this.#showRules();
    this.#judge();
  }

  /** Shows the settings that the site fixes, once they are known. */
  async #showRules() {
    const fixed = await this.#rules.current().catch(() => undefined);
    if (fixed) this.#settings.update(fixed, this.#isReadonly);
  }

  /** Reads the rules again, and judges by them if they have changed. */
  #refresh() {
    this.#refreshing ??= (async () => {
      if (!(await this.#rules.refresh())) return;
      await this.#showRules();
      await this.#judge();
    })().finally(() => (this.#refreshing = undefined));
    return this.#refreshing;
  }

  /** @param {string | undefined} name */
  async #policy(name) {
    return policyFor(await this.#rules.current(), this.#settings.entered, name);
  }

  async #judge() {
    await Promise.all(this.#items.map(({ check }) => check.judge()));
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
    // A delta and its bases are one row: the bases are only read.
    const read = new Set([...bases.values()].flat());
    const chosen = bundles.filter((bundle) => bases.has(bundle) || !read.has(bundle));
    const isTooMany = chosen.length > 1 && !isMultiple;
    if (isTooMany) this.reset();
    else if (chosen.length > 0) this.#start(chosen.map((bundle) => ({ ...bundle, bases: bases.get(bundle) })), true);
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

/** @param {Item} item */
function close({ check, view }) {
  check.close();
  view.close();
}

/** Returns the nodes above an element, from its parent to the document. @param {Node} element */
function pathAbove(element) {
  const above = [];
  for (let node = element.parentNode; node; node = node instanceof ShadowRoot ? node.host : node.parentNode) above.push(node);
  return above;
}

/** @param {BundleSource} source */
function nameOf(source) {
  if (source instanceof File) return source.name;
  if (Array.isArray(source)) return nameOfVolumes(source);
  return source instanceof URL || typeof source === "string" ? String(source) : "the bundle";
}
