// What the tests of one file share: bundles, a site that gives them, and people who visit it.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after } from "node:test";

import { shelf } from "./shelf.mjs";
import { site } from "./site.mjs";
import { visitors } from "./visitors.mjs";

/**
 * Makes them, and ends them after the file's last test. Their allowed signers are signers.txt, in the folder of the bundles.
 * @param {{ entries?: number, serve?: (bundles: ReturnType<typeof shelf>) => object }} [options] `entries` as for `shelf`; `serve` adds to the bundles,
 * and returns what the site serves besides them.
 */
export async function setup({ entries, serve = () => ({}) } = {}) {
  const bundles = shelf({ entries });
  let server;
  let people;
  after(async () => {
    await people?.close();
    await server?.close();
    bundles.remove();
  });
  writeFileSync(join(bundles.folder, "signers.txt"), bundles.signers);
  server = await site({ bundles: bundles.folder, ...serve(bundles) });
  people = visitors(server);
  return { server, bundles, people };
}
