// <sealift-verifier>: a place to drop a bundle, and what there is to say of it.

import { openBundle } from "../bundle.js";
import { SealiftError } from "../errors.js";
import { code } from "../threads.js";
import { ElementBase, fill, h, icon } from "./dom.js";
import { forgetVersion, highest, sawVersion } from "./memory.js";
import { changes, identity, layout, panel, signers } from "./panels.js";
import { offer, preview } from "./preview.js";
import { settingsForm } from "./settings.js";
import { sheet } from "./style.js";
import { Tree } from "./tree.js";
import { wordsOfFault, wordsOfHead, wordsOfSound } from "./verdict.js";
import { bytes, duration } from "./words.js";

/** @typedef {import("../../types.js").BundleSource} BundleSource */

/** Seconds over which the rate is taken. */
const RATE_SECONDS = 3;

/**
 * Attributes: `src`, a bundle to check at once; `trust-src`, a file of allowed signers that the page fixes; `deep`, to check contents unless
 * the person says otherwise. It sends the event "sealift-verdict", whose detail is what "Save the report" writes.
 */
export class SealiftVerifier extends ElementBase {
  static observedAttributes = ["src", "trust-src"];

  #root = this.attachShadow({ mode: "open" });
  /** What is being checked; a later one ends it. @type {Run | undefined} */
  #run;
  #view = h("div", { class: "view" });
  /** @type {ReturnType<typeof settingsForm>} */
  #settings = settingsForm({});
  /** What `trust-src` failed with. @type {Error | undefined} */
  #distrust;
  #deep = h("input", { type: "checkbox", id: "deep", checked: true });
  /** @type {[BundleSource, string] | undefined} */
  #last;
  #ready = Promise.resolve();

  constructor() {
    super();
    this.#root.adoptedStyleSheets = [sheet()];
  }

