// The list of several bundles, and the sum of their verdicts.

import { fill, h, icon } from "./dom.js";
import { count, number } from "./words.js";

/** @typedef {import("./check.js").Check} Check */

export class Rows {
  sum = h("p", { class: "sum", role: "status" });
  list = h("ul", { class: "list", "aria-label": "Bundles", tabIndex: -1 });
  #choose;

  /** @param {(at: number) => void} choose */
  constructor(choose) {
    this.#choose = choose;
    this.list.hidden = true;
  }

  /**
   * Rows are updated in place, so that they keep the focus.
   * @param {Check[]} checks
   * @param {number} selected
   * @param {boolean} isFolded Whether all views are shown, so that no list is needed to choose one.
   */
  show(checks, selected, isFolded) {
    const rows = checks.length < 2 ? [] : checks;
    this.sum.hidden = rows.length === 0;
    this.list.hidden = rows.length === 0 || isFolded;
    const sum = rows.length === 0 ? "" : sumOf(rows);
    if (this.sum.textContent !== sum) this.sum.textContent = sum;
    while (this.list.children.length > rows.length) this.list.lastElementChild?.remove();
    rows.forEach(({ finding, name }, at) => {
      const button = this.list.children[at]?.querySelector("button") ?? h("button", { type: "button", onclick: () => this.#choose(at) });
      if (!button.isConnected) this.list.append(h("li", {}, button));
      button.className = finding.tone;
      button.setAttribute("aria-current", String(at === selected));
      fill(button, icon(finding.tone), h("span", {}, h("bdi", {}, name), h("span", { class: "quiet" }, finding.title)));
    });
  }
}

/** @param {Check[]} checks */
function sumOf(checks) {
  const findings = checks.map(({ finding }) => finding);
  if (findings.some(({ state }) => state === "checking")) return `Checking ${count(checks.length, "bundle")} …`;
  const older = findings.filter(({ state }) => state === "older").length;
  const safe = `${number(findings.filter(({ ok }) => ok).length)} of ${count(checks.length - older, "bundle")} safe to install`;
  return older === 0 ? `${safe}.` : `${safe}; ${count(older, "older one is", "older ones are")} left aside.`;
}
