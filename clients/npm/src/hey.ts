// Calls a live bridge with the functions that @hey-api/openapi-ts made of its documents.
import assert from "node:assert/strict";
import { join } from "node:path";
import { client } from "../gen/hey/all/client.gen.js";
import { demoAdd, demoFail, everythingEcho, everythingGetSum, filesReadTextFile, memoryReadGraph } from "../gen/hey/all/sdk.gen.js";
import { client as demoClient } from "../gen/hey/demo/client.gen.js";
import { greet } from "../gen/hey/demo/sdk.gen.js";
import { bridge, files } from "./live.js";

client.setConfig({ baseUrl: bridge });

const sum = await demoAdd({ body: { a: 40, b: 2 } });
assert.equal(sum.data?.sum, 42);

const echo = await everythingEcho({ body: { message: "grüße" } });
assert.deepEqual(echo.data?.content[0], { type: "text", text: "Echo: grüße" });

const added = await everythingGetSum({ body: { a: 1, b: 2 } });
assert.equal(added.data?.content[0]?.text, "The sum of 1 and 2 is 3.");

const text = await filesReadTextFile({ body: { path: join(files, "hello.txt"), head: 1 } });
assert.equal(text.data?.content, "first");

const graph = await memoryReadGraph();
assert.deepEqual(graph.data, { entities: [], relations: [] });

// @ts-expect-error: the document says that b is required, and so does the bridge.
const refused = await demoAdd({ body: { a: 40 } });
assert.equal(refused.response?.status, 422);
assert.equal(refused.error?.code, "invalid-arguments");
assert.deepEqual(refused.error?.errors?.map((fault) => fault.message), ['misses "b"']);

const failed = await demoFail({ body: {} });
assert.equal(failed.error?.code, "tool-error");
assert.equal(failed.error?.content?.[0]?.text, "disk full");

demoClient.setConfig({ baseUrl: `${bridge}/tools/demo` });
const greeting = await greet({ body: { name: "Ada", language: "de" } });
assert.equal(greeting.data?.content[0]?.text, "Guten Tag, Ada!");
