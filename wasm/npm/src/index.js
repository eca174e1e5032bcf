// Checks signed offline updates in browsers and Node. The types are in ../types.d.ts.

export { checkPolicy, openBundle, ready, verify } from "./bundle.js";
export { SealiftError } from "./errors.js";
