import type { BundleSource } from "./types.js";

/**
 * `<sealift-verifier src="/updates/os.sealift" trust-src="/allowed_signers">`: all attributes may be left out. `deep="no"` unticks the check
 * of contents. It sends the event "sealift-verdict", whose detail is what "Save the report" writes.
 */
export class SealiftVerifier extends HTMLElement {
  check(source: BundleSource, name?: string): Promise<void>;
}

declare global {
  interface HTMLElementTagNameMap {
    "sealift-verifier": SealiftVerifier;
  }
}
