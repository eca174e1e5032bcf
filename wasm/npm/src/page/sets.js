// The volumes among chosen files, put together: those of one bundle are one source.

import { START_BYTES, isOfSet, readVolume, startsAsVolume } from "../volumes.js";
import { count } from "./words.js";

/** @typedef {import("./check.js").Base} Chosen A bundle that was chosen, and its name. */

/**
 * Puts the volumes of each bundle together, in the order in which the bundles first appear. One whose header is damaged goes with the others if they are
 * of one bundle, so that its fault is that bundle's; it is alone otherwise.
 * @param {File[]} files
 * @returns {Promise<Chosen[]>}
 */
export async function setsOf(files) {
  /** @type {import("../volumes.js").Read[][]} */
  const sets = [];
  /** @type {File[]} */
  const broken = [];
  for (const file of files) {
    const volume = await readVolume(file).catch(() => undefined);
    if (!volume) {
      broken.push(file);
      continue;
    }
    const own = await found(sets, (set) => isOfSet(set[0], volume));
    if (own) own.push(volume);
    else sets.push([volume]);
  }
  const all = sets.map((set) => set.sort((one, other) => one.header.number - other.header.number).map(({ file }) => /** @type {File} */ (file)));
  if (all.length === 1) all[0].push(...broken);
  else all.push(...broken.map((file) => [file]));
  return all.map((source) => ({ source, name: nameOfVolumes(source) }));
}

/**
 * @template T
 * @param {T[]} items
 * @param {(item: T) => Promise<boolean>} isIt
 */
async function found(items, isIt) {
  for (const item of items) if (await isIt(item)) return item;
  return undefined;
}

/**
 * Takes files for bundles, except that volumes are put together.
 * @param {File[]} files
 * @returns {Promise<Chosen[]>}
 */
export async function bundlesOf(files) {
  const starts = await Promise.all(files.map((file) => file.slice(0, START_BYTES).arrayBuffer().catch(() => new ArrayBuffer(0))));
  const isVolume = (/** @type {File} */ _, /** @type {number} */ at) => startsAsVolume(new Uint8Array(starts[at])) === "volume";
  const whole = files.filter((file, at) => !isVolume(file, at)).map((file) => ({ source: file, name: file.name }));
  return [...whole, ...(await setsOf(files.filter(isVolume)))];
}

/**
 * Names a bundle by its volumes.
 * @param {Blob[]} volumes
 */
export function nameOfVolumes([first, ...others]) {
  const name = first instanceof File ? first.name : "a volume";
  return others.length === 0 ? name : `${name} and ${count(others.length, "other volume")}`;
}
