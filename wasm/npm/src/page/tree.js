// The files of a bundle as a tree. Only visible rows exist as elements.

import { fill, h, icon } from "./dom.js";
import { bytes, count, mode } from "./words.js";

/** The height of a row in pixels, as in style.js. */
export const ROW_HEIGHT = 28;

/** Rows rendered beyond the visible ones. */
const MARGIN = 8;

/** Entries requested at once. */
const PAGE = 256;

/** Milliseconds after which typing begins a new name. */
const TYPING = 700;

/** @typedef {import("../../types.js").Container} Container */

/**
 * An entry of the bundle, or of a container in it: then `within` is that container. A file that was opened as one has it as its `container`.
 * @typedef {Omit<import("../../types.js").Entry, "mode"> & { mode?: number, within?: Container, file?: number, before?: string, container?: Container }} Entry
 */
/** @typedef {import("../../types.js").Bundle} Bundle */

/**
 * A directory whose entries are shown, or a list of search results. Its rows are its own entries, and below each those of open directories.
 * @typedef {object} Level
 * @property {number} level
 * @property {number} count The number of its own entries.
 * @property {(from: number, count: number) => Promise<Entry[]>} load
 * @property {Map<number, Entry>} known
 * @property {Map<number, Level>} open By the entry's position in this directory.
 * @property {number} rows The number of all rows.
 */

/** A tree of rows. It emits an event "choose" with the selected entry as its detail. */
export class Tree {
  /** @type {Level} */
  #root;
  #focus = 0;
  #asked = 0;
  #byPath = false;
  /** Whether a file was opened as a container. */
  #hasContainers = false;
  /** The text typed to find a name, and the time. */
  #typed = { text: "", at: 0 };

  /** @param {Bundle} bundle */
  constructor(bundle) {
    this.bundle = bundle;
    this.#root = level(1, 0, async () => []);
    this.space = h("div", { class: "space" });
    this.body = h("div", {
      class: "rows", role: "tree", tabIndex: 0, "aria-label": "Files of the bundle",
      onscroll: () => this.#draw(), onkeydown: (/** @type {KeyboardEvent} */ event) => this.#key(event), onclick: (/** @type {MouseEvent} */ event) => this.#click(event),
    }, this.space);
    this.found = h("p", { class: "quiet", role: "status" });
    this.filter = h("input", {
      type: "search", placeholder: "Filter by name, or by path with a /", "aria-label": "Filter files", autocomplete: "off", spellcheck: false,
      oninput: () => this.#search(), onkeydown: (/** @type {KeyboardEvent} */ event) => event.key === "Escape" && this.#clear(event),
    });
    this.element = h("div", { class: "tree" }, this.filter, this.found, this.body);
    this.resized = new ResizeObserver(() => this.#draw());
    this.resized.observe(this.body);
  }

  close() {
    this.resized.disconnect();
  }

  async show() {
    const asked = ++this.#asked;
    const [refs, listed] = await Promise.all([this.bundle.refs(), this.bundle.listed()]);
    // Somebody may have searched meanwhile.
    if (asked !== this.#asked) return;
    if (refs.length === 1) this.#set(this.#directory(1, refs[0].directory, refs[0].children));
    else this.#set(ofRefs(refs));
    fill(this.found, `${count(listed.entries, "entry", "entries")}, ${bytes(listed.bytes)}`);
  }

  /** @param {Level} root */
  #set(root) {
    this.#root = root;
    this.#focus = 0;
    this.body.scrollTop = 0;
    this.#draw();
  }

  /**
   * @param {number} deep
   * @param {number} directory
   * @param {number} children
   */
  #directory(deep, directory, children) {
    return level(deep, children, (from, count) => this.bundle.children(directory, from, count));
  }

