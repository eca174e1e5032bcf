// A worker that does nothing but read, in the ways that the package's workers do: the limit that the browser sets.

const RUN_BYTES = 8 << 20;

let litter = [];

/** Without small objects to collect, hundreds of megabytes of buffers pile up. */
function sweep(length) {
  for (let done = 0; done < length; done += 1 << 15) litter = new Array(1024).fill(done);
}

const ways = {
  async blob({ blob }, offset, length) {
    return (await blob.slice(offset, offset + length).arrayBuffer()).byteLength;
  },
  async url({ url }, offset, length) {
    const response = await fetch(url, { headers: { Range: `bytes=${offset}-${offset + length - 1}` } });
    const reader = response.body.getReader({ mode: "byob" });
    let buffer = new ArrayBuffer(length);
    let filled = 0;
    for (;;) {
      const { done, value } = await reader.read(new Uint8Array(buffer, filled));
      if (value) [buffer, filled] = [value.buffer, filled + value.byteLength];
      if (done || filled === length) return filled;
    }
  },
};

/** Reads every `step`th run from the `first` on, two at a time. */
self.onmessage = async ({ data: { how, source, size, first, step } }) => {
  let next = first;
  let read = 0;
  const lane = async () => {
    for (;;) {
      const offset = next * RUN_BYTES;
      next += step;
      if (offset >= size) return;
      const got = await ways[how](source, offset, Math.min(RUN_BYTES, size - offset));
      read += got;
      sweep(got);
    }
  };
  await Promise.all([lane(), lane()]);
  self.postMessage(read);
};
