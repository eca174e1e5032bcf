// The reason why there is no verdict, if it lies in the page itself.

/** `code` is the reason, as in reports. */
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
