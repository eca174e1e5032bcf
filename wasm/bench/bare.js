// A worker that does nothing but read: the limit that the browser sets. The package's workers read a file as `reused` does, and a URL as `url` does.

const RUN_BYTES = 8 << 20;

/** Buffers that were filled and may be filled again. */
const spare = [];

let litter = [];

/** Without small objects to collect, hundreds of megabytes of buffers pile up. */
function sweep(length) {
  for (let done = 0; done < length; done += 1 << 15) litter = new Array(1024).fill(done);
}

const ways = {
  async blob({ blob }, offset, length) {
    const { byteLength } = await blob.slice(offset, offset + length).arrayBuffer();
    sweep(byteLength);
    return byteLength;
  },
  async reused({ blob }, offset, length) {
    const { buffer, filled } = await fill(blob.slice(offset, offset + length).stream(), length, spare.pop() ?? new ArrayBuffer(RUN_BYTES));
    spare.push(buffer);
    return filled;
  },
  async url({ url }, offset, length) {
    const response = await fetch(url, { headers: { Range: `bytes=${offset}-${offset + length - 1}` } });
    const { filled } = await fill(response.body, length, new ArrayBuffer(length));
    sweep(filled);
    return filled;
  },
};

async function fill(stream, length, given) {
  const reader = stream.getReader({ mode: "byob" });
  let [buffer, filled] = [given, 0];
  while (filled < length) {
    const { done, value } = await reader.read(new Uint8Array(buffer, filled, length - filled));
    if (value) buffer = value.buffer;
    if (done) break;
    filled += value.byteLength;
  }
  reader.cancel().catch(() => {});
  return { buffer, filled };
}

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
    }
  };
  await Promise.all([lane(), lane()]);
  self.postMessage(read);
};
