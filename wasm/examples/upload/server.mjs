// Keeps the bundles that it verified itself: what a browser found helps who uploads, and proves nothing.
// Run by: node server.mjs ALLOWED_SIGNERS FOLDER [PORT]. Uploads pass through memory: for larger ones take a parser of forms that streams.
import { createReadStream, statSync } from "node:fs";
import { readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
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
  // The name is the one that was signed: that of the upload could be anything.
  const start = `${encodeURIComponent(head.name)}-`;
  const versions = (await readdir(folder)).filter((file) => file.startsWith(start)).map((file) => /^(\d+)\.sealift$/.exec(file.slice(start.length))?.[1]);
  const later = versions.find((version) => version !== undefined && BigInt(version) > BigInt(head.version));
  if (later !== undefined) return [422, `Refused (downgrade): version ${later} of ${head.name} is kept already.`];
  // It appears when all of it is there.
  const kept = join(folder, `${start}${head.version}.sealift`);
  await writeFile(`${kept}.part`, bundle.stream());
  await rename(`${kept}.part`, kept).finally(() => rm(`${kept}.part`, { force: true }));
  return [201, `${head.name} version ${head.version} is kept.`];
}

const server = createServer(async (request, response) => {
  const path = URL.canParse(request.url, "http://localhost") ? new URL(request.url, "http://localhost").pathname : "";
  const file = files[path] ?? (path.startsWith("/sealift/") ? join(sealift, path.slice("/sealift".length)) : "");
  if (request.method === "POST" && path === "/upload") {
    const refused = (error) => (error instanceof SealiftError ? [422, `Refused (${error.code}): ${error.message}`] : [500, "It could not be kept."]);
    const [status, text] = await upload(request).catch(refused);
    response.writeHead(status, { "Content-Type": "text/plain; charset=utf-8", Connection: "close" }).end(`${text}\n`);
  } else if (request.method === "GET" && statSync(file, { throwIfNoEntry: false })?.isFile()) {
    createReadStream(file).pipe(response.writeHead(200, { "Content-Type": TYPES[extname(file)] ?? "text/plain" }));
  } else response.writeHead(404).end();
}).listen(Number(port), "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}/`));
