import assert from "node:assert/strict";
import { create, type DescMethod, equals, type Message } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, test } from "vitest";
import { messages } from "../../test/fixtures/transcode.ts";
import { findBinding } from "../../test/support/bindings.ts";
import { lancedb } from "../dialects/lancedb.ts";
import { UPSTREAM_FORMS } from "../dialects/upstream.ts";
import { QueryTableRequestSchema, QueryVectorSchema } from "../gen/lance/namespace/v1/query_pb.ts";
import { LanceNamespaceService } from "../gen/lance/namespace/v1/service_pb.ts";
import { RenameTableRequestSchema } from "../gen/lance/namespace/v1/table_pb.ts";
import { LanceError } from "../namespace/errors.ts";
import { bodyFieldOf } from "../namespace/operations/method-facts.ts";
import { type ClientBinding, createClientBindings } from "./client-binding.ts";
import { createTranscoder } from "./transcoder.ts";

const { methods, method } = LanceNamespaceService;
const clients = createClientBindings(methods, UPSTREAM_FORMS.specification);
const server = createTranscoder([LanceNamespaceService]);

/** Returns what a server reads from the request that a client's binding writes. */
function transferred(binding: ClientBinding, request: Message, transcoder = server): Message {
  const [path = "", query = ""] = binding.target(request).split("?");
  const text = binding.requestBody === "json" ? binding.body(request) : undefined;
  const type = binding.requestBody === "raw" ? "application/vnd.apache.arrow.stream" : "application/json";
  const { binding: found, segments } = findBinding(transcoder, binding.httpMethod, path, type);
  return found.decode(segments, query, text);
}

/** Returns the fields that only a JSON body carries; without a JSON body they travel as headers. */
function withoutPlace(binding: ClientBinding): Set<string> {
  const { input } = binding.method;
  const isObject = binding.requestBody === "json" && binding.body(create(input)).includes('"');
  if (isObject || Object.keys(input.field).length === 0) return new Set();
  return new Set(["id", "identity", "context", bodyFieldOf(input) ?? ""]);
}

/** Adds what the upstream requires: values for the path, and the required parameters of a query. */
function completed(method: DescMethod, message: Message): Message {
  for (const name of ["identifier", "indexName"]) {
    if (name in method.input.field) (message as Fields)[name] ||= "x";
  }
  complete(message);
  return message;
}

type Fields = Message & Record<string, unknown>;

/** Requests inside requests lose their credentials, and queries get their required fields. */
function complete(value: unknown): void {
  if (typeof value !== "object" || value === null || value instanceof Uint8Array) return;
  const fields = value as Fields;
  delete fields["identity"];
  if (fields.$typeName?.endsWith("QueryTableRequest") || fields.$typeName?.endsWith("QueryPlanRequest")) {
    if (!("query" in fields)) {
      // An upstream could take 0 for all rows.
      fields["k"] = BigInt.asIntN(32, (fields["k"] as bigint | undefined) ?? 1n) || 1n;
      fields["vector"] ??= create(QueryVectorSchema);
    }
  }
  for (const inner of Object.values(fields)) complete(inner);
}

describe("a request arrives as it was sent", () => {
  for (const each of methods) {
    const binding = clients.get(each) as ClientBinding;
    for (const one of new Set([binding, binding.alternative ?? binding])) {
      test(`${each.name} by ${one.httpMethod}`, () => {
        fc.assert(
          fc.property(messages(each.input, 3, withoutPlace(one)), (message) => {
            const request = completed(each, message);
            const read = transferred(one, request);
            assert.ok(equals(each.input, request, read), one.target(request) + one.body(request));
          }),
          { numRuns: 15 },
        );
      });
    }
  }
});

/** Returns the request that a binding of LanceDB's own service writes, as JSON. */
function spoken(message: Message, of: DescMethod): { target: string; json: Record<string, unknown> } {
  const binding = createClientBindings(methods, UPSTREAM_FORMS.lancedb).get(of) as ClientBinding;
  return { target: binding.target(message), json: JSON.parse(binding.body(message)) };
}

