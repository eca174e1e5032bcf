// Defines <sealift-verifier>, which a page embeds with one script tag.

import { SealiftVerifier } from "./page/element.js";

// There are no elements in server-side rendering.
if (globalThis.customElements && !customElements.get("sealift-verifier")) customElements.define("sealift-verifier", SealiftVerifier);

export { SealiftVerifier };
