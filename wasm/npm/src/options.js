// The options of opening and checking, and the policy among them.

import { kindOf } from "./sources.js";
import { Thread } from "./threads.js";

const OPEN_OPTIONS = ["allowedSigners", "now", "threshold", "compatible", "revoked", "floor", "allowUnsigned", "allowDowngrade"];
const OTHER_OPTIONS = ["signal", "onHead", "onWait", "deep", "base", "sha256", "onProgress", "jobs", "memory", "wasmUrl", "workerUrl", "insideUrl"];

/**
 * Rejects unknown options: ignoring a mistyped name would change the policy.
 * @param {import("../types.js").OpenOptions & import("../types.js").VerifyOptions} options
 */
export function known(options) {
  const all = [...OPEN_OPTIONS, ...OTHER_OPTIONS];
  for (const name of Object.keys(options)) {
    if (!all.includes(name)) throw new TypeError(`there is no option ${JSON.stringify(name)}; the options are ${all.join(", ")}`);
  }
  return options;
}

/**
 * Returns a policy as a worker takes it.
 * @param {import("../types.js").Policy} options
 */
export function judgement(options) {
  const { allowedSigners = "", ...rest } = options;
  const policy = Object.entries(rest).filter(([name, value]) => OPEN_OPTIONS.includes(name) && value !== undefined);
  return [textOf(allowedSigners), Object.fromEntries(policy)];
}

/** @param {string | Uint8Array} signers */
function textOf(signers) {
  if (typeof signers === "string") return signers;
  if (signers instanceof Uint8Array) return new TextDecoder("utf-8", { ignoreBOM: true }).decode(signers);
  throw new TypeError(`allowedSigners is the file's text, as a string or a Uint8Array; this is ${kindOf(signers)}`);
}

/**
 * Checks that a policy can be used, as `judge` does, but without a bundle.
 * @param {import("../types.js").Policy} policy
 * @param {import("./opening.js").Places} [places]
 * @returns {Promise<void>}
 */
export async function checkPolicy(policy, places) {
  const given = judgement(known(policy));
  const thread = await Thread.start(places);
  try {
    await thread.call("checkPolicy", given);
  } finally {
    thread.close();
  }
}