describe("LanceDB's own service", () => {
  const queries = [
    { vector: { singleVector: [1, 2] } },
    { vector: { multiVector: [{ values: [1] }, { values: [2] }] }, k: 3n },
    { columns: { columnNames: ["a"] }, filter: "x > 1" },
    { columns: { columnAliases: { b: "a * 2" } } },
    { fullTextQuery: { stringQuery: { query: "words", columns: ["c"] } } },
  ];
  for (const init of queries) {
    test(`is asked in its own words, and means the same: ${JSON.stringify(Object.keys(init))}`, () => {
      const request = create(QueryTableRequestSchema, { identifier: "t", ...init });
      const binding = createClientBindings(methods, UPSTREAM_FORMS.lancedb).get(
        method.queryTable,
      ) as ClientBinding;
      const read = transferred(binding, request, createTranscoder([LanceNamespaceService], lancedb));
      const expected = create(QueryTableRequestSchema, {
        ...init,
        identifier: "t",
        k: init.k ?? ("columns" in init ? 2n ** 63n - 1n : 10n),
      });
      expected.vector ??= create(QueryVectorSchema);
      assert.ok(equals(QueryTableRequestSchema, expected, read as typeof request), binding.body(request));
    });
  }

  test("has a slash at the end of the paths of tables, and no delimiter", () => {
    const message = create(RenameTableRequestSchema, {
      identifier: "a$t",
      delimiter: "$",
      newTableName: "u",
    });
    message.newNamespaceId = ["b"];
    const { target, json } = spoken(message, method.renameTable);
    assert.equal(target, "/v1/table/a%24t/rename/");
    assert.deepEqual(json, { new_table_name: "u", new_namespace_id: ["b"], new_namespace: ["b"] });
  });
});

