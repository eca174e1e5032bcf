// The verdict in words: first what to do, then why.

import { numbersOf } from "../volumes.js";

/**
 * @typedef {"good" | "bad" | "doubt" | "work" | "old"} Tone
 * @typedef {{ tone: Tone, title: string, text: string }} Words
 * @typedef {import("./finding.js").Facts} Facts
 * @typedef {import("../../types.js").Head} Head
 * @typedef {import("../../types.js").Verdict} Verdict
 */

/** @type {(title: string, text: string) => Words} */
const bad = (title, text) => ({ tone: "bad", title, text });
/** @type {(title: string, text: string) => Words} */
const doubt = (title, text) => ({ tone: "doubt", title: `Not checked: ${title}`, text });

/** The reasons why a policy rejects a bundle. @type {Record<string, (head: Head, verdict: Verdict, facts: Facts) => Words>} */
const REFUSALS = {
  signature: () => bad("Do not install: a signature is wrong", "It does not match the bundle: the bundle was changed after it was signed, or was never signed properly."),
  untrusted: untrusted,
  revoked: () => bad("Do not install: signed with a revoked key", "Ask the publisher for a bundle that is signed with another key."),
  expired: () => bad("Do not install: it has expired", "Devices refuse it. Ask the publisher for a newer bundle."),
  downgrade: (_, __, { floor }) => bad(`Do not install: older than version ${floor ?? "?"}, already checked here`, "Devices that have the newer version refuse this one."),
  incompatible: ({ compatible }, _, { tags = [], isLocked }) => {
    const none = isLocked ? "none, by the rules of this site." : "none. Enter your devices' tags under Trusted keys and devices.";
    const yours = tags.length > 0 ? `${tags.join(", ")}.` : none;
    return bad("Do not install: it is for other devices", `Needs: ${compatible.join(", ")}. Yours: ${yours}`);
  },
  unsupported: () => doubt("a newer Sealift made this", "The bundle uses features that this page does not know."),
};

/**
 * @param {Head} head
 * @param {Verdict} verdict
 */
function untrusted({ name }, { signers, needed }) {
  const claim = `It calls itself ${name}, which anybody could claim.`;
  if (signers.length === 0) return bad("Do not install: nobody signed it", claim);
  if (signers.every(({ unsupported }) => unsupported)) return bad("Do not install yet: signed in a way that this page does not know", `${claim} A newer version of this page may know it.`);
  const counted = new Set(signers.filter(({ trusted }) => trusted).map(({ key }) => key)).size;
  if (counted > 0) return bad(`Do not install yet: only ${counted} of ${needed} required keys signed`, "Ask the publisher for a bundle with all signatures.");
  return bad("Do not install yet: unknown signer", `${claim} Ask the publisher for the key's fingerprint over a channel that you trust, and compare it.`);
}

/** Faults of the bytes. @type {Record<string, () => Words>} */
const FAULTS = {
  truncated: () => bad("Do not install: the file is not complete", "The file ends before the bundle does. Copy it again; if that does not help, the sender's copy is incomplete."),
  trailing: () => bad("Do not install: something follows the bundle", "A bundle ends with its last chunk. Copy it again."),
  limit: () => bad("Do not install: it asks for too much", "It declares sizes above this page's limits."),
};

/** Reasons that say nothing about the bundle or its bytes. @type {Record<string, Words>} */
const DOUBTS = {
  stopped: doubt("you stopped it", "This page does not know whether its bytes are intact."),
  changed: doubt("the file changed", "It was changed while it was read. Choose it again."),
  io: doubt("the file cannot be read", "The medium or the connection failed. Try again."),
  address: doubt("this is not an address", "Enter one such as /updates/os.sealift."),
  blocked: doubt("the page may not read from there", "Download the bundle and choose the file, or use an address of this site."),
  "trust-file": doubt("your settings cannot be read", "Allowed signers, revoked keys, thresholds and tags must have the form that OpenSSH and Sealift use. Correct them under Trusted keys and devices, and the bundle is judged again."),
  policy: doubt("the rules to judge by cannot be loaded", "Without them, this page does not know whom to trust, what is revoked and which versions it has seen. Reload the page, or send the message below to the site's operator."),
  memory: doubt("this browser's record of versions cannot be read", "Without it, this page cannot tell an older version from a newer one. Forget all versions seen, under Trusted keys and devices, or clear this site's data."),
  unsupported: doubt("a newer Sealift made this", "The bundle uses features that this page does not know."),
};

