// The verdict in words: what to do first, and why after it.

/**
 * @typedef {"good" | "bad" | "doubt" | "work"} Tone
 * @typedef {{ tone: Tone, title: string, text: string }} Words
 */

/** Why a policy refuses. @type {Record<string, (name: string) => Words>} */
const REFUSALS = {
  signature: () => bad("Do not let it in: a signature is wrong", "It does not fit what it stands on. The bundle was changed after it was signed, or was never signed properly."),
  untrusted: (name) => bad("Do not let it in yet: nobody whom you trust signed it", `It calls itself ${name}, which anybody can write. Get the publisher's key by a way that you trust, and add it to the allowed signers.`),
  unsigned: (name) => bad("Do not let it in: nobody signed it", `It calls itself ${name}, which anybody can write.`),
  revoked: () => bad("Do not let it in: it was signed with a revoked key", "Ask the publisher for a bundle that was signed with another one."),
  expired: () => bad("Do not let it in: its time is over", "Devices refuse it. Ask for a newer bundle."),
  downgrade: () => bad("Do not let it in: it is older than one before", "Devices that took the newer version refuse this one."),
  incompatible: () => bad("Do not let it in: it is for other devices", "None of its tags is one of the device's. Which tags that has is said below."),
  unsupported: () => ({ tone: "doubt", title: "It cannot be told: a newer Sealift made this", text: "This page does not know all of what it uses." }),
};

/** What is wrong with the bytes. @type {Record<string, () => Words>} */
const FAULTS = {
  truncated: () => bad("Do not let it in: the file is not complete", "It ends before the bundle does. Copy it again; if it stays so, it was sent incomplete."),
  trailing: () => bad("Do not let it in: something follows the bundle", "A bundle ends with its last chunk. Copy it again."),
  limit: () => bad("Do not let it in: it asks for too much", "It declares sizes over what a reader takes on."),
  header: () => bad("This is no sound bundle", "Its first bytes are not Sealift's, or were changed."),
  changed: () => ({ tone: "doubt", title: "It cannot be told: the file changed", text: "It became another one while it was read. Choose it again." }),
  io: () => ({ tone: "doubt", title: "It cannot be told: the file cannot be read", text: "The medium or the connection failed. Try it again." }),
  "trust-file": () => ({ tone: "doubt", title: "It cannot be told: what you entered below cannot be read", text: "Allowed signers, revoked keys and tags are as OpenSSH has them. Correct them, and it is checked." }),
  unsupported: () => REFUSALS.unsupported(""),
};

/** @type {(title: string, text: string) => Words} */
const bad = (title, text) => ({ tone: "bad", title, text });

/**
 * What is said of the head alone, while bytes are still being read.
 * @param {import("../../types.js").Head} head
 * @param {import("../../types.js").Verdict} verdict
 * @returns {Words}
 */
export function wordsOfHead({ name, version }, verdict) {
  const refusal = refusalOf(name, verdict);
  if (refusal) return refusal;
  return { tone: "work", title: "Signed by whom you trust; its bytes are being checked", text: `${name}, version ${version}.` };
}

/**
 * @param {import("../../types.js").Verified} verified
 * @returns {Words}
 */
export function wordsOfSound({ head, verdict, summary, deep }) {
  const refusal = refusalOf(head.name, verdict);
  if (refusal) return { ...refusal, text: `${refusal.text} Its bytes are whole and undamaged.` };
  const title = `You can let it in: ${head.name}, version ${head.version}`;
  if (summary.delta) {
    return { tone: "good", title, text: "Whom you trust signed it, and every byte of it is sound. It is a delta: what it makes of its base is checked where that is." };
  }
  const checked = deep ? "every byte and the content of every file are sound" : "every byte is sound";
  return { tone: "good", title, text: `Whom you trust signed it, and ${checked}.` };
}

/**
 * @param {Error & { code?: string }} error
 * @returns {Words}
 */
export function wordsOfFault(error) {
  if (error.code === undefined) return { tone: "doubt", title: "It cannot be told: this page failed", text: "What it says below may help whoever keeps it." };
  const words = FAULTS[error.code];
  return words ? words() : bad("Do not let it in: it is damaged, or was changed", "Its bytes are not those that it was made of. Copy it again; if it stays so, it was changed on its way.");
}

/**
 * @param {string} name
 * @param {import("../../types.js").Verdict} verdict
 */
function refusalOf(name, { error, signers }) {
  if (!error) return undefined;
  const word = error.code === "untrusted" && signers.length === 0 ? "unsigned" : error.code;
  return (REFUSALS[word] ?? REFUSALS.untrusted)(name);
}
