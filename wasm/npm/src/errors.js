// Errors, with the codes of the program.

/** The bundle must not be used, or could not be read. `code` is the kind of failure. */
export class SealiftError extends Error {
  /**
   * @param {import("../types.js").Kind | import("../types.js").Doubt} code
   * @param {string} message
   * @param {unknown} [cause]
   * @param {import("../types.js").Place} [place] The damaged part.
   */
  constructor(code, message, cause, place) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = "SealiftError";
    this.code = code;
    this.place = place;
    /** Whether the file does not begin like a bundle. */
    this.isForeign = false;
    /** Which of a bundle's volumes are at fault. @type {import("../types.js").VolumeFault | undefined} */
    this.volumes = undefined;
  }
}

/**
 * Throws the error of a verdict that forbids to use the bundle.
 * @param {import("../types.js").Verdict} verdict
 */
export function refuse({ error }) {
  if (error) throw new SealiftError(error.code, error.message);
}

/**
 * Packs an error for another thread; a plain `Error` would lose everything but its message.
 * @param {unknown} error
 */
export function packed(error) {
  const { name, message, code, chunk, object } = /** @type {{ name?: string, message?: string, code?: unknown, chunk?: number, object?: number }} */ (error ?? {});
  const place = chunk === undefined && object === undefined ? undefined : { chunk, object };
  return { name: String(name ?? "Error"), message: String(message ?? error), code: typeof code === "string" ? code : undefined, place };
}

/**
 * @param {ReturnType<typeof packed>} error
 * @returns {Error}
 */
export function unpacked({ name, message, code, place }) {
  if (code !== undefined) return new SealiftError(/** @type {any} */ (code), message, undefined, place);
  if (name === "TypeError") return new TypeError(message);
  if (name === "AbortError") return new DOMException(message, name);
  return Object.assign(new Error(message), { name });
}

/**
 * Wraps an error of a base, or of a file given as one, so that the delta bundle does not look damaged.
 * @param {unknown} error
 */
export function ofBase(error) {
  return new SealiftError("base", `the base: ${/** @type {Error} */ (error).message}`, error);
}