  /**
   * Returns a directory of a container. Its entries have the paths that `sealift cat` takes.
   * @param {number} deep
   * @param {Container} within
   * @param {number} directory
   * @param {number} children
   * @param {string} before The path of the container, and `//`.
   */
  #within(deep, within, directory, children, before) {
    return level(deep, children, async (from, count) => {
      const entries = await within.children(directory, from, count);
      return entries.map((entry) => /** @type {Entry} */ (/** @type {unknown} */ ({ ...entry, name: entry.name || "content", shown: before + entry.shown, before, within })));
    });
  }

  /** Opens a file as a container, below its row. @param {Entry} entry @param {Container} container */
  openContainer(entry, container) {
    entry.container = container;
    this.#hasContainers = true;
    const { level, place } = locate(this.#root, this.#focus);
    if (level.known.get(place) === entry && !level.open.has(place)) this.#toggle(this.#focus);
    this.body.focus();
  }

  /** Shows the bundle's own files alone, once it is not safe to install any more. */
  closeContainers() {
    if (!this.#hasContainers) return;
    this.#hasContainers = false;
    this.filter.value = "";
    this.#search();
  }

  async #search() {
    const text = this.filter.value;
    const asked = ++this.#asked;
    if (text === "") {
      this.#byPath = false;
      return this.show();
    }
    const numbers = await this.bundle.search(unescaped(text));
    // Only the latest query counts.
    if (asked !== this.#asked) return;
    this.#byPath = true;
    this.#set(level(1, numbers.length, (from, count) => this.bundle.entries(numbers.subarray(from, from + count))));
    fill(this.found, `${count(numbers.length, "entry has", "entries have")} ${text} in the ${text.includes("/") ? "path" : "name"}`);
  }

  /** Shows all files again. @param {KeyboardEvent} event */
  #clear(event) {
    if (this.filter.value === "") return;
    event.preventDefault();
    this.filter.value = "";
    this.#search();
  }

  #draw() {
    const { scrollTop, clientHeight } = this.body;
    this.space.style.height = `${this.#root.rows * ROW_HEIGHT}px`;
    const first = Math.max(0, Math.floor(scrollTop / ROW_HEIGHT) - MARGIN);
    const end = Math.min(this.#root.rows, Math.ceil((scrollTop + clientHeight) / ROW_HEIGHT) + MARGIN);
    const rows = [];
    // The focused row always exists: the tree names it to screen readers.
    if (this.#focus < first && end > 0) rows.push(this.#row(this.#focus));
    for (let at = first; at < end; at += 1) rows.push(this.#row(at));
    if (this.#focus >= end && this.#focus < this.#root.rows) rows.push(this.#row(this.#focus));
    fill(this.space, rows);
    if (rows.length > 0) this.body.setAttribute("aria-activedescendant", `row-${this.#focus}`);
  }

  /** @param {number} at */
  #row(at) {
    const { level, place } = locate(this.#root, at);
    const entry = level.known.get(place);
    if (!entry) this.#load(level, place);
    const isDirectory = isFolder(entry);
    const isOpen = level.open.has(place);
    const row = h("div", {
      class: "row", role: "treeitem", id: `row-${at}`,
      "aria-level": level.level, "aria-posinset": place + 1, "aria-setsize": level.count, "aria-expanded": isDirectory ? isOpen : undefined,
      "aria-selected": at === this.#focus,
    });
    row.style.top = `${at * ROW_HEIGHT}px`;
    row.dataset.at = String(at);
    if (!entry) return row;
    const name = h("span", { class: "name" }, isDirectory ? icon(isOpen ? "open" : "closed") : h("span", { class: "icon" }),
      h("bdi", {}, this.#byPath ? entry.shown : entry.name), entry.target === undefined ? null : h("bdi", { class: "quiet" }, ` → ${entry.target}`));
    name.style.paddingInlineStart = `${(level.level - 1) * 16}px`;
    const isListed = entry.type === "dir";
    const size = isListed ? (entry.children ?? 0) : entry.size;
    const shown = size === undefined ? "" : isListed ? count(size, "entry", "entries") : bytes(size);
    return fill(row, name, h("span", { class: "mode quiet" }, entry.mode === undefined ? "" : mode(/** @type {any} */ (entry))), h("span", { class: "size" }, shown));
  }

  /**
   * Requests the page of entries with this one, if it was not requested yet. Returns false if that failed.
   * @param {Level} level
   * @param {number} place
   */
  async #load(level, place) {
    const from = Math.floor(place / PAGE) * PAGE;
    if (level.known.has(-1 - from)) return true;
    // Marks that the page was requested; positions of entries are never negative.
    level.known.set(-1 - from, /** @type {any} */ (null));
    try {
      const entries = await level.load(from, PAGE);
      entries.forEach((entry, at) => level.known.set(from + at, entry));
    } catch {
      // Its rows stay empty until the user moves: drawing them now would request it over and over.
      level.known.delete(-1 - from);
      return false;
    }
    this.#draw();
    return true;
  }

  /** @param {number} at */
  #toggle(at) {
    const { level, place, above } = locate(this.#root, at);
    const entry = level.known.get(place);
    if (!entry || !isFolder(entry)) return;
    const open = level.open.get(place);
    const below = open ?? this.#below(level.level + 1, entry);
    if (open) level.open.delete(place);
    else level.open.set(place, below);
    const change = open ? -open.rows : below.rows;
    for (const each of [...above, level]) each.rows += change;
    this.#draw();
  }

  /**
   * Returns what is in a directory, or in a file that was opened as a container.
   * @param {number} deep
   * @param {Entry} entry
   */
  #below(deep, { container, within, directory = 0, children = 0, shown, before = "" }) {
    if (container) return this.#within(deep, container, 0, container.entries, `${shown}//`);
    return within ? this.#within(deep, within, directory, children, before) : this.#directory(deep, directory, children);
  }

  /** @param {MouseEvent} event */
  #click(event) {
    const row = /** @type {Element} */ (event.target).closest(".row");
    if (!(row instanceof HTMLElement)) return;
    this.#focus = Number(row.dataset.at);
    this.#draw();
    this.#choose();
  }

  #choose() {
    const { level, place } = locate(this.#root, this.#focus);
    const entry = level.known.get(place);
    if (!entry) return;
    if (isFolder(entry)) this.#toggle(this.#focus);
    this.element.dispatchEvent(new CustomEvent("choose", { detail: entry }));
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (this.#root.rows === 0 || event.altKey || event.ctrlKey || event.metaKey) return;
    const page = Math.max(1, Math.floor(this.body.clientHeight / ROW_HEIGHT) - 1);
    const last = this.#root.rows - 1;
    const { level, place, above } = locate(this.#root, this.#focus);
    const isOpen = level.open.has(place);
    const isDirectory = isFolder(level.known.get(place));
    /** @type {Record<string, () => void>} */
    const keys = {
      ArrowDown: () => this.#move(this.#focus + 1),
      ArrowUp: () => this.#move(this.#focus - 1),
      PageDown: () => this.#move(this.#focus + page),
      PageUp: () => this.#move(this.#focus - page),
      Home: () => this.#move(0),
      End: () => this.#move(last),
      ArrowRight: () => (isDirectory && !isOpen ? this.#toggle(this.#focus) : isOpen && this.#move(this.#focus + 1)),
      ArrowLeft: () => (isOpen ? this.#toggle(this.#focus) : above.length > 0 && this.#move(this.#parent())),
      Enter: () => this.#choose(),
      " ": () => this.#choose(),
      Escape: () => this.#clear(event),
    };
    const isLetter = [...event.key].length === 1 && (event.key !== " " || this.#isTyping(event));
    const run = isLetter ? () => this.#type(event) : keys[event.key];
    if (!run) return;
    event.preventDefault();
    run();
  }

  /** @param {KeyboardEvent} event */
  #isTyping({ timeStamp }) {
    return this.#typed.text !== "" && timeStamp - this.#typed.at < TYPING;
  }

  /**
   * Selects the next name in this directory that begins with the typed text.
   * @param {KeyboardEvent} event
   */
  async #type(event) {
    const text = (this.#isTyping(event) ? this.#typed.text : "") + event.key.toLowerCase();
    this.#typed = { text, at: event.timeStamp };
    const { level, place } = locate(this.#root, this.#focus);
    // Repeating the same letter continues from the current row.
    const isSame = [...text].every((letter) => letter === text[0]);
    const wanted = isSame ? text[0] : text;
    for (let step = isSame ? 1 : 0; step <= level.count; step += 1) {
      const at = (place + step) % level.count;
      if (!level.known.has(at) && !(await this.#load(level, at))) return;
      if (this.#typed.text !== text) return;
      const entry = level.known.get(at);
      if (entry && (this.#byPath ? entry.shown : entry.name).toLowerCase().startsWith(wanted)) return this.#move(this.#focus + rowsBetween(level, place, at));
    }
  }

  /** Returns the row of the directory that contains the focused row. */
  #parent() {
    const deep = locate(this.#root, this.#focus).level.level;
    let at = this.#focus;
    while (at > 0 && locate(this.#root, at).level.level >= deep) at -= 1;
    return at;
  }

  /** @param {number} to */
  #move(to) {
    this.#focus = Math.max(0, Math.min(this.#root.rows - 1, to));
    const top = this.#focus * ROW_HEIGHT;
    const { scrollTop, clientHeight } = this.body;
    if (top < scrollTop) this.body.scrollTop = top;
    else if (top + ROW_HEIGHT > scrollTop + clientHeight) this.body.scrollTop = top + ROW_HEIGHT - clientHeight;
    this.#draw();
  }
}

/** Whether an entry has a row for each entry in it. @param {Entry | undefined} entry */
function isFolder(entry) {
  return entry?.container !== undefined || (entry?.type === "dir" && entry.directory !== undefined);
}

/**
 * @param {number} deep
 * @param {number} count
 * @param {Level["load"]} load
 * @returns {Level}
 */
function level(deep, count, load) {
  return { level: deep, count, load, known: new Map(), open: new Map(), rows: count };
}

/**
 * Returns the refs as directories.
 * @param {import("../../types.js").Ref[]} refs
 */
function ofRefs(refs) {
  const entries = refs.map(({ name, directory, children }) => ({
    entry: -1, ref: name, name, shown: name, path: ".", type: /** @type {const} */ ("dir"), mode: 0o755, uid: 0, gid: 0, mtime: 0, inode: -1, directory, children,
  }));
  return level(1, refs.length, async (from, count) => entries.slice(from, from + count));
}

/** @type {Record<string, string>} */
const LETTERS = { n: "\n", r: "\r", t: "\t", "\\": "\\" };

/**
 * Returns a name from its displayed form, in which terminal controls are escaped.
 * @param {string} shown
 */
function unescaped(shown) {
  return shown.replace(/\\(?:u\{([0-9a-f]{1,6})\}|([nrt\\]))/gi, (all, digits, letter) => {
    if (letter !== undefined) return LETTERS[letter] ?? all;
    const code = parseInt(digits, 16);
    return code <= 0x10ffff ? String.fromCodePoint(code) : all;
  });
}

/**
 * Returns the number of rows between two positions of a directory.
 * @param {Level} level
 * @param {number} from
 * @param {number} to
 */
function rowsBetween(level, from, to) {
  const [first, last] = from < to ? [from, to] : [to, from];
  let rows = last - first;
  for (const [place, open] of level.open) if (place >= first && place < last) rows += open.rows;
  return from < to ? rows : -rows;
}

/**
 * Returns the content of a row: its directory, its position there, and the parent directories.
 * @param {Level} root
 * @param {number} at
 */
function locate(root, at) {
  /** @type {Level[]} */
  const above = [];
  let level = root;
  let rest = at;
  for (;;) {
    /** @type {Level | undefined} */
    let inside;
    let place = rest;
    for (const [from, open] of [...level.open].sort(([a], [b]) => a - b)) {
      if (place <= from) break;
      if (place <= from + open.rows) {
        rest = place - from - 1;
        inside = open;
        break;
      }
      place -= open.rows;
    }
    if (!inside) return { level, place, above };
    above.push(level);
    level = inside;
  }
}
