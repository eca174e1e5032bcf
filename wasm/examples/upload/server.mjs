// Keeps the bundles that it verified itself: what a browser found helps who uploads, and proves nothing.
// Run by: node server.mjs ALLOWED_SIGNERS FOLDER [PORT]. Uploads pass through memory: for larger ones take a parser of forms that streams.
import { createReadStream, existsSync } from "node:fs";
import { readFile, rename, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { extname, join } from "node:path";
import { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { SealiftError, verify } from "sealift";

const [signers, folder, port = "8080"] = process.argv.slice(2);
const MAX_BYTES = 1 << 30;
const TYPES = { ".html": "text/html", ".js": "text/javascript", ".wasm": "application/wasm" };
const sealift = fileURLToPath(new URL("..", import.meta.resolve("sealift")));
const files = { "/": fileURLToPath(new URL("index.html", import.meta.url)), "/allowed_signers": signers };

async function upload(request) {
  if (!(Number(request.headers["content-length"]) <= MAX_BYTES)) return [413, "This is too large."];
  const form = await new Response(Readable.toWeb(request), { headers: request.headers }).formData().catch(() => undefined);
  const bundle = form?.get("bundle");
  if (!(bundle instanceof File)) return [400, "There is no bundle in this form."];
  const { head } = await verify(bundle, { allowedSigners: await readFile(signers, "utf8"), deep: true });
  // The name is the one that was signed: that of the upload could be anything. It appears when all of it is there.
  const kept = join(folder, `${encodeURIComponent(head.name)}-${head.version}.sealift`);
  await writeFile(`${kept}.part`, bundle.stream());
  await rename(`${kept}.part`, kept).finally(() => rm(`${kept}.part`, { force: true }));
  return [201, `${head.name} version ${head.version} is kept.`];
}

const server = createServer(async (request, response) => {
  const { pathname } = new URL(request.url, "http://localhost");
  const file = files[pathname] ?? (pathname.startsWith("/sealift/") ? join(sealift, pathname.slice("/sealift".length)) : "");
  if (request.method === "POST" && pathname === "/upload") {
    const refused = (error) => (error instanceof SealiftError ? [422, `Refused (${error.code}): ${error.message}`] : [500, "It could not be kept."]);
    const [status, text] = await upload(request).catch(refused);
    response.writeHead(status, { "Content-Type": "text/plain; charset=utf-8", Connection: "close" }).end(`${text}\n`);
  } else if (request.method === "GET" && existsSync(file) && file !== sealift) {
    createReadStream(file).pipe(response.writeHead(200, { "Content-Type": TYPES[extname(file)] ?? "text/plain" }));
  } else response.writeHead(404).end();
}).listen(Number(port), "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}/`));
