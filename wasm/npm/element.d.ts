import type { BundleSource, Damage, Doubt, Head, Kind, Place, Policy, Progress, Summary, Verdict } from "./types.js";

/**
 * A place to drop a bundle, and the result of its check. In a form it is a field, which is valid if the bundle is safe to install; only then is the
 * file sent.
 *
 *     <form method="post" enctype="multipart/form-data">
 *       <sealift-verifier name="bundle" required trust-src="/allowed_signers" settings="readonly"></sealift-verifier>
 *       <button>Upload</button>
 *     </form>
 *
 * The browser's verdict helps the person who uploads; a server must check again what it receives.
 *
 * A bundle that was split is chosen or dropped as all of its volumes at once, in any order, and is one bundle.
 *
 * For each safe bundle, a form takes `NAME`, the file, and what was checked of it: `NAME.sha256` of the file and `NAME.digest` of its content in hex,
 * `NAME.size` in bytes and `NAME.time`, when the file was last modified, in ISO 8601 or empty; with several bundles, all in the same order. Of a bundle
 * in volumes, each volume is such a file, in the order of their numbers, and all have the same `NAME.digest`. Of a bundle that `src` names, `NAME` is
 * the address as text: the server reads it itself, and compares the SHA-256.
 *
 * A form that is submitted waits until the rules, and files that the browser might not notice to be replaced, were read once more. A script that takes
 * `new FormData(form)` without an event "submit" awaits `recheck()` first: by rules that were read more than a minute ago, a form takes nothing.
 *
 * Attributes. All are optional, and may change at any time; the bundles are then judged again:
 * - `src`: a bundle to check at once.
 * - `trust-src`, `revoked-src`: the addresses of the allowed signers and the revoked keys. If one cannot be loaded, no bundle is safe. They and
 *   `floor-src` are read again for every bundle that is chosen, when the page is seen again, every 45 seconds while a bundle is safe, and before a form
 *   is submitted.
 * - `floor-src`: the address of the lowest versions that are accepted, as JSON: `{"os": "7"}`. Versions that this browser has seen count as well.
 * - `threshold`: the number of keys that must have signed, as in `2` or `os=2 app-*=1`. `compatible`: the devices' tags.
 * - `base-src`: the address of an older bundle to compare with; for a delta bundle, the addresses of its bases, separated by spaces: it is safe only
 *   if it could be checked over them. `deep="no"`: only stored bytes are checked, not what they unpack to.
 * - `settings="readonly"`: the user sees and changes no settings, trusts no key, forgets no version; settings stored in this browser do not count.
 * - `variant`: `compact` shows one row for each bundle and folds the rest, `full` shows all; the default is `compact` in a form, and `full` elsewhere.
 * - It is dark where the page is: set `color-scheme: light dark` in the page's style, or in its `<meta name="color-scheme">`.
 * - `hide`: any of `chooser address settings layout`.
 * - `wasm-url`, `worker-url`, `inside-url`: the URLs of the package's parts, for bundlers that do not find them: see the README.
 * - `multiple`: accepts several bundles, each with its own verdict. A delta and its bases are one: the bases are only read. One that is older than
 *   another of the same name is left aside.
 * - `name`, `required`, `disabled`, `form`: as for any form field.
 */
export class SealiftVerifier extends HTMLElement {
  static readonly formAssociated: true;
  /** Whether there are bundles, and all are safe to install; older ones beside a newer one do not count. */
  readonly ok: boolean;
  /** The facts about the bundle that is shown. */
  readonly finding: Finding;
  readonly reports: Report[];
  readonly form: HTMLFormElement | null;
  name: string;
  readonly variant: string;
  readonly type: "sealift-verifier";
  readonly validity: ValidityState;
  readonly validationMessage: string;
  readonly willValidate: boolean;
  checkValidity(): boolean;
  reportValidity(): boolean;
  /** Checks a bundle, and shows the result. Previous bundles are dropped. Resolves when the check ends. */
  check(source: BundleSource, name?: string): Promise<void>;
  /**
   * Reads the rules again, and files that the browser might not notice to be replaced. Resolves to `ok` by what was found.
   */
  recheck(): Promise<boolean>;
  /** Stops checking. A bundle whose check was not finished is then "unknown", unless it is refused already. */
  stop(): void;
  /** Restores the state before anything was chosen. */
  reset(): void;
}

