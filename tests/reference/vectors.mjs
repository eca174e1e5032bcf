/**
 * Runs the vectors that concern the core of the format, and volumes, through the reader in JavaScript (spec/vectors/README.md):
 *
 *     node vectors.mjs [FILE...]          compare kinds of failure and content; without files, all vectors
 *     node vectors.mjs --json FILE...     print the content
 */
import { readFileSync, readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { content } from "./content.mjs";
import { Bundle, Rejected } from "./sealift.mjs";
import { contentAlone, join } from "./volume.mjs";

const FOLDER = fileURLToPath(new URL("../../spec/vectors/", import.meta.url));

/** A vector's header, by key, and its input. */
function split(path) {
  const file = readFileSync(path);
  const end = file.indexOf("\n\n");
  const keys = file.subarray(0, end).toString().split("\n").map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 2)]);
  const bases = keys.filter(([key]) => key === "base").map(([, name]) => name);
  return { keys: new Map(keys), bases, input: new Uint8Array(file.subarray(end + 2)) };
}

/** `ok` or the kind of failure, and the content. */
function read({ keys, bases, input }) {
  const check = keys.get("check") ?? "deep";
  try {
    if (check === "volume" && bases.length === 0) return { found: "ok", content: contentAlone(input) };
    const others = bases.map((name) => split(`${FOLDER}${name}.vec`).input);
    const bundle = new Bundle(check === "volume" ? join([input, ...others]) : input);
    if (check === "verify") bundle.checkChunks();
    if (check === "deep" || check === "volume") bundle.checkObjects();
    return { found: "ok", content: content(bundle) };
  } catch (error) {
    if (!(error instanceof Rejected)) throw error;
    return { found: error.kind };
  }
}

/** Runs one vector, and returns which other parts of the format it needs, what does not match, or nothing. */
function run(path) {
  const vector = split(path);
  const [expected, needs] = [vector.keys.get("expect"), vector.keys.get("needs")];
  if (needs !== "core" && needs !== "core volumes") return { omitted: needs.replace("core ", "") };
  const { found, content: own } = read(vector);
  if (found !== expected) return { wrong: `${path}: it is ${found}` };
  const wanted = expected === "ok" ? readFileSync(path.replace(/vec$/, "json"), "utf8") : undefined;
  return own === wanted ? {} : { wrong: `${path}: the content is another` };
}

function main(paths) {
  const results = paths.map(run);
  const wrong = results.flatMap((result) => result.wrong ?? []);
  const omitted = results.flatMap((result) => result.omitted ?? []);
  for (const line of wrong) console.log(line);
  for (const part of [...new Set(omitted)].sort()) {
    console.log(`left out: ${omitted.filter((each) => each === part).length} of ${part}`);
  }
  const ran = paths.length - omitted.length;
  console.log(`${ran - wrong.length} of ${ran} vectors agree, ${omitted.length} concern other parts of the format`);
  return wrong.length > 0 ? 1 : 0;
}

const paths = process.argv.slice(2);
if (paths[0] === "--json") {
  for (const path of paths.slice(1)) {
    const { found, content: own } = read(split(path));
    process.stdout.write(own ?? `${found}\n`);
  }
} else {
  const all = () => readdirSync(FOLDER).filter((name) => name.endsWith(".vec")).sort().map((name) => FOLDER + name);
  process.exitCode = main(paths.length > 0 ? paths : all());
}
