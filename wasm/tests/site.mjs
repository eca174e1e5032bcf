// The page as any static server gives it.

import { createReadStream, existsSync, statSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));

const TYPES = { ".html": "text/html", ".js": "text/javascript", ".mjs": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".txt": "text/plain" };

/**
 * Serves www/ or another folder, the package below /sealift/, and more by their first component: folders, and functions that answer themselves. A file of
 * another type is octets: wasm, too. `more` are headers of all of them. It notes the path of each request, and of those for a part of a file its bytes, from
 * `start` to before `end`.
 */
export async function site(folders = {}, page = here("../www"), more = {}) {
  const roots = { sealift: here("../npm"), ...folders };
  const requests = [];
  const ranges = [];
  const server = createServer((request, response) => {
    const path = normalize(decodeURIComponent(new URL(request.url, "http://localhost").pathname)).slice(1);
    const [first, ...rest] = path.split("/");
    if (typeof roots[first] === "function") return roots[first](request, response);
    const file = first in roots ? join(roots[first], ...rest) : join(page, path || "index.html");
    requests.push(path);
    if (!existsSync(file) || !statSync(file).isFile()) return response.writeHead(404).end();
    const { size } = statSync(file);
    const headers = { "Content-Type": TYPES[extname(file)] ?? "application/octet-stream", "Accept-Ranges": "bytes", ...more };
    const [, start, last] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? "") ?? [];
    if (start === undefined) {
      response.writeHead(200, { ...headers, "Content-Length": size });
      return createReadStream(file).pipe(response);
    }
    const end = Math.min(Number(last), size - 1);
    if (Number(start) > end) return response.writeHead(416).end();
    ranges.push({ path, start: Number(start), end: end + 1 });
    response.writeHead(206, { ...headers, "Content-Range": `bytes ${start}-${end}/${size}`, "Content-Length": end - Number(start) + 1, ETag: `"${size}"` });
    createReadStream(file, { start: Number(start), end }).pipe(response);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const origin = `http://127.0.0.1:${server.address().port}`;
  return { origin, requests, ranges, close: () => new Promise((resolve) => (server.close(resolve), server.closeAllConnections())) };
}
