import assert from "node:assert/strict";
import type { Message } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, test } from "vitest";
import { messages } from "../../test/fixtures/transcode.ts";
import { UPSTREAM_FORMS } from "../dialects/upstream.ts";
import { LanceNamespaceService } from "../gen/lance/namespace/v1/service_pb.ts";
import { passedBody } from "../namespace/messages/passed-answer.ts";
import type { Binding } from "./binding.ts";
import { type ClientBinding, createClientBindings } from "./client-binding.ts";
import { createTranscoder } from "./transcoder.ts";

const { methods, method } = LanceNamespaceService;
const clients = createClientBindings(methods, UPSTREAM_FORMS.specification);
const servers = new Map(
  createTranscoder([LanceNamespaceService]).bindings.map((each) => [each.method, each]),
);
const TYPE = "application/json";

/** Values that take the place of a part of an answer. */
const OTHERS: readonly unknown[] = [
  null,
  "",
  "x",
  "\ud800",
  true,
  false,
  0,
  1,
  1.5,
  [],
  {},
  ["x"],
  { x: "y" },
];

/** Returns the JSON of an answer that passes. */
const passedText = (answer: Message) => passedBody(answer, "json");

/** Replaces a part of a JSON value, which the numbers lead to. */
function changed(json: unknown, [step, ...rest]: readonly number[], other: unknown): unknown {
  if (step === undefined || typeof json !== "object" || json === null) return other;
  const keys = Object.keys(json);
  const key = keys[step % Math.max(1, keys.length + 1)] ?? "unknown";
  const copy = (Array.isArray(json) ? [...json] : { ...json }) as Record<string, unknown>;
  copy[key] = changed(copy[key], rest, other);
  return copy;
}

/** Returns what the gateway writes for the JSON of an upstream through the message; undefined if it refuses. */
function rewritten(client: ClientBinding, server: Binding, text: string): unknown {
  let message: Message;
  try {
    message = client.read(text, TYPE);
  } catch {
    return undefined;
  }
  return JSON.parse(server.encode(message));
}

describe("a text that passes says what the gateway would write", () => {
  for (const each of methods) {
    const [client, server] = [clients.get(each), servers.get(each)];
    if (client?.responseBody !== "json" || server === undefined) continue;
    test(each.name, () => {
      const steps = fc.array(fc.nat(6), { maxLength: 4 });
      fc.assert(
        fc.property(messages(each.output, 3), steps, fc.constantFrom(...OTHERS), (message, path, other) => {
          const written: unknown = JSON.parse(server.encode(message) || "{}");
          for (const json of [written, changed(written, path, other)]) {
            const text = JSON.stringify(json);
            if (passedText(tryPass(client, text)) === undefined) continue;
            assert.deepEqual(rewritten(client, server, text), JSON.parse(text), text);
          }
        }),
        { numRuns: 40 },
      );
    });
  }
});

/** Reads a text that may pass; an answer that is refused is a message without text. */
function tryPass(client: ClientBinding, text: string): Message {
  try {
    return client.read(text, TYPE, true);
  } catch {
    return { $typeName: "" };
  }
}

describe("an answer", () => {
  const describeTable = clients.get(method.describeTable) as ClientBinding;
  const listTables = clients.get(method.listTables) as ClientBinding;

  const plain: readonly (readonly [ClientBinding, string])[] = [
    [describeTable, ' {"table": "t", "namespace": ["n"], "location": "/t", "properties": {}}\n'],
    [describeTable, '{"properties":{"a":"b"},"managed_versioning":false}'],
    [listTables, '{"tables":[]}'],
    [listTables, '{"tables":["a","\\u00e9"],"page_token":""}'],
  ];
  for (const [client, text] of plain) {
    test(`passes: ${text.trim()}`, () => {
      assert.equal(passedText(client.read(text, TYPE, true)), text);
      assert.equal(passedText(client.read(text, TYPE)), undefined, "unless the message is needed");
    });
  }

  const others: readonly (readonly [string, string])[] = [
    ["has a context", '{"properties":{},"context":{"header.set-cookie":"a=b"}}'],
    ["lacks a required field", '{"table":"t"}'],
    ["has an unknown field", '{"properties":{},"more":true}'],
    ["has a null", '{"properties":{},"table":null}'],
    ["has an empty value that is omitted", '{"properties":{},"namespace":[]}'],
    ["has a number", '{"properties":{},"version":1}'],
    [
      "has a schema, whose types have several names",
      '{"properties":{},"schema":{"fields":[{"name":"a","nullable":true,"type":{"type":"long"}}]}}',
    ],
  ];
  for (const [why, text] of others) {
    test(`becomes a message if it ${why}`, () => {
      assert.equal(passedText(describeTable.read(text, TYPE, true)), undefined);
    });
  }

  test("is refused as before if it does not fit", () => {
    for (const text of ['{"tables":[1]}', '{"tables":["\\ud800"]}', '{"tables":["a"]', "[]", "null"]) {
      assert.throws(() => listTables.read(text, TYPE, true), /the upstream's response/, text);
    }
  });
});