/**
 * In this order: nothing was chosen; the bundle is being checked or judged again; the result is undetermined; it must not be used; it is older than
 * another one in the same choice, and left aside; it may be used.
 * "unknown" also covers what could not be read, loaded or stored, and checks that were stopped.
 */
export type State = "empty" | "checking" | "unknown" | "refused" | "older" | "safe";

/** Why the result is undetermined, if the reason lies in the page. "page": the page failed, as the message says. */
export type PageDoubt = "stopped" | "policy" | "memory" | "address" | "blocked" | "page";

export interface Problem {
  kind: Kind | Doubt | PageDoubt;
  message: string;
}

/** What is known about a bundle, as one value: everything that is shown or sent follows from it. */
export interface Finding {
  readonly state: State;
  /** Whether the state is "safe". */
  readonly ok: boolean;
  /** The verdict in words, and the reason. */
  readonly title: string;
  readonly text: string;
  readonly tone: "good" | "bad" | "doubt" | "work" | "old";
  readonly error?: Problem;
}

/** The contents of the file that "Save the report" writes. */
export interface Report {
  file: string;
  fileBytes?: number;
  /**
   * SHA-256 of the file, as `sha256sum` prints it: of the bytes as they were checked. For a file, it is known only after the verdict: see
   * `VerdictDetail.complete`. A bundle from an address that was not read to its end has none. Of a bundle in volumes, it is that of the bundle which
   * was split, and `fileBytes` is its size.
   */
  sha256?: string;
  /** The files of a bundle in volumes, in order, as soon as `sha256` is known. */
  volumes?: { file: string; number: number; fileBytes: number; sha256: string }[];
  /** When the check ended, in ISO 8601. */
  checked: string;
  state: State;
  ok: boolean;
  title: string;
  /** Every byte was checked, and is undamaged. */
  sound: boolean;
  /** Enough trusted keys signed it, and the policy accepts it. */
  trusted: boolean;
  error?: Problem;
  /** The first damaged part, and the files in it. */
  damage?: Place & Damage;
  /** The content of every file was checked as well. */
  deep: boolean;
  /** For a delta for which bases were given: those over which it was checked, or why it was not. */
  base?: { checked: boolean; bases?: { name: string; version: string; indexDigest: string }[]; error?: string };
  seconds: number;
  head?: Omit<Head, "signed">;
  /** Without the keys and fingerprints of unknown signers: a person who is to trust one gets the fingerprint from the publisher, and not from here. */
  verdict?: Verdict;
  summary?: Summary;
  /** The policy by which it was judged. `forgets`: the browser forgets settings and versions when the page is closed. */
  policy?: Pick<Policy, "allowedSigners" | "threshold" | "compatible"> & {
    /** The lowest version that was accepted. */
    floor?: string;
    revoked?: string;
    /** SHA-256 of these files or texts. */
    allowedSignersSha256?: string;
    revokedSha256?: string;
    forgets: boolean;
    /** When it was judged, in ISO 8601. */
    judged: string;
  };
  /** The package that checked it: its version, and the SHA-256 of its sealift_wasm_bg.wasm. */
  page: { version: string; module?: string };
}

export interface Checked {
  source: BundleSource;
  name: string;
}

/** A change of the finding on one bundle; without `source` and what follows it, only `ok` changed, since a bundle was dropped or chosen. */
export interface VerdictDetail extends Partial<Checked> {
  /** The element's `ok`: whether all bundles are safe. The bundle's own is in its report. */
  ok: boolean;
  state: State;
  /** The report as of this event. */
  report?: Report;
  /** Resolves once nothing is read any more, to the report with the file's SHA-256, unless the check was stopped or the file cannot be read. */
  complete?: Promise<Report>;
}

export interface SealiftEventMap {
  /** The check of a bundle begins, or begins again. */
  "sealift-start": CustomEvent<Checked>;
  "sealift-progress": CustomEvent<Checked & Progress>;
  /**
   * The finding on a bundle changed: at the end of a check, when the bundle is judged again, and when a safe bundle is no longer known to be safe. It
   * tells every change of `ok`, also to false when a bundle is dropped; after the element was removed, to listeners above the place where it was, which is its target then.
   */
  "sealift-verdict": CustomEvent<VerdictDetail>;
  /** No bundle is chosen any more, for example after the element was removed from its document. */
  "sealift-reset": CustomEvent<undefined>;
}

declare global {
  interface HTMLElementTagNameMap {
    "sealift-verifier": SealiftVerifier;
  }
  interface GlobalEventHandlersEventMap extends SealiftEventMap {}
}
