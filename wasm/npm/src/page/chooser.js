// Selection of bundles: by a file dialog, by dropping them anywhere in the document, or by URL.

import { fill, h } from "./dom.js";

/** The maximum number of files examined in a directory. */
const MAX_FILES = 1000;

/** Emits an event "files" with files in its detail, and an event "address" with a URL. */
export class Chooser {
  // Several files, also where one bundle is taken: it may be in volumes.
  #file = h("input", { type: "file", id: "file", multiple: true, onchange: () => this.#choose() });
  #address = h("input", { type: "text", inputMode: "url", id: "url", placeholder: "or an address, such as /updates/os.sealift", "aria-label": "Address of a bundle", autocomplete: "off", spellcheck: false });
  #submit = h("button", { type: "submit" }, "Check");
  #deep = h("input", { type: "checkbox", id: "deep", checked: true });
  #form = h("form", { onsubmit: (/** @type {Event} */ event) => this.#go(event) }, this.#address, this.#submit);
  #label = h("label", { htmlFor: "file", class: "button" });
  #hint = h("span", { class: "quiet wide" });
  #place = h("div", { class: "choose" }, this.#label, this.#file, this.#hint);
  #depth = h("div", {}, this.#deep, h("label", { htmlFor: "deep" }, " Check the contents of all files, too"));
  /** Notes about files that are not bundles. */
  notes = h("div", { class: "notes", role: "status" });
  #warning = h("p", { class: "fault", role: "alert" });
  element = h("section", { class: "drop", "aria-label": "Choose a bundle" }, this.#warning, this.#place, this.#form, this.#depth);
  #isDisabled = false;
  #isMultiple = false;
  #hasBundles = false;

  /** The control that receives the focus of the element. */
  get input() {
    return this.#file;
  }

  get deep() {
    return this.#deep.checked;
  }

  set deep(deep) {
    this.#deep.checked = deep;
  }

  /**
   * @param {{ hides: (part: string) => boolean, isDisabled: boolean, isReadonly: boolean, isMultiple: boolean, isCompact: boolean, isGate: boolean }} options
   *   In a gate, a form sends what is chosen: a file, and not an address.
   */
  update({ hides, isDisabled, isReadonly, isMultiple, isCompact, isGate }) {
    this.#isDisabled = isDisabled;
    this.#isMultiple = isMultiple;
    for (const field of [this.#file, this.#address, this.#submit]) field.disabled = isDisabled;
    this.#deep.disabled = isDisabled;
    this.#place.hidden = hides("chooser");
    this.#form.hidden = hides("address") || isGate;
    this.#depth.hidden = hides("settings") || isReadonly || isCompact;
    this.#hint.textContent = isGate ? "or drop one on this page." : "or drop one on this page. It stays on this computer.";
    this.element.classList.toggle("compact", isCompact);
    this.element.hidden = [this.#place, this.#form, this.#depth].every(({ hidden }) => hidden);
    this.hasBundles(this.#hasBundles);
  }

  /** @param {boolean} hasBundles Whether bundles were chosen, so that others replace them. */
  hasBundles(hasBundles) {
    this.#hasBundles = hasBundles;
    const words = hasBundles ? (this.#isMultiple ? "Choose others" : "Choose another") : this.#isMultiple ? "Choose bundles" : "Choose a bundle";
    if (this.#label.textContent !== words) this.#label.textContent = words;
  }

  /** Says what is wrong with the page before anything was chosen. @param {string} [words] */
  warn(words) {
    fill(this.#warning, words);
  }

  /** @param {boolean} isOver */
  highlight(isOver) {
    this.element.classList.toggle("over", isOver && !this.#isDisabled && !this.#place.hidden);
  }

  /** Whether it accepts dropped files. */
  get isOpen() {
    return !this.#isDisabled && !this.#place.hidden;
  }

  /** @param {DataTransfer} transfer */
  async drop(transfer) {
    // The list of items is only valid during the event.
    const entries = [...transfer.items].filter(({ kind }) => kind === "file").map((item) => item.webkitGetAsEntry?.() ?? item.getAsFile());
    /** @type {{ file: File, isWithin: boolean }[]} */
    const files = [];
    let left = 0;
    for (const entry of entries) {
      if (!entry) continue;
      if (entry instanceof File) files.push({ file: entry, isWithin: false });
      else left += await collect(entry, false, files);
    }
    this.#tell(files, left);
  }

  /** Empties the address: beside the verdict on a file it would name another bundle. */
  clearAddress() {
    this.#address.value = "";
  }

  /** @param {...(import("./dom.js").Child | import("./dom.js").Child[])} notes */
  say(...notes) {
    fill(this.notes, ...notes);
  }

  #choose() {
    const files = [...(this.#file.files ?? [])];
    this.#file.value = "";
    this.#tell(files.map((file) => ({ file, isWithin: false })), 0);
  }

  /**
   * @param {{ file: File, isWithin: boolean }[]} files
   * @param {number} left
   */
  #tell(files, left) {
    if (files.length + left > 0) this.element.dispatchEvent(new CustomEvent("files", { detail: { files, left } }));
  }

  /** @param {Event} event */
  #go(event) {
    event.preventDefault();
    const address = this.#address.value.trim();
    if (address === "") return;
    // The verdict takes the focus, unless another control has it by then.
    for (const control of [this.#address, this.#submit]) control.blur();
    this.element.dispatchEvent(new CustomEvent("address", { detail: address }));
  }
}

/**
 * Collects the files at an entry and below it.
 * @param {FileSystemEntry} entry
 * @param {boolean} isWithin
 * @param {{ file: File, isWithin: boolean }[]} files
 * @returns {Promise<number>} How many were skipped because there were too many or they are unreadable.
 */
async function collect(entry, isWithin, files) {
  if (files.length >= MAX_FILES) return 1;
  try {
    if (entry.isFile) {
      files.push({ file: await new Promise((resolve, reject) => /** @type {FileSystemFileEntry} */ (entry).file(resolve, reject)), isWithin });
      return 0;
    }
    const reader = /** @type {FileSystemDirectoryEntry} */ (entry).createReader();
    let left = 0;
    for (;;) {
      const part = /** @type {FileSystemEntry[]} */ (await new Promise((resolve, reject) => reader.readEntries(resolve, reject)));
      if (part.length === 0) return left;
      for (const each of part) left += await collect(each, true, files);
    }
  } catch {
    return 1;
  }
}