  connectedCallback() {
    // So that it is there when a bundle is. Should this fail, then the check does, which says so.
    code().catch(() => {});
    this.#deep.checked = this.getAttribute("deep") !== "no";
    this.#ready = this.#build();
    this.addEventListener("dragover", (event) => {
      event.preventDefault();
      this.#root.querySelector(".drop")?.classList.add("over");
    });
    this.addEventListener("dragleave", () => this.#root.querySelector(".drop")?.classList.remove("over"));
    this.addEventListener("drop", (event) => {
      event.preventDefault();
      this.#root.querySelector(".drop")?.classList.remove("over");
      const [file] = event.dataTransfer?.files ?? [];
      if (file) this.check(file, file.name);
    });
    this.#checkSrc();
  }

  disconnectedCallback() {
    this.#run?.end();
    this.#run = undefined;
  }

  /**
   * @param {string} name
   * @param {string | null} before
   * @param {string | null} after
   */
  attributeChangedCallback(name, before, after) {
    if (!this.isConnected || before === after) return;
    if (name === "trust-src") this.#ready = this.#build();
    else this.#checkSrc();
  }

  /**
   * Checks a bundle, and shows what comes of it. One that is being checked is left.
   * @param {BundleSource} source
   * @param {string} [name]
   */
  async check(source, name = "the bundle") {
    this.#run?.end();
    this.#last = [source, name];
    const tell = (/** @type {object} */ report) => this.dispatchEvent(new CustomEvent("sealift-verdict", { detail: report, bubbles: true, composed: true }));
    const run = new Run(name, this.#view, this.#deep.checked, () => this.#settings.policy(), tell);
    this.#run = run;
    await this.#ready;
    if (this.#run !== run) return;
    if (this.#distrust) return run.fail(this.#distrust);
    await run.check(source);
  }

  #checkSrc() {
    const src = this.getAttribute("src");
    if (src) this.check(new URL(src, document.baseURI), src);
  }

  async #build() {
    const trust = this.getAttribute("trust-src");
    this.#distrust = undefined;
    let fixedSigners;
    if (trust) {
      try {
        const response = await fetch(new URL(trust, document.baseURI));
        if (!response.ok) throw new SealiftError("io", `${trust}: the server answers ${response.status}`);
        fixedSigners = await response.text();
      } catch (error) {
        // Whoever fixed the signers is not to be replaced by what this browser remembers.
        fixedSigners = "";
        this.#distrust = /** @type {Error} */ (error);
      }
    }
    this.#settings = settingsForm({ fixedSigners });
    this.#settings.element.addEventListener("settings", () => this.#judge());
    fill(this.#root, this.#drop(), this.#view, this.#settings.element);
  }

  /** By what was entered now. What could not be judged before is checked from the start. */
  #judge() {
    if (this.#run?.isUnjudged && this.#last) this.check(...this.#last);
    else this.#run?.judge();
  }

  #drop() {
    const choose = h("input", { type: "file", id: "file", onchange: () => {
      const [file] = choose.files ?? [];
      if (file) this.check(file, file.name);
      choose.value = "";
    } });
    const url = h("input", { type: "text", inputMode: "url", id: "url", placeholder: "or an address, such as /updates/os.sealift", "aria-label": "Address of a bundle", autocomplete: "off", spellcheck: false });
    const fetchIt = (/** @type {Event} */ event) => {
      event.preventDefault();
      if (url.value.trim() !== "") this.#checkUrl(url.value.trim());
    };
    return h("section", { class: "drop", "aria-label": "Choose a bundle" },
      h("div", { class: "choose" }, h("label", { htmlFor: "file", class: "button" }, "Choose a bundle"), choose, h("span", { class: "quiet wide" }, "or drop one here. It stays on this computer.")),
      h("form", { onsubmit: fetchIt }, url, h("button", { type: "submit" }, "Check")),
      h("div", {}, this.#deep, h("label", { htmlFor: "deep" }, " Check the contents of all files, too")));
  }

  /** @param {string} address */
  #checkUrl(address) {
    try {
      this.check(new URL(address, document.baseURI), address);
    } catch {
      this.check(new Blob([]), address);
    }
  }
}

/** One bundle on the page, from its choice until another one is chosen. */
class Run {
  #controller = new AbortController();
  /** @type {import("../../types.js").Bundle | undefined} */
  #bundle;
  /** @type {import("../../types.js").Bundle | undefined} */
  #older;
  /** @type {import("../../types.js").Head | undefined} */
  #head;
  /** @type {import("../../types.js").Verdict | undefined} */
  #verdict;
  /** @type {import("../../types.js").Verified | undefined} */
  #verified;
  /** @type {(Error & { code?: string }) | undefined} */
  #error;
  /** @type {Tree | undefined} */
  #tree;
  #start = performance.now();
  #banner = h("div", { class: "banner work", role: "status", "aria-live": "polite" });
  #progress = h("div", { class: "progress" });
  #signers = h("div");
  #identity = h("div");
  #files = h("div");
  #changes = h("div");
  #layout = h("div");
  #report = h("div");
  /** @type {[at: number, bytes: number][]} */
  #pace = [];

  /**
   * @param {string} name
   * @param {HTMLElement} view
   * @param {boolean} deep
   * @param {() => import("../../types.js").Policy} policy What the administrator says by now.
   * @param {(report: object) => void} tell
   */
  constructor(name, view, deep, policy, tell) {
    this.name = name;
    this.deep = deep;
    this.policy = policy;
    this.tell = tell;
    fill(view, this.#banner, this.#progress, this.#signers, this.#identity, this.#files, this.#changes, this.#layout, this.#report);
    this.#say({ tone: "work", title: "Reading who signed it", text: "" });
  }

  /** Whether what the administrator entered could not be read. */
  get isUnjudged() {
    return this.#error?.code === "trust-file";
  }

  end() {
    this.#controller.abort();
    this.#bundle?.close();
    this.#older?.close();
    this.#tree?.close();
  }

  /** @param {BundleSource} source */
  async check(source) {
    const { signal } = this.#controller;
    try {
      const bundle = await openBundle(source, { ...this.policy(), signal, onHead: (head, verdict) => this.#takeHead(head, verdict) });
      if (signal.aborted) return bundle.close();
      this.#bundle = bundle;
      // Something else may have been entered meanwhile.
      await this.judge();
      const shown = this.#show(bundle);
      // It fails with the check where that is ended, which says so.
      shown.catch(() => {});
      this.#verified = await bundle.verify({ deep: this.deep, signal, onProgress: (progress) => this.#takeProgress(progress) });
      await shown;
    } catch (error) {
      if (signal.aborted) return;
      return this.fail(/** @type {Error} */ (error));
    }
    this.#settle();
  }

  /** @param {Error & { code?: string }} error */
  fail(error) {
    this.#error = error;
    this.#settle();
  }

  /** Judges by what the administrator says now, and by the versions that were seen. */
  async judge() {
    const bundle = this.#bundle;
    if (!bundle) return;
    const { signal } = this.#controller;
    try {
      // What is not said any more is not to be as it was.
      const floor = highest(bundle.head.name);
      this.#takeHead(bundle.head, await bundle.judge({ revoked: undefined, threshold: undefined, ...this.policy(), floor }));
    } catch (error) {
      if (!signal.aborted) this.fail(/** @type {Error} */ (error));
      return;
    }
    if (this.#verified) this.#settle();
  }

  /**
   * @param {import("../../types.js").Head} head
   * @param {import("../../types.js").Verdict} verdict
   */
  #takeHead(head, verdict) {
    if (this.#controller.signal.aborted) return;
    this.#head = head;
    this.#verdict = verdict;
    if (!this.#verified && !this.#error) this.#say(wordsOfHead(head, verdict));
    fill(this.#signers, signers(verdict));
    const forget = () => {
      forgetVersion(head.name);
      fill(this.#identity, identity(head, undefined, forget));
    };
    fill(this.#identity, identity(head, highest(head.name), forget));
  }

  /** @param {import("../../types.js").Progress} progress */
  #takeProgress({ bytes: done, bytesTotal, seconds }) {
    if (this.#controller.signal.aborted) return;
    this.#pace.push([seconds, done]);
    while (this.#pace.length > 2 && seconds - this.#pace[0][0] > RATE_SECONDS) this.#pace.shift();
    const [since, before] = this.#pace[0];
    const rate = seconds > since ? (done - before) / (seconds - since) : 0;
    const left = rate > 0 && seconds > 0.5 ? `, ${bytes(rate)}/s, ${duration((bytesTotal - done) / rate)} left` : "";
    const bar = this.#progress.querySelector("progress") ?? h("progress", { "aria-label": "Bytes checked" });
    bar.max = Math.max(1, bytesTotal);
    bar.value = done;
    const text = `${bytes(done)} of ${bytes(bytesTotal)}${left}`;
    fill(this.#progress, bar, h("span", { class: "quiet" }, text), h("button", { type: "button", onclick: () => this.#stop() }, "Stop"));
  }

  #stop() {
    this.#controller.abort();
    fill(this.#progress);
    this.#say({ tone: "doubt", title: "You stopped it: nothing can be said of its bytes", text: "" });
  }

  /** Shows what is in it. @param {import("../../types.js").Bundle} bundle */
  async #show(bundle) {
    if (bundle.head.delta) {
      const edits = await bundle.edits();
      const counts = { added: 0, changed: 0, metadata: 0, removed: 0 };
      for (const { kind } of edits) counts[kind] += 1;
      fill(this.#changes, panel("What it changes", ...changes(counts, edits)));
    } else {
      const tree = new Tree(bundle);
      this.#tree = tree;
      const place = h("div", { class: "preview", "aria-live": "polite" }, h("p", { class: "quiet" }, "Choose a file to see what is in it."));
      tree.element.addEventListener("choose", (event) => preview(place, bundle, /** @type {CustomEvent} */ (event).detail));
      fill(this.#files, panel("What is in it", h("div", { class: "files" }, tree.element, place)));
      await tree.show();
      fill(this.#changes, this.#comparison(bundle));
    }
    fill(this.#layout, await layout(bundle));
  }

  /** @param {import("../../types.js").Bundle} bundle */
  #comparison(bundle) {
    const result = h("div", { role: "status" });
    const choose = h("input", { type: "file", id: "older", onchange: async () => {
      const [file] = choose.files ?? [];
      choose.value = "";
      if (!file) return;
      fill(result, h("p", { class: "quiet" }, "Comparing …"));
      try {
        this.#older?.close();
        this.#older = await openBundle(file, { signal: this.#controller.signal });
        const { head } = this.#older;
        const comparison = await bundle.compare(this.#older);
        fill(result, h("p", { class: "quiet" }, `Against ${head.name} version ${head.version}, in ${file.name}. Who signed that one was not asked.`), ...changes(comparison, comparison.rows));
      } catch (error) {
        fill(result, h("p", { class: "fault" }, `It cannot be compared: ${/** @type {Error} */ (error).message}`));
      }
    } });
    return panel("What changed", h("p", {}, h("label", { htmlFor: "older", class: "button" }, "Choose the bundle before"), choose), result);
  }

  /** @param {import("./verdict.js").Words} words */
  #say({ tone, title, text }) {
    const names = { good: "good", bad: "bad", doubt: "doubt", work: "work" };
    this.#banner.className = `banner ${tone}`;
    const message = this.#error && h("p", { class: "quiet" }, h("bdi", {}, this.#error.message));
    fill(this.#banner, icon(names[tone]), h("div", {}, h("h2", {}, title), text !== "" && h("p", {}, text), message,
      h("p", { class: "quiet" }, h("bdi", {}, this.name))));
  }

  /** All is known: the verdict, the report. */
  #settle() {
    const [verified, error] = [this.#verified, this.#error];
    fill(this.#progress);
    if (error) {
      this.#say(wordsOfFault(error));
    } else if (verified && this.#verdict) {
      this.#say(wordsOfSound({ ...verified, verdict: this.#verdict }));
      const { name, version } = verified.head;
      if (this.#verdict.trusted) sawVersion(name, version);
    }
    const report = this.#write();
    const save = () => offer(new Blob([JSON.stringify(report, null, 2), "\n"]), `${this.#head?.name ?? "bundle"}-report.json`);
    fill(this.#report, h("p", {}, h("button", { type: "button", onclick: save }, "Save the report")));
    this.tell(report);
  }

  /** What was found, for a file. */
  #write() {
    const { signed: _, ...head } = this.#head ?? { signed: undefined };
    const error = this.#error ?? this.#verdict?.error;
    return {
      file: this.name,
      checked: new Date().toISOString(),
      sound: this.#verified !== undefined,
      trusted: this.#verdict?.trusted ?? false,
      error: error && { kind: error.code ?? null, message: error.message },
      deep: this.deep,
      seconds: (performance.now() - this.#start) / 1000,
      head: this.#head && head,
      verdict: this.#verdict,
      summary: this.#verified?.summary,
    };
  }
}
