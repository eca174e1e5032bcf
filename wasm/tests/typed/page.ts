// A page in strict TypeScript, without Node's types.

import { openBundle, SealiftError, verify, type BundleSource, type Verified } from "sealift";
import { SealiftVerifier } from "sealift/element";

const element = document.querySelector("sealift-verifier");
if (!element) throw new Error("it is in the page");
element satisfies SealiftVerifier;

element.addEventListener("sealift-verdict", (event) => {
  const { ok, report, complete } = event.detail;
  void complete?.then(({ sha256 }) => console.log(sha256?.length));
  ok satisfies boolean;
  console.log(report?.head?.name, report?.error?.kind, report?.verdict?.signers[0]?.status);
  // @ts-expect-error: it has no such field
  console.log(event.detail.fine);
});
// It bubbles.
document.addEventListener("sealift-progress", ({ detail: { bytes, bytesTotal } }) => console.log(bytes / bytesTotal));
document.createElement("sealift-verifier") satisfies SealiftVerifier;

export async function check(file: File, stream: ReadableStream<Uint8Array>): Promise<Verified | undefined> {
  const sources: BundleSource[] = [file, [file, file], "/updates/os.sealift", new URL("https://example.org/os.sealift"), stream, new Uint8Array(8), { size: 8, read: () => new Uint8Array(8) }];
  await element?.check(file);
  try {
    const bundle = await openBundle(sources[0] ?? file, { allowedSigners: new Uint8Array(), wasmUrl: "/x.wasm", workerUrl: new URL("https://example.org/worker.js") });
    bundle.close();
    // @ts-expect-error: a policy that is mistyped would be another one
    await verify(file, { allowUnsinged: true });
    // @ts-expect-error: a promise is no source
    await verify(Promise.resolve(file));
    return await verify(file, { allowedSigners: "", onProgress: ({ seconds }) => void seconds });
  } catch (error) {
    if (error instanceof SealiftError && error.code === "chunk") return undefined;
    if (error instanceof SealiftError && error.volumes?.what === "missing") console.log(error.volumes.numbers.length, error.volumes.count);
    throw error;
  }
}
