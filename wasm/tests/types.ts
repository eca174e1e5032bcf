// For the compiler alone: that the package is what types.d.ts says, and how a program in TypeScript uses it.

import type { Reader } from "../npm/pkg/sealift_wasm.js";
import * as code from "../npm/src/index.js";
import type * as types from "../npm/types.js";

code satisfies { checkPolicy: typeof types.checkPolicy; openBundle: typeof types.openBundle; ready: typeof types.ready; verify: typeof types.verify };
declare const reader: Reader;
reader.unlisted() satisfies types.Unlisted | undefined;
reader.edits() satisfies types.Edit[];
new code.SealiftError("chunk", "") satisfies types.SealiftError;

export async function example(file: File, { openBundle, verify }: typeof types): Promise<string> {
  const { head, verdict, summary } = await verify(file, { allowedSigners: "", deep: true, onProgress: ({ bytes }) => void bytes });
  const bundle = await openBundle(new URL("https://example.org/os.sealift"), { signal: AbortSignal.timeout(1000) });
  const { entries: listed } = await bundle.listed();
  const [main] = await bundle.refs();
  const [first] = await bundle.children(main.directory, 0, 1);
  const text = await new Response(await bundle.open(first)).text();
  const image = await bundle.inside(first, { signal: AbortSignal.timeout(1000) });
  const within = image && "kind" in image ? await image.read((await image.children(0, 0, 1))[0], 0, 9) : image?.opaque;
  bundle.close();
  // @ts-expect-error: a policy that is mistyped would be another one
  await verify(file, { allowUnsinged: true });
  return `${head.name} ${head.version} ${verdict.trusted} ${summary.entries} ${listed} ${text} ${within}`;
}
