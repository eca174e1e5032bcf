// Keeps the bundles that it verified itself: what a browser found helps who uploads, and proves nothing.
// Run by: node server.mjs ALLOWED_SIGNERS FOLDER [PORT]. Uploads pass through memory: for larger ones take a parser of forms that streams.
import { createReadStream, statSync } from "node:fs";
import { mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
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
  const files = (form?.getAll("bundle") ?? []).filter((value) => value instanceof File);
  if (files.length === 0) return [400, "There is no bundle in this form."];
  // The form takes one bundle: several files are its volumes.
  const isSplit = files.length > 1;
  const { head } = await verify(isSplit ? files : files[0], { allowedSigners: await readFile(signers, "utf8"), deep: true });
  // The name is the one that was signed: that of the upload could be anything.
  const start = `${encodeURIComponent(head.name)}-`;
  const versions = (await readdir(folder)).filter((file) => file.startsWith(start)).map((file) => /^(\d+)\.(?:sealift|volumes)$/.exec(file.slice(start.length))?.[1]);
  const later = versions.find((version) => version !== undefined && BigInt(version) > BigInt(head.version));
  if (later !== undefined) return [422, `Refused (downgrade): version ${later} of ${head.name} is kept already.`];
  // It appears when all of it is there.
  const kept = join(folder, `${start}${head.version}.${isSplit ? "volumes" : "sealift"}`);
  const part = `${kept}.${crypto.randomUUID()}.part`;
  try {
    if (isSplit) await mkdir(part);
    for (const [at, file] of files.entries()) await writeFile(isSplit ? join(part, `${at + 1}.sealift-volume`) : part, file.stream());
    await rm(kept, { recursive: true, force: true });
    await rename(part, kept);
  } finally {
    await rm(part, { recursive: true, force: true });
  }
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
