// Which addresses the page may not read from. A failed request does not tell; the browser says it elsewhere.

import { Doubt } from "./doubt.js";

/** Milliseconds after a failure in which the browser says that it was the page's own policy. */
const LATER = 100;

/** Origins that the page's policy has blocked. @type {Set<string>} */
const blocked = new Set();

/** @param {SecurityPolicyViolationEvent} event */
function hear({ effectiveDirective, blockedURI }) {
  if (effectiveDirective === "connect-src" && URL.canParse(blockedURI)) blocked.add(new URL(blockedURI).origin);
}

/** From now on the browser's word is heard. */
export function listen() {
  document.addEventListener("securitypolicyviolation", hear);
}

/**
 * Why an address could not be read, if it is the page that may not.
 * @param {URL} url
 * @returns {Promise<Doubt | undefined>}
 */
export async function barrier(url) {
  if (location.protocol === "https:" && url.protocol === "http:") {
    return new Doubt("blocked", `a page that came by https: reads nothing by http:, as from ${url.origin}`);
  }
  await new Promise((resolve) => setTimeout(resolve, LATER));
  if (!blocked.has(url.origin)) return undefined;
  return new Doubt("blocked", `the page's security policy allows addresses of ${location.origin} or of those that its connect-src names, not ${url.origin}`);
}
