// A worker that does the steps of a deep check one by one, and says how long each takes: the bound of the check's speed.

import { Bare, initSync } from "/bare/bare.js";

/** Takes every `step`th chunk from the `first` on. */
self.onmessage = async ({ data: { module, blob, head, first, step } }) => {
  initSync({ module });
  const bare = new Bare(head);
  const seconds = { zstd: 0, blake3: 0, sha256: 0 };
  let offset = head.length;
  for (const [chunk, length] of bare.lengths().entries()) {
    if (chunk % step === first) {
      bare.take(chunk, new Uint8Array(await blob.slice(offset, offset + length).arrayBuffer()));
      for (const name of Object.keys(seconds)) {
        const start = performance.now();
        bare[name]();
        seconds[name] += (performance.now() - start) / 1000;
      }
    }
    offset += length;
  }
  self.postMessage(seconds);
};
