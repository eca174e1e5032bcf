// The view of one check. It is created once, and updated as facts become known.

import { openBundle } from "../open.js";
import { concealed } from "./concealed.js";
import { fill, h, icon } from "./dom.js";
import { forgets, forgetVersion, highest } from "./memory.js";
import { changes, damage, identity, layout, panel, proof, signers } from "./panels.js";
import { Pace } from "./pace.js";
import { Preview } from "./preview.js";
import { offer } from "./save.js";
import { bundlesOf } from "./sets.js";
import { Tree } from "./tree.js";
import { strangers } from "./strangers.js";

/** @typedef {import("./check.js").Check} Check */
/** @typedef {import("../../types.js").Bundle} Bundle */
/** @typedef {import("../../types.js").BundleSource} BundleSource */

/**
 * What the page provides to this view.
 * @typedef {object} Portal
 * @property {() => void} judge Judges all bundles again.
 * @property {(line: string) => void} trust Adds a line to the allowed signers.
 * @property {() => boolean} canTrust
 * @property {() => boolean} isLocked Whether the site alone sets the policy.
 * @property {() => boolean} isCompact Whether all but the verdict is folded.
 * @property {(check: Check) => void} remove Drops the bundle.
 * @property {(part: string) => boolean} hides
 * @property {() => { source: BundleSource, name: string }[]} bases The bundles to compare with, or over which deltas are checked.
 */

export class View {
  #check;
  #portal;
  #pace = new Pace();
  #words = h("div", { role: "status" });
  #strangers = h("div");
  /** @type {string | undefined} The facts for which the unknown signers are shown. */
  #asked;
  #damage = h("div");
  /** @type {Element} */
  #icon = h("span");
  #remove = h("button", { type: "button", class: "remove", onclick: () => this.#portal.remove(this.#check) }, "Remove");
  #banner = h("div", { class: "banner work", tabIndex: -1 }, this.#icon, h("div", {}, this.#words, this.#damage, this.#strangers), this.#remove);
  #bar = h("progress", { "aria-label": "Bytes checked" });
  #amount = h("span", { class: "quiet" });
  // A single button, so that it receives every click and keeps the focus.
  #button = h("button", { type: "button", onclick: () => this.#press() });
  #retry = h("button", { type: "button", hidden: true, onclick: () => this.#restart() }, "Try again");
  #wait = h("span", { class: "wait", role: "status" });
  #progress = h("div", { class: "progress" }, this.#bar, this.#amount, this.#wait, this.#button, this.#retry);
  #signers = h("div");
  #identity = h("div");
  #files = h("div");
  #changes = h("div");
  #layout = h("div");
  #proof = h("div");
  #summary = h("summary", {}, "Who signed it, what is in it, and the report");
  /** Everything but the verdict, which a form folds. */
  #more;
  #report = h("p", {}, h("button", { type: "button", onclick: () => this.#save() }, "Save the report"));
  /** @type {string | undefined} */
  #said;
  /** @type {Tree | undefined} */
  #tree;
  /** @type {Preview | undefined} */
  #preview;
  /** @type {Bundle | undefined} */
  #shown;
  /** Whether the files of a delta are shown, which needs its bases. */
  #isShownWhole = false;
  /** @type {Bundle | undefined} */
  #older;
  #comparison = h("div", { role: "status" });
  #comparisons = new AbortController();

