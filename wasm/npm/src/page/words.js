// Formats numbers and times like the program sealift.

const UNITS = ["bytes", "kB", "MB", "GB", "TB", "PB"];

/** @param {number} count */
export function bytes(count) {
  let unit = 0;
  let value = count;
  while (value >= 999.5 && unit < UNITS.length - 1) {
    value /= 1000;
    unit += 1;
  }
  if (unit === 0) return count === 1 ? "1 byte" : `${count} bytes`;
  return `${value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2)} ${UNITS[unit]}`;
}

/** @param {number} number */
export function number(number) {
  return number.toLocaleString("en");
}

/**
 * @param {number} number
 * @param {string} one
 * @param {string} [many]
 */
export function count(number, one, many = `${one}s`) {
  return `${number.toLocaleString("en")} ${number === 1 ? one : many}`;
}

/** @param {number} seconds */
export function duration(seconds) {
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 100) return `${Math.round(seconds)} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 100 ? `${minutes} min` : `${Math.round(minutes / 60)} h`;
}

/** @param {number} seconds */
export function moment(seconds) {
  const date = new Date(seconds * 1000);
  return Number.isNaN(date.getTime()) ? `${seconds} s since 1970` : `${date.toISOString().slice(0, 16).replace("T", " ")} UTC`;
}

/** @type {Record<string, string>} */
const LETTERS = { file: "-", dir: "d", symlink: "l", char: "c", block: "b", fifo: "p", socket: "s" };

/**
 * Returns type and permissions in the ten letters of ls.
 * @param {import("../../types.js").Entry} entry
 */
export function mode({ type, mode }) {
  const three = (/** @type {number} */ shift, /** @type {number} */ special, /** @type {string} */ letter) => {
    const bits = (mode >> shift) & 7;
    const last = mode & special ? (bits & 1 ? letter : letter.toUpperCase()) : bits & 1 ? "x" : "-";
    return `${bits & 4 ? "r" : "-"}${bits & 2 ? "w" : "-"}${last}`;
  };
  return LETTERS[type] + three(6, 0o4000, "s") + three(3, 0o2000, "s") + three(0, 0o1000, "t");
}
