// Checks signed offline updates in browsers and Node. The types are in ../types.d.ts.

export { SealiftError } from "./errors.js";
export { openBundle, ready, verify } from "./open.js";
export { checkPolicy } from "./options.js";
