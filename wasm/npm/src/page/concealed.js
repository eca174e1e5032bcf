// The fingerprints of unknown signers are shown nowhere: whoever is asked for the one that the publisher gave elsewhere could copy it from here.

/** @typedef {import("../../types.js").Verdict} Verdict */

/**
 * Returns a verdict without the keys and fingerprints of unknown signers, also in its message.
 * @param {Verdict} verdict
 * @returns {Verdict}
 */
export function concealed(verdict) {
  const { signers, error } = verdict;
  const hidden = new Set(signers.filter(({ unknown }) => unknown).map(({ key }) => key ?? ""));
  hidden.delete("");
  if (hidden.size === 0) return verdict;
  const without = (/** @type {string} */ text) => [...hidden].reduce((text, key) => text.replaceAll(key, "an unknown key"), text);
  return {
    ...verdict,
    signers: signers.map((signer) => (hidden.has(signer.key ?? "") ? { ...signer, key: undefined, publicKey: undefined } : signer)),
    error: error && { ...error, message: without(error.message) },
  };
}
