// An MCP server over stdio whose tools have every shape of schema that the
// documents promise to carry. A tool answers with its arguments, as structured
// content when it declares an output schema.
import { createInterface } from "node:readline";

const object = (properties, more = {}) => ({ type: "object", properties, ...more });
const string = { type: "string" };
const integer = { type: "integer" };

// A node that contains a list of itself.
const recursive = object(
  { root: { $ref: "#/$defs/Node" } },
  {
    required: ["root"],
    $defs: {
      Node: object(
        { label: string, children: { type: "array", items: { $ref: "#/$defs/Node" } } },
        { required: ["label"] },
      ),
    },
  },
);

const inputs = {
  recursion: recursive,
  "mutual-recursion": object(
    { a: { $ref: "#/$defs/A" } },
    {
      $defs: {
        A: object({ name: string, b: { $ref: "#/$defs/B" } }),
        B: object({ size: integer, a: { $ref: "#/$defs/A" } }),
      },
    },
  ),
  reference: object({ from: string, to: { $ref: "#/properties/from" } }),
  "reference-with-siblings": object({
    short: string,
    long: { $ref: "#/properties/short", description: "a longer one", default: "abc", minLength: 3 },
  }),
  "draft-07": object(
    { z: { $ref: "#/definitions/Z" }, at: { type: "array", items: [{ type: "number" }, string], additionalItems: false } },
    { $schema: "http://json-schema.org/draft-07/schema#", definitions: { Z: { enum: ["x", "y"] } } },
  ),
  "draft-04": object(
    { ratio: { type: "number", minimum: 0, exclusiveMinimum: true } },
    { $schema: "http://json-schema.org/draft-04/schema#" },
  ),
  tuple: object({
    point: { type: "array", prefixItems: [{ type: "number" }, { type: "number" }], items: false, minItems: 2 },
    open: { type: "array", prefixItems: [string] },
  }),
  enumeration: object({
    mode: { type: "string", enum: ["fast", "slow"] },
    mixed: { enum: ["a", 1, true, null] },
    numbers: { type: "integer", enum: [1, 2, 3] },
    either: { type: ["integer", "string"], enum: [1, 2, "auto"] },
    maybe: { enum: ["on", "off", null] },
    flags: { enum: [true, false] },
    flag: { type: ["boolean", "null"], enum: [true, null] },
    signs: { type: "string", enum: ["", " ", "+", "-", "1", "class", "a b", "ä"] },
  }),
  "enumeration-of-fractions": object({ ratio: { enum: [0.5, 1.5] } }),
  "constants-that-are-objects": object({ origin: { const: { x: 0, y: 0 } }, corner: { enum: [{ x: 0 }, [1, 2]] } }),
  constant: object({ kind: { const: "circle" }, version: { const: 1 }, none: { const: null }, flag: { const: true } }),
  types: object({
    maybe: { type: ["string", "null"] },
    either: { type: ["string", "integer"] },
    any: { type: ["string", "number", "boolean", "object", "array", "null"] },
    nothing: { type: "null" },
  }),
  anything: object({ x: true, list: { type: "array", items: true }, bare: {}, array: { type: "array" }, never: false }),
  unions: object({
    one: { oneOf: [string, integer] },
    some: { anyOf: [string, { type: "null" }] },
    list: { anyOf: [string, { type: "array", items: string }] },
    both: { allOf: [object({ a: string }), object({ b: integer })] },
    shape: {
      oneOf: [
        object({ kind: { const: "circle" }, radius: { type: "number" } }, { required: ["kind", "radius"] }),
        object({ kind: { const: "square" }, side: { type: "number" } }, { required: ["kind", "side"] }),
      ],
    },
    not: { not: string },
  }),
  "union-at-the-root": {
    type: "object",
    properties: { id: integer, name: string },
    anyOf: [{ required: ["id"] }, { required: ["name"] }],
  },
  "all-at-the-root": {
    type: "object",
    allOf: [object({ a: string }, { required: ["a"] }), object({ b: integer })],
  },
  conditional: object(
    { country: string, zip: string },
    {
      if: { properties: { country: { const: "de" } }, required: ["country"] },
      then: { properties: { zip: { pattern: "^[0-9]{5}$" } } },
      else: { properties: { zip: { minLength: 1 } } },
    },
  ),
  names: object({
    __top: string, _id: string, "a-b": string, "x.y": string, from: string,
    class: string, type: string, default: string, self: string, body: string, client: string, url: string,
    "grüße": string, "1st": string, "with space": string, "to/from": string, "up~down": string, "%": string,
    $ref: string, properties: object({ items: string }),
  }),
  "names-with-signs": object({ $filter: string, "@type": string, "@id": string, "#": string }),
  "names-that-collide": object({ "a-b": string, a_b: string, aB: string, "a b": string }),
  map: object({ labels: { type: "object", additionalProperties: string } }),
  "map-at-the-root": { type: "object", additionalProperties: { type: "integer" } },
  "open-at-the-root": { type: "object", additionalProperties: true },
  "open-beside-properties": object({ a: string }, { additionalProperties: true }),
  patterns: object(
    { code: { type: "string", pattern: "^(?=.*\\d)[A-Z\\d]{3,}$" } },
    { patternProperties: { "^x-": string }, propertyNames: { maxLength: 20 }, minProperties: 0, maxProperties: 9 },
  ),
  numbers: object({
    above: { type: "number", exclusiveMinimum: 0, exclusiveMaximum: 1 },
    huge: { type: "integer", minimum: -9223372036854775808, maximum: 9007199254740993 },
    even: { type: "integer", multipleOf: 2 },
    cents: { type: "number", multipleOf: 0.01 },
  }),
  formats: object({
    long: { type: "integer", format: "int64" },
    at: { type: "string", format: "date-time" },
    day: { type: "string", format: "date" },
    link: { type: "string", format: "uri" },
    id: { type: "string", format: "uuid" },
    data: { type: "string", contentEncoding: "base64", contentMediaType: "image/png" },
    own: { type: "string", format: "our-own" },
  }),
  arrays: object({
    unique: { type: "array", items: string, uniqueItems: true, minItems: 1, maxItems: 3 },
    nested: { type: "array", items: { type: "array", items: integer } },
    has: { type: "array", contains: integer, minContains: 1 },
  }),
  dependencies: object(
    { card: string, address: string },
    { dependentRequired: { card: ["address"] }, dependentSchemas: { card: object({ zip: string }) } },
  ),
  defaults: object({
    text: { type: "string", default: "x", examples: ["y", "z"], title: "A text" },
    list: { type: "array", items: string, default: [] },
    point: { type: "object", properties: { x: integer }, default: { x: 1 } },
    nothing: { type: ["string", "null"], default: null },
    old: { type: "string", deprecated: true, readOnly: false, writeOnly: true },
  }),
  // As Pydantic writes it: x: int | str = 5
  "default-of-alternatives": object({ x: { anyOf: [integer, string], default: 5 } }),
  nullable: object({ old: { type: "string", nullable: true } }),
  undeclared: object({ a: string }, { required: ["a", "b"] }),
  closed: object({ a: string }, { additionalProperties: false, unevaluatedProperties: false }),
  "no-arguments": { type: "object" },
  "no-properties": object({}),
  "title-is-a-name": object({ a: string }, { title: "Problem", description: "named like a component of the document" }),
  "{id}": object({ a: string }),
  "a/b": object({ a: string }),
  "dots.in.name": object({ a: string }),
  [`a-name-of-seventy-characters-${"x".repeat(41)}`]: object({ a: string }),
  class: object({ a: string }),
};

// The tools whose answers have a schema too: the same.
const outputs = ["recursion", "tuple", "enumeration", "constant", "types", "anything", "unions", "names", "map", "numbers", "formats"];

const tools = Object.entries(inputs).map(([name, inputSchema]) => ({
  name,
  description: `Answers with its arguments (${name}).`,
  inputSchema,
  ...(outputs.includes(name) && { outputSchema: inputSchema }),
}));

function answer({ method, params }) {
  switch (method) {
    case "initialize":
      return { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "shapes", version: "1" } };
    case "ping":
      return {};
    case "tools/list":
      return { tools };
    case "tools/call": {
      const given = params.arguments ?? {};
      const content = [{ type: "text", text: JSON.stringify(given) }];
      return outputs.includes(params.name) ? { content, structuredContent: given } : { content };
    }
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  if (request.id === undefined) continue;
  const result = answer(request);
  const reply = result ? { result } : { error: { code: -32601, message: `no method ${request.method}` } };
  console.log(JSON.stringify({ jsonrpc: "2.0", id: request.id, ...reply }));
}
