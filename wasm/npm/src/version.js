// Which version of the package this is.

/** As in package.json. */
export const VERSION = "0.0.0";
