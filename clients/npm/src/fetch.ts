// Calls a live bridge with openapi-fetch, whose every path, argument and answer
// is typed by what openapi-typescript made of the bridge's documents.
import assert from "node:assert/strict";
import { join } from "node:path";
import createClient from "openapi-fetch";
import type { paths } from "../gen/fetch/all.js";
import type { paths as demoPaths } from "../gen/fetch/demo.js";
import { bridge, files } from "./live.js";

const all = createClient<paths>({ baseUrl: bridge });

const sum = await all.POST("/tools/demo/add", { body: { a: 40, b: 2 } });
assert.equal(sum.data?.sum, 42);

const echo = await all.POST("/tools/everything/echo", { body: { message: "grüße" } });
assert.deepEqual(echo.data?.content[0], { type: "text", text: "Echo: grüße" });

const added = await all.POST("/tools/everything/get-sum", { body: { a: 1, b: 2 } });
assert.equal(added.data?.content[0]?.text, "The sum of 1 and 2 is 3.");

const text = await all.POST("/tools/files/read_text_file", { body: { path: join(files, "hello.txt"), head: 1 } });
assert.equal(text.data?.content, "first");

// A tool without arguments takes no body at all.
const graph = await all.POST("/tools/memory/read_graph");
assert.deepEqual(graph.data, { entities: [], relations: [] });

// @ts-expect-error: the document says that b is required, and so does the bridge.
const refused = await all.POST("/tools/demo/add", { body: { a: 40 } });
assert.equal(refused.response.status, 422);
assert.equal(refused.error?.code, "invalid-arguments");
assert.deepEqual(refused.error?.errors?.map((fault) => fault.message), ['misses "b"']);

const failed = await all.POST("/tools/demo/fail", { body: {} });
assert.equal(failed.error?.code, "tool-error");
assert.equal(failed.error?.content?.[0]?.text, "disk full");

// A handle's own document has its own paths.
const demo = createClient<demoPaths>({ baseUrl: `${bridge}/tools/demo` });
const greeting = await demo.POST("/greet", { body: { name: "Ada", language: "de" } });
assert.equal(greeting.data?.content[0]?.text, "Guten Tag, Ada!");
