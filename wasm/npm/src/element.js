// Defines <sealift-verifier>: what a page embeds with one script tag.

import { SealiftVerifier } from "./page/element.js";

if (!customElements.get("sealift-verifier")) customElements.define("sealift-verifier", SealiftVerifier);

export { SealiftVerifier };
