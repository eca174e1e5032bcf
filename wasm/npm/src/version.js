// The package's version.

/** As in package.json. */
export const VERSION = "0.0.0";