describe("answers are read in either shape", () => {
  const read = (of: DescMethod, text: string, type?: string) =>
    (clients.get(of) as ClientBinding).read(text, type) as unknown as Record<string, unknown>;
  const tag = { version: 1, manifestSize: 2 };

  const cases: {
    what: string;
    of: DescMethod;
    text: string;
    type?: string;
    field: string;
    value: unknown;
  }[] = [
    { what: "a bare count", of: method.countTableRows, text: "3", field: "count", value: 3n },
    {
      what: "a count in an object",
      of: method.countTableRows,
      text: '{"count":3}',
      field: "count",
      value: 3n,
    },
    {
      what: "the largest count",
      of: method.countTableRows,
      text: "9007199254740993",
      field: "count",
      value: 9007199254740993n,
    },
    { what: "a plan in quotes", of: method.explainTableQueryPlan, text: '"p"', field: "plan", value: "p" },
    {
      what: "a plan as text",
      of: method.explainTableQueryPlan,
      text: "Scan: x",
      type: "text/plain; charset=utf-8",
      field: "plan",
      value: "Scan: x",
    },
    {
      what: "a plan as text that is a number",
      of: method.explainTableQueryPlan,
      text: "7",
      type: "text/plain",
      field: "plan",
      value: "7",
    },
    {
      what: "a bare map",
      of: method.updateTableSchemaMetadata,
      text: '{"a":"b"}',
      field: "metadata",
      value: { a: "b" },
    },
    {
      what: "a bare map with the name of its field",
      of: method.updateTableSchemaMetadata,
      text: '{"metadata":"b"}',
      field: "metadata",
      value: { metadata: "b" },
    },
    {
      what: "a map in an object",
      of: method.updateTableSchemaMetadata,
      text: '{"metadata":{"a":"b"}}',
      field: "metadata",
      value: { a: "b" },
    },
    {
      what: "updated rows",
      of: method.updateTable,
      text: '{"rows_updated":2}',
      field: "updatedRows",
      value: 2n,
    },
    { what: "nothing at all", of: method.dropTable, text: "", field: "id", value: [] },
    { what: "null", of: method.dropTable, text: "null", field: "id", value: [] },
  ];
  for (const { what, of, text, type, field, value } of cases) {
    test(what, () => assert.deepEqual(read(of, text, type)[field], value));
  }

  for (const text of [JSON.stringify({ tags: { v: tag } }), JSON.stringify({ v: tag })]) {
    test(`tags: ${text}`, () => {
      const { tags } = read(method.listTableTags, text) as { tags: Record<string, { version: bigint }> };
      assert.deepEqual(Object.keys(tags), ["v"]);
      assert.equal(tags["v"]?.version, 1n);
    });
  }

  test("a tag that is called tags", () => {
    const { tags } = read(method.listTableTags, JSON.stringify({ tags: tag })) as { tags: object };
    assert.deepEqual(Object.keys(tags), ["tags"]);
  });

  const types: [lance: string, type: string, length?: bigint, logicalType?: string][] = [
    ["int64", "int64"],
    ["string", "utf8"],
    ["halffloat", "float16"],
    ["timestamp:us:UTC", "timestamp", undefined, "timestamp:us:UTC"],
    ["dict:string:int32:false", "utf8", undefined, "dict:string:int32:false"],
    ["decimal:128:10:2", "decimal128", 10_002n],
    ["utf8", "utf8"],
  ];
  for (const [lance, type, length, logicalType] of types) {
    test(`the type ${lance}`, () => {
      const schema = { fields: [{ name: "a", nullable: true, type: { type: lance } }] };
      const { schema: found } = read(method.describeTable, JSON.stringify({ schema })) as never;
      const [field] = (found as { fields: { type: Record<string, unknown> }[] }).fields;
      assert.deepEqual(
        [field?.type["type"], field?.type["length"], field?.type["logicalType"]],
        [type, length, logicalType],
      );
    });
  }

  test("omits a required field that the server omits", () => {
    assert.deepEqual(read(method.listTables, "{}")["tables"], []);
  });

  for (const text of ["<html>", "[]", '{"tables":{}}', '{"tables":[1]}', "{"]) {
    test(`refused: ${text}`, () => {
      assert.throws(
        () => read(method.listTables, text, "text/html"),
        (error) => error instanceof LanceError && error.is("ServiceUnavailable"),
      );
    });
  }

  test("reads or refuses any answer", () => {
    fc.assert(
      fc.property(fc.constantFrom(...methods), fc.oneof(fc.json(), fc.string()), (of, text) => {
        try {
          read(of, text);
        } catch (error) {
          assert.ok(error instanceof LanceError && error.is("ServiceUnavailable"), String(error));
        }
      }),
      { numRuns: 300 },
    );
  });
});

describe("a request that has no path", () => {
  for (const identifier of ["", "\ud800"]) {
    test(JSON.stringify(identifier), () => {
      const message = create(method.describeTable.input, { identifier });
      assert.throws(
        () => clients.get(method.describeTable)?.target(message),
        (error) => error instanceof LanceError && error.is("InvalidInput"),
      );
    });
  }
});

describe("numbers that JSON has no form for", () => {
  const bindings = [clients, createClientBindings(methods, UPSTREAM_FORMS.lancedb)].map(
    (all) => all.get(method.queryTable) as ClientBinding,
  );
  const query = { identifier: "t", vector: { singleVector: [1, 2] } };
  for (const value of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]) {
    for (const [what, init] of Object.entries({
      "a bound of a search": { ...query, lowerBound: value },
      "a component of a query vector": { ...query, vector: { singleVector: [1, value] } },
      "a component of one of several query vectors": {
        ...query,
        vector: { multiVector: [{ values: [value] }] },
      },
    })) {
      test(`are refused, because the upstream would read null and search without them: ${value} as ${what}`, () => {
        for (const binding of bindings) {
          const write = () => binding.body(create(QueryTableRequestSchema, init));
          assert.throws(write, (thrown) => thrown instanceof LanceError && thrown.is("InvalidInput"));
        }
      });
    }
  }
});
