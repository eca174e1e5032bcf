// Defines <sealift-verifier>: what a page embeds with one script tag.

import { SealiftVerifier } from "./page/element.js";

// Where a page is made on a server there are no elements.
if (globalThis.customElements && !customElements.get("sealift-verifier")) customElements.define("sealift-verifier", SealiftVerifier);

export { SealiftVerifier };
