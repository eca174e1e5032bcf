// The panels that list facts: signers, identity, changes, layout.

import { concealed } from "./concealed.js";
import { h, icon, svg } from "./dom.js";
import { listed } from "./verdict.js";
import { bytes, count, moment, number } from "./words.js";

/** @typedef {import("../../types.js").Bundle} Bundle */
/** @typedef {import("../../types.js").Head} Head */

/**
 * Returns a section with a heading.
 * @param {string} title
 * @param {...import("./dom.js").Child} children
 */
export function panel(title, ...children) {
  return h("section", { class: "panel" }, h("h2", {}, title), ...children);
}

/**
 * Returns a list of terms and values.
 * @param {[string, import("./dom.js").Child][]} rows
 */
function facts(rows) {
  const present = rows.filter(([, value]) => value !== null && value !== undefined && value !== false);
  return h("dl", {}, present.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
}

/** @param {import("../../types.js").Verdict} verdict */
export function signers(verdict) {
  const { signers, error, kernelSignature, unknownEnvelopes } = concealed(verdict);
  const rows = signers.map(({ key, keyType, comment, trusted, unknown, unsupported, status }) => {
    const tone = trusted ? "good" : unsupported ? "doubt" : "bad";
    return h("li", { class: tone }, icon(tone),
      h("div", {}, h("strong", {}, trusted ? "Trusted" : "Does not count"), comment ? h("bdi", {}, ` ${comment}`) : null,
        h("div", { class: "key" }, key ?? (unknown ? "An unknown key. Its fingerprint is shown once you trust it." : "a key that did not sign this")), h("div", { class: "quiet" }, keyType ? `${keyType}, ` : null, h("bdi", {}, status))));
  });
  const unknown = unknownEnvelopes.length > 0 && h("p", { class: "quiet" }, `There are also signatures of kinds that this page does not know (${unknownEnvelopes.join(", ")}). They do not count.`);
  const kernel = kernelSignature && h("p", { class: "quiet" }, "There is also a signature for the kernels of devices that have its certificate. It does not count here.");
  const why = error && h("p", { class: "quiet" }, h("bdi", {}, error.message));
  return panel("Who signed it", rows.length > 0 ? h("ul", { class: "signers" }, rows) : h("p", {}, "Nobody signed it."), why, kernel, unknown);
}

/**
 * @param {Head} head
 * @param {{ version?: string, forget: () => void, forgets: boolean }} [seen] The highest version that was safe here, and a function to forget it.
 */
export function identity(head, seen) {
  const now = Date.now() / 1000;
  const expires = head.expires === undefined ? "never" : `${moment(head.expires)}${head.expires <= now ? ", which has passed" : ""}`;
  const known = seen && (seen.version === undefined ? "No version of it was safe to install in this browser before."
    : [seen.version === head.version ? "It is the highest that this browser has seen. " : `The highest that this browser has seen is ${seen.version}. `,
      h("button", { type: "button", class: "link", onclick: seen.forget }, "Forget it"), seen.forgets && " It is forgotten when the page is closed."]);
  const rows = /** @type {[string, any][]} */ ([
    ["Name", h("bdi", {}, head.name)],
    ["Version", h("span", {}, `${head.version}. `, h("span", { class: "quiet" }, known))],
    ["Created", moment(head.created)],
    ["Expires", expires],
    ["Compatible with", head.compatible.length === 0 ? "any device" : h("bdi", {}, head.compatible.join(", "))],
    ["Content", h("span", { class: "key" }, head.indexDigest)],
    ["Root digest", h("span", { class: "key" }, head.rootDigest)],
    ...(head.delta?.bases ?? []).map((base) => ["Needs", h("span", {}, base.name && `${base.name} version ${base.version}, `, h("span", { class: "key" }, base.indexDigest))]),
    ...head.images.map(({ ref, digest }) => ["Image", h("span", {}, `of ref ${ref + 1}: `, h("span", { class: "key" }, digest))]),
    ["Holds", `${count(head.entries, "entry", "entries")}, ${bytes(head.logicalBytes)} unpacked`],
    ["File", bytes(head.fileBytes)],
    ["Disk", `about ${bytes(head.diskBytes)}${head.delta ? " more than its base" : ""}, unpacked`],
  ]);
  const words = head.annotations.length > 0 && [h("h3", {}, "Publisher's notes"), facts(head.annotations.map(([key, value]) => [key, h("bdi", {}, value)]))];
  return panel("What it is", facts(rows), ...(words || []));
}

/**
 * Returns the files that damage affects.
 * @param {import("../../types.js").Damage} damage
 */
export function damage({ count: all, names }) {
  if (all === 0) return undefined;
  const list = names.map((name) => h("li", {}, h("bdi", {}, name)));
  const more = all > names.length && h("li", {}, `and ${number(all - names.length)} more`);
  return h("div", { class: "damage" }, h("p", {}, `${count(all, "file lies", "files lie")} in the first damaged part; there may be others.`), h("ul", {}, list, more));
}

/** The most volumes whose digests are shown. */
const SHOWN_VOLUMES = 20;

/**
 * Returns what was checked, with what and when, for printing.
 * @param {import("../../element.js").Report} report
 */
export function proof({ sha256, volumes = [], checked, sound, deep, base, summary, policy, page }) {
  const key = (/** @type {string | undefined} */ digest) => digest && h("span", { class: "key" }, digest);
  const files = summary?.made ? `every file but the ${summary.made} that the device makes` : "every file";
  const content = `every byte, and the content of ${files}`;
  const depth = !sound ? "not every byte" : base?.checked ? `${content}, with ${listed(base.bases ?? [])}` : deep ? content : "every byte";
  const rows = /** @type {[string, any][]} */ ([
    [volumes.length > 0 ? "SHA-256 of the bundle" : "SHA-256 of the file", key(sha256)],
    ...volumes.slice(0, SHOWN_VOLUMES).map(({ number, sha256 }) => [`Volume ${number}`, key(sha256)]),
    ["Other volumes", volumes.length > SHOWN_VOLUMES && `${count(volumes.length - SHOWN_VOLUMES, "more is", "more are")} in the report`],
    ["Checked", `${checked.slice(0, 19).replace("T", " ")} UTC`],
    ["Checked bytes", depth],
    ["Judged", policy && `${policy.judged.slice(0, 19).replace("T", " ")} UTC`],
    ["Allowed signers", key(policy?.allowedSignersSha256)],
    ["Revoked keys", policy && (key(policy.revokedSha256) ?? "none")],
    ["Required keys", policy && (policy.threshold === undefined ? "1" : [policy.threshold].flat().join(", "))],
    ["The devices' tags", policy && (policy.compatible?.join(", ") || "none")],
    ["Lowest version", policy && (policy.floor ?? "any")],
    ["This page", h("span", {}, `sealift ${page.version}`, page.module && " of ", key(page.module))],
  ]);
  return panel("How it was checked", facts(rows));
}

/** The maximum number of changes shown. */
const SHOWN_ROWS = 1000;

/**
 * @param {{ added: number, changed: number, metadata: number, removed: number }} counts
 * @param {{ kind: import("../../types.js").Change["kind"], name: string, before?: number, after?: number, size?: number }[]} rows
 */
export function changes(counts, rows) {
  const { added, changed, metadata, removed } = counts;
  const all = added + changed + metadata + removed;
  const sum = all === 0 ? "Nothing: the trees are the same." : `${number(added)} added, ${number(changed)} changed, ${number(removed)} removed, ${number(metadata)} metadata only.`;
  // Important changes first.
  const shown = [...rows.filter(({ kind }) => kind !== "metadata"), ...rows.filter(({ kind }) => kind === "metadata")].slice(0, SHOWN_ROWS);
  const size = (/** @type {typeof rows[number]} */ { before, after, size }) =>
    before !== undefined && after !== undefined && before !== after ? `${bytes(before)} → ${bytes(after)}` : [after ?? before ?? size].map((each) => (each === undefined ? "" : bytes(each)))[0];
  const table = all > 0 && h("div", { class: "scroll", tabIndex: 0, role: "region", "aria-label": "Changes" }, h("table", {},
    h("thead", {}, h("tr", {}, ["What", "Name", "Size"].map((title) => h("th", { scope: "col" }, title)))),
    h("tbody", {}, shown.map((row) => h("tr", { class: row.kind }, h("td", {}, row.kind), h("td", {}, h("bdi", {}, row.name)), h("td", { class: "size" }, size(row)))))));
  const once = rows.length > all && h("p", { class: "quiet" }, "A new directory counts once, with everything below it.");
  return [h("p", {}, sum), once, table, Math.max(all, rows.length) > shown.length && h("p", { class: "quiet" }, `The first ${shown.length} are shown. sealift diff lists all.`)];
}

const CLASSES = /** @type {const} */ ({ hot: "read first", small: "files in one chunk", large: "files in several chunks", shared: "pieces of several files" });

/** The number of columns in the bar. */
const COLUMNS = 96;

/** @param {Bundle} bundle */
export async function layout(bundle) {
  const picture = await bundle.picture(COLUMNS);
  const { head } = bundle;
  const front = head.fileBytes - head.chunksBytes;
  const bar = svg("svg", { viewBox: `0 0 ${COLUMNS} 10`, preserveAspectRatio: "none", class: "bar", role: "img", "aria-label": "What each part of the file holds; the list below says the same in words" });
  for (let x = 0; x < picture.columns.length; ) {
    const start = x;
    while (picture.columns[x] === picture.columns[start]) x += 1;
    bar.append(svg("rect", { x: start, y: 0, width: x - start, height: 10, class: picture.columns[start] }));
  }
  const legend = Object.entries(CLASSES).map(([kind, words]) => {
    const sum = picture[/** @type {keyof typeof CLASSES} */ (kind)];
    return (sum > 0 || picture.columns.includes(/** @type {keyof typeof CLASSES} */ (kind))) && h("li", {}, svg("svg", { viewBox: "0 0 10 10", class: "swatch", "aria-hidden": "true" }, svg("rect", { width: 10, height: 10, class: kind })), `${words}: ${bytes(sum)}`);
  });
  const entries = await bundle.entries(picture.largest).catch(() => []);
  const largest = entries.length > 0 && [h("h3", {}, "The largest files"), h("ol", { class: "largest" }, entries.map((entry) => h("li", {}, h("bdi", {}, entry.shown), h("span", { class: "size quiet" }, ` ${bytes(entry.size ?? 0)}`))))];
  return panel("Layout",
    h("p", {}, `${bytes(front)} of signatures and index, then ${count(head.chunks, "chunk")}, ${bytes(head.chunksBytes)} in total.`),
    head.chunks > 0 && bar, h("ul", { class: "legend" }, legend),
    picture.saved > 0 && h("p", { class: "quiet" }, `${bytes(picture.saved)} saved: files with the same content are stored once.`),
    ...(largest || []));
}
