// A button that opens an image, an archive or a compressed file.

import { fill, h } from "./dom.js";

/** @typedef {import("../../types.js").Container} Container */

/**
 * Returns a button that opens a file as a container, and its status messages.
 * @param {import("../../types.js").Bundle} from The bundle, or the container that has the file.
 * @param {import("./tree.js").Entry} entry
 * @param {(container: Container) => void} opened
 */
export function lookingInto(from, entry, opened) {
  const status = h("span", { class: "quiet", role: "status" });
  /** @type {AbortController | undefined} */
  let running;
  const press = async () => {
    if (running) return running.abort();
    const controller = (running = new AbortController());
    button.textContent = "Stop looking into it";
    fill(status, "Reading …");
    try {
      const found = await from.inside(/** @type {any} */ (entry), { signal: controller.signal });
      if (found && "kind" in found) {
        fill(status, `What is in it is below its name (${found.kind}).`);
        opened(found);
      } else {
        fill(status, found ? `It cannot be taken apart: ${found.opaque}.` : "It is no image, archive or compressed file that this page reads.");
      }
    } catch (error) {
      const { name, message } = /** @type {Error} */ (error);
      fill(status, name === "AbortError" ? "Not opened." : `This page cannot read it: ${message}`);
    }
    running = undefined;
    button.textContent = "Look into this file";
  };
  const button = h("button", { type: "button", onclick: press }, "Look into this file");
  return h("p", {}, button, " ", status);
}
