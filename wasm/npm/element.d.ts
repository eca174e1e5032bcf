import type { BundleSource, Damage, Doubt, Head, Kind, Place, Policy, Progress, Summary, Verdict } from "./types.js";

/**
 * A place to drop a bundle, and what there is to say of it. In a form it is a field: valid when the bundle is safe to install, and only then
 * is the file sent.
 *
 *     <form method="post" enctype="multipart/form-data">
 *       <sealift-verifier name="bundle" required trust-src="/allowed_signers" settings="readonly"></sealift-verifier>
 *       <button>Upload</button>
 *     </form>
 *
 * A browser's verdict helps who uploads; a server checks again what it gets.
 *
 * Attributes, all of which may be left out and may change at any time, whereupon what is there is judged again:
 * - `src`: a bundle to check at once.
 * - `trust-src`, `revoked-src`: the allowed signers and the revoked keys. What cannot be loaded leaves nothing safe.
 * - `floor-src`: the lowest versions that are taken, as JSON: `{"os": "7"}`. Versions that this browser saw count as well.
 * - `threshold`: keys that have to have signed, as in `2` or `os=2 app-*=1`. `compatible`: the devices' tags.
 * - `base-src`: an older bundle to compare with; of a delta bundle its base, or all of them with spaces between the addresses, without which it is
 *   not known whether the delta is safe. `deep="no"`: only stored bytes are checked, not what they unpack to.
 * - `settings="readonly"`: the person sets nothing, and what this browser remembers of settings does not count.
 * - `hide`: any of `chooser address settings layout`.
 * - `wasm-url`, `worker-url`: where the package's parts lie, for bundlers that do not say so: see its README.
 * - `multiple`: several bundles, each with a verdict.
 * - `name`, `required`, `disabled`, `form`: as those of any field.
 */
export class SealiftVerifier extends HTMLElement {
  static readonly formAssociated: true;
  /** Whether there are bundles, and all are safe to install. */
  readonly ok: boolean;
  /** What is known of the bundle that is shown. */
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
  /** Checks a bundle, and shows what comes of it. Those before are left. It ends when the check does. */
  check(source: BundleSource, name?: string): Promise<void>;
  /** Ends what is being checked: nothing is known of it then. */
  stop(): void;
  /** As before anything was chosen. */
  reset(): void;
}

/**
 * Nothing was chosen; it is being checked, or judged anew; it is not known; it must not be used; it may be used. What could not be read, loaded or
 * remembered, and what was stopped, is "unknown".
 */
export type State = "empty" | "checking" | "unknown" | "refused" | "safe";

/** Why nothing is known, where it is the page that says so. "page": it failed; the message says of what. */
export type PageDoubt = "stopped" | "policy" | "memory" | "address" | "blocked" | "page";

export interface Problem {
  kind: Kind | Doubt | PageDoubt;
  message: string;
}

/** What is known of a bundle: the one value that everything else is made of. */
export interface Finding {
  readonly state: State;
  /** It is safe. */
  readonly ok: boolean;
  /** The verdict in words, and why. */
  readonly title: string;
  readonly text: string;
  readonly tone: "good" | "bad" | "doubt" | "work";
  readonly error?: Problem;
}

/** What "Save the report" writes. */
export interface Report {
  file: string;
  fileBytes?: number;
  /**
   * SHA-256 of the file, as `sha256sum` prints it: of the bytes as they were checked. That of a file is known after the verdict, which does not wait
   * for it: see `VerdictDetail.complete`. What came by an address, and was not read to its end, has none.
   */
  sha256?: string;
  /** When that ended, as ISO 8601 has it. */
  checked: string;
  state: State;
  ok: boolean;
  title: string;
  /** Every byte was checked, and is right. */
  sound: boolean;
  /** Enough trusted keys signed it, and the policy takes it. */
  trusted: boolean;
  error?: Problem;
  /** The first damaged part, and the files in it. */
  damage?: Place & Damage;
  /** The content of every file was checked, too, and is right. */
  deep: boolean;
  /** Of a delta for which bases are named: which ones it was checked over, or why it was not. */
  base?: { checked: boolean; bases?: { name: string; version: string; indexDigest: string }[]; error?: string };
  seconds: number;
  head?: Omit<Head, "signed">;
  verdict?: Verdict;
  summary?: Summary;
  /** What it was judged by. `forgets`: the browser keeps no versions beyond this page. */
  policy?: Pick<Policy, "allowedSigners" | "threshold" | "compatible" | "floor"> & {
    revoked?: string;
    /** SHA-256 of these files, or texts. */
    allowedSignersSha256?: string;
    revokedSha256?: string;
    forgets: boolean;
    /** When, as ISO 8601 has it. */
    judged: string;
  };
  /** What checked it: the package's version, and SHA-256 of its sealift_wasm_bg.wasm. */
  page: { version: string; module?: string };
}

export interface Checked {
  source: BundleSource;
  name: string;
}

export interface VerdictDetail extends Checked {
  ok: boolean;
  state: State;
  /** As of this moment. */
  report: Report;
  /** Resolves when nothing is read any more: to the report with SHA-256 of the file, unless that was stopped or cannot be read. */
  complete: Promise<Report>;
}

export interface SealiftEventMap {
  /** The check of a bundle begins, or begins again. */
  "sealift-start": CustomEvent<Checked>;
  "sealift-progress": CustomEvent<Checked & Progress>;
  /** What is known changed: at the end of a check, when it is judged anew, and when what was safe is not any more. */
  "sealift-verdict": CustomEvent<VerdictDetail>;
  /** Nothing is chosen any more; so it is after the element was removed from its document. */
  "sealift-reset": CustomEvent<undefined>;
}

declare global {
  interface HTMLElementTagNameMap {
    "sealift-verifier": SealiftVerifier;
  }
  interface GlobalEventHandlersEventMap extends SealiftEventMap {}
}
