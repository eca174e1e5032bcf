// What a form takes from the element: bundles that are safe now, by rules that are not old, with what was checked of them.

/** @typedef {import("./check.js").Check} Check */
/** @typedef {import("./element.js").SealiftVerifier} SealiftVerifier */

/** The form that is submitted again, after everything in it was checked once more. @type {HTMLFormElement | undefined} */
let passing;

/** Forms that wait for that check. @type {WeakSet<HTMLFormElement>} */
const held = new WeakSet();

/**
 * Holds submissions of a form until its bundles were checked once more.
 * @param {SealiftVerifier} element
 * @param {HTMLFormElement} form
 * @param {AbortSignal} signal
 */
export function attend(element, form, signal) {
  const root = form.getRootNode();
  // Before all listeners of the page: one of them may take the value and send it by itself.
  const first = root === document ? window : root;
  first.addEventListener("submit", (event) => hold(element, /** @type {SubmitEvent} */ (event)), { capture: true, signal });
  form.addEventListener("formdata", ({ formData }) => withhold(element, formData), { capture: true, signal });
}

/**
 * @param {SealiftVerifier} element
 * @param {SubmitEvent} event
 */
async function hold(element, event) {
  const { form } = element;
  const { submitter } = event;
  if (!form || event.target !== form || !event.isTrusted || passing === form || !element.carries) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  if (held.has(form)) return;
  held.add(form);
  const fields = [...form.elements].filter((each) => each instanceof element.constructor);
  await Promise.all(fields.map((each) => /** @type {SealiftVerifier} */ (/** @type {unknown} */ (each)).recheck())).finally(() => held.delete(form));
  const button = submitter && /** @type {HTMLButtonElement} */ (submitter).form === form ? submitter : null;
  if (!form.isConnected || !form.reportValidity()) return;
  passing = form;
  try {
    form.requestSubmit(button);
  } finally {
    passing = undefined;
  }
}

/**
 * Takes back what a script would send by old rules, without an event "submit" before. Nothing can be read while the browser collects the values.
 * @param {SealiftVerifier} element
 * @param {FormData} data
 */
function withhold(element, data) {
  if (!element.carries || !element.isOld) return;
  for (const name of namesOf(element.name)) data.delete(name);
  element.recheck();
}

/** @param {string} name */
const namesOf = (name) => [name, `${name}.sha256`, `${name}.digest`, `${name}.size`, `${name}.time`];

/**
 * Returns a form's value of safe bundles, and what was checked of each, in the same order. Each volume of a bundle is a value of its own.
 * @param {string} name
 * @param {Check[]} checks
 */
export function valueOf(name, checks) {
  const data = new FormData();
  for (const { source, name: file, facts, report } of checks) {
    const files = facts.volumes?.map((volume) => ({ source: volume.file, sha256: volume.sha256, bytes: volume.file.size })) ?? [{ source, sha256: facts.sha256, bytes: report.fileBytes }];
    for (const { source, sha256, bytes } of files) {
      const value = carried(source, file);
      if (value === undefined) continue;
      const of = [value, sha256 ?? "", facts.head?.indexDigest ?? "", String(bytes ?? ""), source instanceof File ? new Date(source.lastModified).toISOString() : ""];
      namesOf(name).forEach((name, at) => data.append(name, of[at]));
    }
  }
  return data;
}

/**
 * Returns why a form cannot send a safe bundle, or cannot send it yet.
 * @param {Check} check
 */
export function hindrance({ source, name, facts }) {
  if (!Array.isArray(source) && carried(source, name) === undefined) return `${name}: a form cannot send this; choose a file.`;
  if (facts.sha256 === undefined) return `${name}: its SHA-256 is being computed; try again in a moment.`;
  return undefined;
}

/**
 * Returns what a form sends of a bundle: the file, or the address that the page names. A stream was read already.
 * @param {import("../../types.js").BundleSource} source
 * @param {string} name
 */
function carried(source, name) {
  if (source instanceof File) return source;
  if (source instanceof Blob || source instanceof Uint8Array) return new File([/** @type {BlobPart} */ (source)], name);
  return source instanceof URL || typeof source === "string" ? String(source) : undefined;
}
