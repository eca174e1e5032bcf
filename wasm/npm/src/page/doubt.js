// Why nothing is known, where it is the page that says so.

/** The word for it is the `code`, as in reports. */
export class Doubt extends Error {
  /**
   * @param {import("../../element.js").PageDoubt} code
   * @param {string} message
   * @param {unknown} [cause]
   */
  constructor(code, message, cause) {
    super(message, { cause });
    this.name = "Doubt";
    this.code = code;
  }
}
