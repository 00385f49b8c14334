// Validates every document in $DOCS with two independent validators: Redocly's
// (its rules are in redocly.yaml), and swagger-parser, which holds a document
// to the specification's own JSON Schema. Both must also refuse documents that
// are broken on purpose: a validator that accepts everything proves nothing.
import { spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import SwaggerParser from "@apidevtools/swagger-parser";

const docs = process.env.DOCS;
const documents = readdirSync(docs, { recursive: true })
  .filter((name) => name.endsWith(".json"))
  .map((name) => join(docs, name));
if (documents.length === 0) throw new Error(`no documents in ${docs}`);

// What Redocly misses where the bridge has nothing to refuse.
const nothingToRefuse = /^operation-4xx-response: .* #\/paths\/~1(docs|docs~1bridge|healthz|openapi-bridge\.json|readyz)\/get\/responses$/;

const failures = [];
for (const [path, problems] of redocly(documents)) {
  const counted = problems.filter((problem) => basename(path) !== "bridge.json" || !nothingToRefuse.test(problem));
  failures.push(...counted.map((problem) => `${path}: redocly: ${problem}`));
}
for (const path of documents) {
  const problem = await swaggerParser(path);
  if (problem) failures.push(`${path}: swagger-parser: ${problem}`);
}

const broken = breakAll(join(docs, "demo.json"), "gen/broken");
for (const [path, problems] of redocly(broken)) {
  if (problems.length === 0) failures.push(`redocly accepts ${path}`);
}
for (const path of broken) {
  if (!(await swaggerParser(path))) failures.push(`swagger-parser accepts ${path}`);
}

for (const failure of failures) console.log(failure);
console.log(`${documents.length} documents and ${broken.length} broken ones, ${failures.length} failures`);
process.exitCode = failures.length === 0 ? 0 : 1;

/** What Redocly finds wrong, by document. */
function redocly(paths) {
  const args = ["node_modules/.bin/redocly", "lint", "--config=redocly.yaml", "--format=json", "--max-problems=1000", ...paths];
  const env = { ...process.env, REDOCLY_TELEMETRY: "off", REDOCLY_SUPPRESS_UPDATE_NOTICE: "true" };
  const run = spawnSync(process.execPath, args, { encoding: "utf8", env, maxBuffer: 1 << 28 });
  // Problems are exit status 1, and are in the output.
  if (!run.stdout.startsWith("{")) throw new Error(`redocly: ${run.stderr}`);

  // One object per document, in their order, with nothing between them.
  const reports = JSON.parse(`[${run.stdout.replaceAll("\n}{", "\n},{")}]`);
  if (reports.length !== paths.length) throw new Error(`redocly: ${reports.length} reports on ${paths.length} documents`);
  return new Map(paths.map((path, i) => [path, reports[i].problems.map(describe)]));
}

function describe({ ruleId, message, location }) {
  return `${ruleId}: ${message} ${location[0]?.pointer ?? ""}`;
}

/** What swagger-parser finds wrong, or nothing. */
async function swaggerParser(path) {
  try {
    await SwaggerParser.validate(path, { resolve: { external: false } });
  } catch (error) {
    return error.message;
  }
}

/** Writes copies of a document that each have one fault, and returns their paths. */
function breakAll(source, folder) {
  const faults = {
    "unknown-key": (document) => (first(document.paths).foo = {}),
    "dangling-reference": (document) => (first(document.paths).post.responses["400"].$ref = "#/components/responses/none"),
    "no-title": (document) => delete document.info.title,
  };
  mkdirSync(folder, { recursive: true });
  return Object.entries(faults).map(([name, breakIt]) => {
    const document = JSON.parse(readFileSync(source, "utf8"));
    breakIt(document);
    const path = join(folder, `${name}.json`);
    writeFileSync(path, JSON.stringify(document));
    return path;
  });
}

function first(object) {
  return Object.values(object)[0];
}