  /**
   * @param {Check} check
   * @param {Portal} portal
   */
  constructor(check, portal) {
    this.#check = check;
    this.#portal = portal;
    this.#more = h("details", { class: "more" }, this.#summary, this.#signers, this.#identity, this.#files, this.#changes, this.#layout, this.#proof, this.#report);
    this.element = h("div", { class: "view" }, this.#banner, this.#progress, this.#more);
    this.#report.hidden = true;
    this.update();
    this.show();
  }

  /** The part to scroll to first. */
  get banner() {
    return this.#banner;
  }

  close() {
    this.#comparisons.abort();
    this.#tree?.close();
    this.#older?.close();
  }

  /** Updates the view with the current facts. */
  show() {
    const { finding, facts, bundle, isBusy, name } = this.#check;
    const signed = finding.ok ? signedBy(facts.verdict) : "";
    const said = JSON.stringify([finding.state, finding.title, finding.text, finding.error?.message, signed]);
    if (said !== this.#said) {
      this.#said = said;
      this.#banner.className = `banner ${finding.tone}`;
      // The signers' panel explains why signatures do not count.
      const message = finding.error && finding.error.message !== (facts.verdict && concealed(facts.verdict))?.error?.message && h("p", { class: "quiet" }, h("bdi", {}, finding.error.message));
      fill(this.#words, h("h2", {}, finding.title), finding.text !== "" && h("p", { class: "why" }, finding.text), message, h("p", { class: "quiet" }, h("bdi", {}, name), signed && [", signed by ", h("bdi", {}, signed)]));
      // Only the icon is replaced: a button beside it that has the focus keeps it.
      const shown = icon(finding.tone);
      this.#icon.replaceWith(shown);
      this.#icon = shown;
    }
    const { head, verdict } = facts;
    this.#showStrangers();
    fill(this.#damage, facts.damage && damage(facts.damage));
    fill(this.#signers, verdict && signers(verdict));
    if (head) fill(this.#identity, this.#identityOf(head));
    this.#bar.hidden = this.#amount.hidden = !isBusy;
    if (!isBusy) this.wait(undefined);
    this.#button.textContent = isBusy ? "Stop" : "Check again";
    this.#progress.hidden = !isBusy && finding.state !== "unknown";
    this.#report.hidden = isBusy || finding.state === "checking";
    fill(this.#proof, !this.#report.hidden && proof(this.#check.report));
    this.#preview?.update(finding.ok);
    if (!finding.ok) this.#tree?.closeContainers();
    if (bundle && (bundle !== this.#shown || bundle.isWhole !== this.#isShownWhole)) {
      this.#shown = bundle;
      this.#isShownWhole = bundle.isWhole;
      this.#showContents(bundle).catch(() => {}); // the bundle may be closed meanwhile
    }
  }

  /** Replaces the unknown signers only when they change: the status of a copy is shown beside its button, which must keep the focus. */
  #showStrangers() {
    const { head, verdict } = this.#check.facts;
    const trust = this.#portal.canTrust() ? this.#portal.trust : undefined;
    const asked = JSON.stringify([head?.name, verdict?.error?.code, verdict?.signers, trust !== undefined]);
    if (asked === this.#asked) return;
    this.#asked = asked;
    fill(this.#strangers, head && verdict && strangers(head, verdict, trust));
  }

  /** @param {import("../../types.js").Progress} progress */
  progress({ bytes, bytesTotal, seconds }) {
    this.#bar.max = Math.max(1, bytesTotal);
    this.#bar.value = bytes;
    fill(this.#amount, this.#pace.take(bytes, bytesTotal, seconds));
  }

  /**
   * Says that the server sends nothing, since when, and how often it was tried.
   * @param {import("../../types.js").Wait | undefined} wait
   */
  wait(wait) {
    this.#retry.hidden = wait === undefined;
    this.#amount.hidden = wait !== undefined || !this.#check.isBusy;
    if (wait === undefined) return void fill(this.#wait);
    const { seconds, attempt, attempts, reason } = wait;
    const tried = attempt > 1 ? ` This is attempt ${attempt} of ${attempts}.` : "";
    const text = `The server has sent nothing for ${seconds} s.${tried}${reason ? ` Before: ${reason}.` : ""}`;
    if (this.#wait.textContent !== text) this.#wait.textContent = text;
  }

  /** Hides or shows parts, as the page demands. */
  update() {
    this.#layout.hidden = this.#portal.hides("layout");
    const isCompact = this.#portal.isCompact();
    this.element.classList.toggle("compact", isCompact);
    if (this.#summary.hidden === isCompact) this.#more.open = !isCompact;
    this.#summary.hidden = !isCompact;
  }

  /** Compares with the bundle that the portal names, if any. */
  async compareWithBase() {
    const [base] = this.#portal.bases();
    if (base && this.#shown && !this.#shown.head.delta) await this.#compare(base.source, base.name);
  }

  #press() {
    if (this.#check.isBusy) return this.#check.stop();
    this.#restart();
  }

  #restart() {
    this.#pace = new Pace();
    fill(this.#amount);
    this.#bar.removeAttribute("value");
    this.#check.run();
  }

  #save() {
    const { report } = this.#check;
    offer(new Blob([JSON.stringify(report, null, 2), "\n"]), `${report.head?.name ?? "bundle"}-report.json`);
  }

  /** @param {import("../../types.js").Head} head */
  #identityOf(head) {
    const forget = () => {
      forgetVersion(head.name);
      this.#portal.judge();
    };
    let seen;
    try {
      const { floor, verdict } = this.#check.facts;
      const version = highest(head.name);
      // A version that only revoked keys raised does not count any more.
      const isVoid = version !== undefined && verdict !== undefined && !this.#check.finding.ok && BigInt(version) > BigInt(floor ?? -1);
      seen = this.#portal.isLocked() ? undefined : { version: isVoid ? floor : version, forget, forgets: forgets() };
    } catch {
      // The verdict reports it.
    }
    return identity(head, seen);
  }

  /** @param {Bundle} bundle */
  async #showContents(bundle) {
    if (bundle.isWhole) {
      this.#tree?.close();
      const tree = new Tree(bundle);
      const preview = new Preview(bundle, this.#check.finding.ok);
      this.#tree = tree;
      this.#preview = preview;
      tree.element.addEventListener("choose", (event) => preview.choose(/** @type {CustomEvent} */ (event).detail));
      preview.element.addEventListener("open", (event) => {
        const { entry, container } = /** @type {CustomEvent} */ (event).detail;
        tree.openContainer(entry, container);
      });
      fill(this.#files, panel("What is in it", h("div", { class: "files" }, tree.element, preview.element)));
      await tree.show();
    }
    if (!bundle.head.delta) {
      fill(this.#changes, this.#chooseOlder());
      this.compareWithBase();
    } else if (bundle.isWhole) {
      const result = await bundle.changes();
      fill(this.#changes, panel("What it changes", ...changes(result, result.rows), this.#chooseBases(bundle)));
    } else {
      this.#tree?.close();
      fill(this.#files);
      const [edits, unlisted] = [await bundle.edits(), await bundle.unlisted()];
      const counts = { added: 0, changed: 0, metadata: 0, removed: 0 };
      for (const { kind, belowNew } of edits) if (!belowNew) counts[kind] += 1;
      fill(this.#changes, panel("What it changes", ...changes(counts, edits), ...hidden(unlisted), this.#chooseBases(bundle)));
    }
    this.update();
    fill(this.#layout, await layout(bundle));
  }

  /** @param {Bundle} bundle */
  #chooseBases({ head }) {
    const isOne = head.delta?.bases.length === 1;
    const choose = h("input", { type: "file", id: "base", multiple: true, onchange: async () => {
      const files = [...(choose.files ?? [])];
      choose.value = "";
      if (files.length > 0) this.#check.checkOver(await bundlesOf(files));
    } });
    return h("p", {}, h("label", { htmlFor: "base", class: "button" }, isOne ? "Check it over its base" : "Check it over its bases"), choose);
  }

  #chooseOlder() {
    const choose = h("input", { type: "file", id: "older", multiple: true, onchange: async () => {
      const files = [...(choose.files ?? [])];
      choose.value = "";
      const [older, ...others] = await bundlesOf(files);
      if (others.length > 0) fill(this.#comparison, h("p", { class: "fault" }, `${others.length + 1} bundles: choose one of them.`));
      else if (older) this.#compare(older.source, older.name);
    } });
    return panel("What changed", h("p", {}, h("label", { htmlFor: "older", class: "button" }, "Compare with an older bundle"), choose), this.#comparison);
  }

  /**
   * @param {BundleSource} source
   * @param {string} name
   */
  async #compare(source, name) {
    const bundle = this.#shown;
    if (!bundle) return;
    this.#comparisons.abort();
    this.#comparisons = new AbortController();
    const { signal } = this.#comparisons;
    fill(this.#comparison, h("p", { class: "quiet" }, "Comparing …"));
    try {
      this.#older?.close();
      this.#older = undefined;
      const older = await openBundle(source, { ...this.#check.places, signal });
      if (signal.aborted) return older.close();
      this.#older = older;
      const result = await bundle.compare(older);
      if (signal.aborted) return;
      const [now, then] = [bundle.head, older.head];
      const isOther = now.name !== then.name;
      const isLater = !isOther && BigInt(then.version) > BigInt(now.version);
      fill(this.#comparison,
        h("p", { class: "quiet" }, `${now.name} version ${now.version} compared with ${then.name} version ${then.version}, in ${name}. Its signature is not checked for this comparison.`),
        isOther && h("p", { class: "fault" }, `These are bundles of different names: ${then.name} and ${now.name}.`),
        isLater && h("p", { class: "fault" }, `The other bundle is the newer one: version ${then.version}.`),
        ...changes(result, result.rows));
    } catch (error) {
      if (!signal.aborted) fill(this.#comparison, h("p", { class: "fault" }, `This page cannot compare them: ${/** @type {Error} */ (error).message}`));
    }
  }
}

/**
 * Returns the signers whose signatures count, by their comments or keys.
 * @param {import("../../types.js").Verdict | undefined} verdict
 */
function signedBy(verdict) {
  const names = (verdict?.signers ?? []).filter(({ trusted }) => trusted).map(({ comment, key }) => comment || key || "");
  return new Intl.ListFormat("en").format([...new Set(names)]);
}

/**
 * Says what a delta changes without listing names.
 * @param {import("../../types.js").Unlisted | undefined} unlisted
 */
function hidden({ commits, times } = { commits: [], times: false }) {
  const where = commits.length > 0 && h("p", { class: "quiet" }, "It updates OSTree commits: ", h("bdi", {}, commits.join(", ")), ". The names that change in them are known only with the base: choose it to list them here.");
  const when = times && h("p", { class: "quiet" }, "It also changes the times of files that are not listed. With the base, they are listed.");
  return [where, when];
}
