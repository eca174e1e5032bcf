// The origins that the page's policy blocks. A failed request does not state the reason; the browser reports it by an event.

import { Doubt } from "./doubt.js";

/** Milliseconds after a failure within which the browser reports a violation of the page's policy. */
const LATER = 100;

/** Origins blocked by the page's policy. @type {Set<string>} */
const blocked = new Set();

/** @param {SecurityPolicyViolationEvent} event */
function hear({ effectiveDirective, blockedURI }) {
  if (effectiveDirective === "connect-src" && URL.canParse(blockedURI)) blocked.add(new URL(blockedURI).origin);
}

/** Starts listening for violations. */
export function listen() {
  document.addEventListener("securitypolicyviolation", hear);
}

/**
 * Returns why an address could not be read, if the page's policy forbids it.
 * @param {URL} url
 * @returns {Promise<Doubt | undefined>}
 */
export async function barrier(url) {
  if (location.protocol === "https:" && url.protocol === "http:") {
    return new Doubt("blocked", `a page loaded over https: cannot read http: addresses, such as those of ${url.origin}`);
  }
  await new Promise((resolve) => setTimeout(resolve, LATER));
  if (!blocked.has(url.origin)) return undefined;
  return new Doubt("blocked", `the page's security policy allows addresses of ${location.origin} and of the origins that its connect-src names, but not of ${url.origin}`);
}