/** The reasons where a person cannot change anything, since the site alone sets the policy. @type {Record<string, Words>} */
const LOCKED_DOUBTS = {
  "trust-file": doubt("this site's rules are malformed", "You can do nothing about it here, and it says nothing about the bundle: the site's own allowed signers, revoked keys, thresholds or tags are wrong. Send the message below to the site's operator."),
  memory: doubt("this browser's record of versions cannot be read", "Without it, this page cannot tell an older version from a newer one. Clear this site's data in the browser, and choose the bundle again."),
};

/** Faults of volumes. @type {Record<import("../../types.js").VolumeFault["what"], (which: string, isOne: boolean) => Words>} */
const VOLUME_FAULTS = {
  missing: (which, isOne) => bad(`Do not install yet: ${which} ${isOne ? "is" : "are"} missing`, `Choose ${isOne ? "it" : "them"} together with the others. If ${isOne ? "it is" : "they are"} lost, sealift repair may make ${isOne ? "it" : "them"} again from recovery volumes.`),
  twice: (which) => bad(`Do not install yet: ${which} is there twice`, "Choose the volumes again, with only one of the two files."),
  "other-set": (which) => bad(`Do not install yet: ${which} is of another set`, "Choose the volumes again, without it."),
  cut: (which) => bad(`Do not install: ${which} is not complete`, "Its file ends too early. Copy it again; if that does not help, the sender's copy is incomplete."),
  longer: (which) => bad(`Do not install: something follows ${which}`, "A volume ends with its part of the bundle. Copy it again."),
  gap: (which) => bad(`Do not install yet: ${which} does not follow the one before`, "One of the two is of another split of the bundle, or was changed. Choose the volumes of one split."),
  header: (which) => bad(`Do not install: the header of ${which} is damaged, or was changed`, "Copy this volume again."),
  damaged: (which) => bad(`Do not install: ${which} is damaged, or was changed`, "Its bytes are not the ones that were packed. Copy this volume again; if that does not help, it was damaged or changed before it reached you."),
};

/** @param {import("../../types.js").VolumeFault} fault */
function wordsOfVolumes({ what, numbers, count }) {
  const which = numbers.length === 0 ? "a volume" : `${numbersOf(numbers)} of ${count}`;
  return VOLUME_FAULTS[what](which, numbers.length === 1);
}

/**
 * @param {import("../errors.js").SealiftError} fault
 * @returns {Words}
 */
export function wordsOfFault({ code, isForeign, volumes }) {
  if (volumes) return wordsOfVolumes(volumes);
  if (isForeign) return bad("Not a Sealift bundle", "It does not begin like a bundle. Choose a file that sealift pack made.");
  if (code === "header") return bad("Do not install: the signature area is damaged", "The part that says what the bundle is and who signed it is damaged, or was changed. Copy it again.");
  return FAULTS[code]?.() ?? bad("Do not install: it is damaged, or was changed", "Its bytes are not the ones that were packed. Copy it again; if that does not help, it was damaged or changed before it reached you.");
}

/** Returns the words for an address that gave another kind of file, which says nothing about the bundle. */
export function wordsOfOtherAnswer() {
  return doubt("the address gave no bundle", "The server sent another kind of file: perhaps a sign-in page, or an error page. Open the address in another tab to see it.");
}

/** Returns the words for a delta that could not be checked over its base, although the page demands it. */
export function wordsOfMissingBase() {
  return doubt("its base cannot be used", "This site requires deltas to be checked over the base that it names, which failed for this one. Try again, or send the message below to the site's operator.");
}

/**
 * @param {unknown} error
 * @param {Facts} facts
 * @returns {Words}
 */
