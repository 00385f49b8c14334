// Calls tools whose arguments have every shape, with both generators' clients, and
// gets the same back.
import assert from "node:assert/strict";
import createClient from "openapi-fetch";
import type { paths } from "../gen/fetch/shapes.js";
import { client } from "../gen/hey/shapes/client.gen.js";
import * as tools from "../gen/hey/shapes/sdk.gen.js";
import { shapes } from "./live.js";

const baseUrl = `${shapes}/tools/shapes`;
const all = createClient<paths>({ baseUrl });
client.setConfig({ baseUrl });

const tree = { root: { label: "root", children: [{ label: "leaf" }] } };
assert.deepEqual((await all.POST("/recursion", { body: tree })).data, tree);
assert.deepEqual((await tools.recursion({ body: tree })).data, tree);

const constants = { kind: "circle", version: 1, none: null, flag: true } as const;
assert.deepEqual((await all.POST("/constant", { body: constants })).data, constants);
assert.deepEqual((await tools.constant({ body: constants })).data, constants);

const values = { mode: "fast", mixed: null, maybe: "on", either: "auto", flags: false, flag: true, signs: "ä" } as const;
assert.deepEqual((await all.POST("/enumeration", { body: values })).data, values);
assert.deepEqual((await tools.enumeration({ body: values })).data, values);

const tuple: { point: [number, number]; open: [string] } = { point: [1, 2.5], open: ["a"] };
assert.deepEqual((await all.POST("/tuple", { body: tuple })).data, tuple);
assert.deepEqual((await tools.tuple({ body: tuple })).data, tuple);

const unions = { one: 1, some: null, list: ["a"], shape: { kind: "square" as const, side: 2 } };
assert.deepEqual((await all.POST("/unions", { body: unions })).data, unions);
assert.deepEqual((await tools.unions({ body: unions })).data, unions);

const names = { __top: "1", "a-b": "2", class: "3", grüße: "4", "to/from": "5", $ref: "6", properties: { items: "7" } };
assert.deepEqual((await all.POST("/names", { body: names })).data, names);
assert.deepEqual((await tools.names({ body: names })).data, names);

// A path with an encoded name is sent as the document has it.
const text = { content: [{ type: "text", text: '{"a":"x"}' }] };
assert.deepEqual((await all.POST("/a%2Fb", { body: { a: "x" } })).data, text);
assert.deepEqual((await all.POST("/%7Bid%7D", { body: { a: "x" } })).data, text);

// @ts-expect-error: the document lists the modes, and so does the bridge.
const refused = await all.POST("/enumeration", { body: { mode: "medium" } });
assert.equal(refused.error?.code, "invalid-arguments");
