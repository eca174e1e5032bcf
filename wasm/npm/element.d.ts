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
 * Attributes. All are optional, and may change at any time; the bundles are then judged again:
 * - `src`: a bundle to check at once.
 * - `trust-src`, `revoked-src`: the addresses of the allowed signers and the revoked keys. If one cannot be loaded, no bundle is safe.
 * - `floor-src`: the address of the lowest versions that are accepted, as JSON: `{"os": "7"}`. Versions that this browser has seen count as well.
 * - `threshold`: the number of keys that must have signed, as in `2` or `os=2 app-*=1`. `compatible`: the devices' tags.
 * - `base-src`: the address of an older bundle to compare with; for a delta bundle, the addresses of its bases, separated by spaces: it is safe only
 *   if it could be checked over them. `deep="no"`: only stored bytes are checked, not what they unpack to.
 * - `settings="readonly"`: the user cannot change settings, and settings stored in this browser do not count.
 * - `hide`: any of `chooser address settings layout`.
 * - `wasm-url`, `worker-url`: the URLs of the package's parts, for bundlers that do not find them: see the README.
 * - `multiple`: accepts several bundles, each with its own verdict.
 * - `name`, `required`, `disabled`, `form`: as for any form field.
 */
export class SealiftVerifier extends HTMLElement {
  static readonly formAssociated: true;
  /** Whether there are bundles, and all are safe to install. */
  readonly ok: boolean;
  /** The facts about the bundle that is shown. */
  readonly finding: Finding;
  readonly reports: Report[];
  readonly form: HTMLFormElement | null;
  name: string;
  readonly type: "sealift-verifier";
  readonly validity: ValidityState;
  readonly validationMessage: string;
  readonly willValidate: boolean;
  checkValidity(): boolean;
  reportValidity(): boolean;
  /** Checks a bundle, and shows the result. Previous bundles are dropped. Resolves when the check ends. */
  check(source: BundleSource, name?: string): Promise<void>;
  /** Stops checking. A bundle whose check was not finished is then "unknown", unless it is refused already. */
  stop(): void;
  /** Restores the state before anything was chosen. */
  reset(): void;
}

/**
 * In this order: nothing was chosen; the bundle is being checked or judged again; the result is undetermined; it must not be used; it may be used.
 * "unknown" also covers what could not be read, loaded or stored, and checks that were stopped.
 */
export type State = "empty" | "checking" | "unknown" | "refused" | "safe";

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
  readonly tone: "good" | "bad" | "doubt" | "work";
  readonly error?: Problem;
}

/** The contents of the file that "Save the report" writes. */
export interface Report {
  file: string;
  fileBytes?: number;
  /**
   * SHA-256 of the file, as `sha256sum` prints it: of the bytes as they were checked. For a file, it is known only after the verdict: see
   * `VerdictDetail.complete`. A bundle from an address that was not read to its end has none.
   */
  sha256?: string;
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
  verdict?: Verdict;
  summary?: Summary;
  /** The policy by which it was judged. `forgets`: the browser forgets settings and versions when the page is closed. */
  policy?: Pick<Policy, "allowedSigners" | "threshold" | "compatible" | "floor"> & {
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

export interface VerdictDetail extends Checked {
  ok: boolean;
  state: State;
  /** The report as of this event. */
  report: Report;
  /** Resolves once nothing is read any more, to the report with the file's SHA-256, unless the check was stopped or the file cannot be read. */
  complete: Promise<Report>;
}

export interface SealiftEventMap {
  /** The check of a bundle begins, or begins again. */
  "sealift-start": CustomEvent<Checked>;
  "sealift-progress": CustomEvent<Checked & Progress>;
  /** The finding changed: at the end of a check, when the bundle is judged again, and when a safe bundle is no longer known to be safe. */
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
