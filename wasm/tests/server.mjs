// A server that gives one file, well or badly.

import { createServer } from "node:http";

/**
 * Answers requests with `bytes`. How, says the path's last component: "good"; "whole", which knows no ranges; "short", which ends each body early;
 * "liar", which announces more than the file has; "other", which sends other bytes than were asked for; "changed", which has another file
 * from the second request on; "gone", which has none from then on; "silent", which shows no Content-Range; "missing".
 */
export function giving(bytes, requests = []) {
  return (request, response) => {
    const how = request.url.split("/").at(-1);
    const [, start, last] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? "") ?? [];
    requests.push({ how, start: Number(start), last: Number(last) });
    answer(how, requests.filter((each) => each.how === how).length, Number(start), Number(last), response);
  };

  function answer(how, count, start, last, response) {
    if (how === "missing" || (how === "gone" && count > 1)) return response.writeHead(404).end();
    if (how === "whole") return response.writeHead(200, { "Content-Length": bytes.length }).end(bytes);
    const end = Math.min(last + 1, bytes.length);
    if (start >= end) return response.writeHead(416, { "Content-Range": `bytes */${bytes.length}` }).end();
    const size = how === "liar" ? bytes.length + 1000 : bytes.length;
    const stop = how === "liar" ? Math.min(last + 1, size) : end;
    const from = how === "other" && count > 1 ? start + 1 : start;
    response.writeHead(206, {
      ...(how === "silent" ? {} : { "Content-Range": `bytes ${from}-${stop - 1}/${size}` }),
      ETag: how === "changed" && count > 1 ? '"two"' : '"one"',
    });
    const body = bytes.subarray(start, end);
    response.end(how === "short" ? body.subarray(0, body.length - 1) : body);
  }
}

/** A server that does so. */
export async function serve(bytes) {
  const requests = [];
  const server = createServer(giving(bytes, requests));
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: (how) => `http://127.0.0.1:${server.address().port}/${how}`,
    requests,
    close: () => new Promise((resolve) => (server.close(resolve), server.closeAllConnections())),
  };
}
