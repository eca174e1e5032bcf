// Builds elements. Strings become text nodes only: a name from a bundle is never markup.

/** @typedef {Node | string | number | null | undefined | false} Child */

/** The base class of elements; an empty class in server-side rendering. */
export const ElementBase = /** @type {typeof HTMLElement} */ (globalThis.HTMLElement ?? class {});

/**
 * Returns an element. Properties beginning with "on" are listeners, "class", names with a dash and SVG names are attributes, others are properties.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} name
 * @param {Record<string, any>} [properties]
 * @param {...(Child | Child[])} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function h(name, properties = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (value === undefined || value === null) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key.includes("-") || key === "class" || key === "role" || key === "for" || key === "colspan") element.setAttribute(key, String(value));
    else /** @type {any} */ (element)[key] = value;
  }
  return fill(element, ...children);
}

/**
 * Replaces the children of an element.
 * @template {Element | ShadowRoot} E
 * @param {E} element
 * @param {...(Child | Child[])} children
 */
export function fill(element, ...children) {
  const present = children.flat().filter((child) => child !== null && child !== undefined && child !== false);
  element.replaceChildren(...present.map((child) => (child instanceof Node ? child : String(child))));
  return element;
}

/**
 * Returns an SVG element.
 * @param {string} name
 * @param {Record<string, string | number>} attributes
 * @param {...Node} children
 */
export function svg(name, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
  element.append(...children);
  return element;
}

const CLOCK = "M12 3a9 9 0 1 0 0 18a9 9 0 1 0 0-18M12 7.5V12l3.5 2";

/** @type {Record<string, string>} */
const PATHS = {
  good: "M4 12.5l5 5L20 6.5",
  bad: "M6 6l12 12M18 6L6 18",
  doubt: "M12 4v10M12 18.5v1",
  work: CLOCK,
  old: CLOCK,
  closed: "M9 6l6 6-6 6",
  open: "M6 9l6 6 6-6",
};

/**
 * Returns an icon that only repeats adjacent text, hidden from assistive technology.
 * @param {string} name
 */
export function icon(name) {
  const line = svg("path", { d: PATHS[name], fill: "none", stroke: "currentColor", "stroke-width": 2.5, "stroke-linecap": "round", "stroke-linejoin": "round" });
  return svg("svg", { viewBox: "0 0 24 24", class: "icon", "aria-hidden": "true" }, line);
}