export function wordsOfDoubt(error, { isAddress, isLocked }) {
  const { code } = /** @type {{ code?: unknown }} */ (error);
  if (code === "io" && isAddress) return doubt("the address cannot be read", "The server did not send the bundle, or the connection failed. Check the address, and try again.");
  const words = typeof code === "string" ? (isLocked && LOCKED_DOUBTS[code]) || DOUBTS[code] : undefined;
  return words ?? doubt("this page failed", "Reload it. If it fails again, send the message below to the site's operator.");
}

/**
 * Returns why the bundle must not be used, if so.
 * @param {Head} head
 * @param {Verdict} verdict
 * @param {Facts} facts
 * @returns {Words | undefined}
 */
export function wordsOfRefusal(head, verdict, facts) {
  if (!verdict.error && verdict.trusted) return undefined;
  const words = (REFUSALS[verdict.error?.code ?? "untrusted"] ?? REFUSALS.untrusted)(head, verdict, facts);
  const bytes = facts.verified ? "Its bytes are undamaged." : facts.isStopped ? "You stopped the check of its bytes." : "Its bytes are still being checked.";
  return { ...words, text: `${words.text} ${bytes}` };
}

/**
 * Returns why the base that the user chose must not be trusted, if so.
 * @param {Facts} facts
 * @returns {Words | undefined}
 */
export function wordsOfBase({ baseRefusal }) {
  if (!baseRefusal) return undefined;
  const { name, verdict } = baseRefusal;
  /** @type {Record<string, string>} */
  const reasons = { signature: "a signature of it is wrong", revoked: "it is signed with a revoked key" };
  const why = reasons[verdict.error?.code ?? ""] ?? "no key that you trust signed it";
  return bad("Do not install: its base is not trusted", `The base is ${name}, and ${why}. Choose the base that the publisher signed, or check the delta alone.`);
}

/**
 * Returns the words for a bundle that is older than another one in the same choice.
 * @param {Facts} facts
 * @returns {Words}
 */
export function wordsOfOlder({ floor }) {
  return { tone: "old", title: `Older than version ${floor}, which you chose with it`, text: "It is left aside: the newer one is safe to install, and a device that has it refuses this one." };
}

/**
 * Returns the words for work in progress.
 * @param {Head | undefined} head
 * @param {Verdict | undefined} verdict
 * @returns {Words}
 */
export function wordsOfWork(head, verdict) {
  if (!head || !verdict) return { tone: "work", title: "Reading who signed it …", text: "" };
  return { tone: "work", title: "Signed by a key you trust; checking its bytes …", text: `${head.name}, version ${head.version}.` };
}

/**
 * Returns the names and versions of bases.
 * @param {{ name?: string, version?: string }[]} bases
 */
export function listed(bases) {
  return new Intl.ListFormat("en").format(bases.map(({ name, version }) => (name ? `${name} version ${version}` : "a base without a name")));
}

/**
 * @param {import("../../types.js").Verified} verified
 * @param {Verdict} verdict
 * @param {Facts} facts
 * @returns {Words}
 */
export function wordsOfSafe({ head, summary, deep, bases }, { needed }, { baseFault }) {
  const title = `Safe to install: ${head.name}, version ${head.version}`;
  const signed = needed > 1 ? `Signed by ${needed} keys you trust` : "Signed by a key you trust";
  const { made = 0 } = summary;
  const making = made === 0 ? "" : ` ${made === 1 ? "One file is made" : `${made} files are made`} from others by the device, which then checks ${made === 1 ? "it" : "each of them"}.`;
  if (bases) {
    const files = made === 0 ? "every file" : "every other file";
    return { tone: "good", title, text: `${signed}; every byte is undamaged, and so is ${files} that results with ${listed(bases)}.${making}` };
  }
  if (summary.delta) {
    const why = baseFault === undefined ? "" : `This page did not check it over its base: ${/** @type {Error} */ (baseFault).message}. `;
    if (why) return { tone: "good", title, text: `${signed}; every byte is undamaged. ${why}The device checks the result against its installed version.` };
    return { tone: "good", title, text: `${signed}; every byte is undamaged. It is a delta: the device checks the result against its installed version.` };
  }
  const files = made === 0 ? "every file" : "every other file";
  const checked = deep ? `every byte and the content of ${files} are undamaged` : "every byte is undamaged";
  return { tone: "good", title, text: `${signed}; ${checked}.${making}` };
}
