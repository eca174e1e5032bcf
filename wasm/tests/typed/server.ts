// A server in strict TypeScript, with Node's types and without a browser's.

import { createReadStream, openAsBlob } from "node:fs";
import { open, readFile } from "node:fs/promises";

import { verify } from "sealift";

export async function check(path: string): Promise<string> {
  const handle = await open(path);
  const allowedSigners = await readFile("allowed_signers");
  for (const source of [path, createReadStream(path), await readFile(path), handle, await openAsBlob(path)]) {
    await verify(source, { allowedSigners, signal: AbortSignal.timeout(1000) });
  }
  await handle.close();
  const { head, verdict } = await verify(new URL(`file://${path}`), { allowedSigners, deep: true });
  return `${head.name} ${head.version} ${verdict.trusted}`;
}
