import assert from "node:assert/strict";
import { type DescMessage, fromJson } from "@bufbuild/protobuf";
import { describe, it } from "vitest";
import { findBinding } from "../../test/support/bindings.ts";
import { LanceDbService } from "../gen/lance/gateway/v1/lancedb_pb.ts";
import { ViewService } from "../gen/lance/gateway/v1/sql_view_pb.ts";
import {
  CreateTableRequestSchema,
  InsertIntoTableRequestSchema,
  UpdateTableResponseSchema,
} from "../gen/lance/namespace/v1/data_pb.ts";
import { LanceNamespaceService } from "../gen/lance/namespace/v1/service_pb.ts";
import { errorEntry } from "../namespace/errors.ts";
import { createTranscoder } from "../transcode/transcoder.ts";
import { errorForm, specification } from "./dialect.ts";
import { lancedb } from "./lancedb.ts";
import { readMultiMatch } from "./lancedb-query.ts";
import { DIALECTS } from "./registry.ts";

const services = [LanceNamespaceService, LanceDbService, ViewService];
const spoken = createTranscoder(services, lancedb);
const plain = createTranscoder(services, specification);

/** Returns the request that a dialect reads from a body or from a query. */
function request(
  transcoder: typeof plain,
  path: string,
  body?: unknown,
  query = "",
): Record<string, unknown> {
  const { binding, segments } = findBinding(transcoder, "POST", path, "application/json");
  const text = body === undefined ? undefined : JSON.stringify(body);
  return binding.decode(segments, query, text) as unknown as Record<string, unknown>;
}

/** Returns the JSON that a dialect writes for a response, given in the form of protobuf JSON. */
function answer(transcoder: typeof plain, path: string, json: object): unknown {
  const { binding } = findBinding(transcoder, "POST", path);
  return JSON.parse(binding.encode(fromJson(binding.method.output as DescMessage, json as never)));
}

const agent = "LanceDB-Python-Client/0.40.0";
const recognised = [
  { who: "its own agent", headers: { "user-agent": agent }, query: "mode=create", is: lancedb },
  {
    who: "an agent of one's own",
    headers: { "user-agent": "x", "x-lancedb-database": "d" },
    query: "",
    is: lancedb,
  },
  {
    who: "the client of the specification that it hands out",
    headers: { "x-lancedb-database": "d" },
    query: "limit=1&delimiter=%24",
    is: specification,
  },
  {
    who: "anyone",
    headers: { "user-agent": "OpenAPI-Generator/0.13.0/python" },
    query: "",
    is: specification,
  },
  { who: "no one", headers: {}, query: "", is: specification },
];

describe("who speaks", () => {
  for (const { who, headers, query, is } of recognised) {
    it(`${who}: ${is.name}`, () => {
      assert.equal(
        DIALECTS.find((dialect) => dialect.recognises({ headers, query })),
        is,
      );
    });
  }
});

describe("LanceDB's dialect: rows", () => {
  const names = new Set<string>();
  const collect = (message: DescMessage) => {
    if (names.has(message.typeName)) return;
    names.add(message.typeName);
    for (const field of message.fields) if (field.message !== undefined) collect(field.message);
  };
  for (const { methods } of services)
    for (const { input, output } of methods) [input, output].forEach(collect);

  it("are about messages that there are", () => {
    for (const name of lancedb.forms.keys()) assert.ok(names.has(name), name);
    for (const { request: name = "" } of lancedb.errors) assert.ok(name === "" || names.has(name), name);
  });
});

const QUERY = "/v1/table/t/query/";

const queries: { what: string; sent: object; same: object }[] = [
  { what: "a vector", sent: { vector: [1, 2] }, same: { vector: { single_vector: [1, 2] } } },
  { what: "no vector", sent: { vector: [] }, same: { vector: {} } },
  { what: "several vectors", sent: { vector: [[1], [2]] }, same: { vector: { multi_vector: [[1], [2]] } } },
  { what: "columns", sent: { columns: ["a", "b"] }, same: { columns: { column_names: ["a", "b"] } } },
  {
    what: "aliases",
    sent: { columns: { x: "a * 2" } },
    same: { columns: { column_aliases: { x: "a * 2" } } },
  },
  {
    what: "words",
    sent: { full_text_query: { columns: ["a"], query: "x" } },
    same: { full_text_query: { string_query: { columns: ["a"], query: "x" } } },
  },
  {
    what: "a structured query",
    sent: { full_text_query: { query: { match: { terms: "x", column: null, operator: "Or" } } } },
    same: { full_text_query: { structured_query: { query: { match: { terms: "x", operator: "OR" } } } } },
  },
  {
    what: "a match with any fuzziness",
    sent: { full_text_query: { query: { match: { terms: "x", fuzziness: null } } } },
    same: {
      full_text_query: { structured_query: { query: { match: { terms: "x", auto_fuzziness: true } } } },
    },
  },
  {
    what: "words in several columns",
    sent: { full_text_query: { query: { multi_match: { query: "x", columns: ["a", "b"], boost: [1, 2] } } } },
    same: {
      full_text_query: {
        structured_query: {
          query: {
            multi_match: {
              match_queries: [
                { terms: "x", column: "a", boost: 1 },
                { terms: "x", column: "b", boost: 2 },
              ],
            },
          },
        },
      },
    },
  },
  { what: "nulls", sent: { ef: null, lower_bound: null, version: null }, same: {} },
  {
    what: "the specification's own form",
    sent: { vector: { single_vector: [1] }, columns: { column_names: ["a"] } },
    same: { vector: { single_vector: [1] }, columns: { column_names: ["a"] } },
  },
];

describe("LanceDB's dialect: queries", () => {
  for (const { what, sent, same } of queries) {
    it(what, () => {
      assert.deepEqual(
        request(spoken, QUERY, { vector: [], ...sent }),
        request(plain, QUERY, { vector: {}, ...same }),
      );
    });
  }

  it("inside an explained query too", () => {
    const { query } = request(spoken, "/v1/table/t/explain_plan/", { query: { vector: [1], k: 1 } }) as never;
    assert.deepEqual((query as { vector: { singleVector: number[] } }).vector.singleVector, [1]);
  });

  it("the largest k, to the last digit", () => {
    const { binding, segments } = findBinding(spoken, "POST", QUERY);
    const decoded = binding.decode(segments, "", '{"vector":[],"k":9223372036854775807}') as never;
    assert.equal((decoded as { k: bigint }).k, 2n ** 63n - 1n);
  });

  const multiMatch = (columns: number, fields: object) => ({
    query: "x",
    columns: Array.from({ length: columns }, () => "a"),
    boost: Array.from({ length: columns }, () => 1),
    ...fields,
  });

  it("do not repeat for each of several columns what no match has", () => {
    const others = Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`other${i}`, i]));
    const same = { operator: "And", fuzziness: null, max_expansions: 9, prefix_length: 1 };
    const { match_queries: matches } = readMultiMatch(multiMatch(2, { ...same, ...others })) as never;
    assert.deepEqual(matches, Array(2).fill({ terms: "x", ...same, column: "a", boost: 1 }));
  });

  it("refuse words whose repetition for each of several columns makes a short text long", () => {
    const read = (columns: number, fields: object = {}) => {
      const full = { full_text_query: { query: { multi_match: multiMatch(columns, fields) } } };
      return request(spoken, QUERY, { vector: [], ...full });
    };
    assert.doesNotThrow(() => read(10_000));
    assert.throws(() => read(10_001), /multi_match must not have more than 10000 columns/);
    for (const name of ["query", "operator", "document_granularity"]) {
      const long = { [name]: "o".repeat(1024 * 1024) };
      assert.throws(() => read(2, long), /nor 1048576 characters of its texts times its columns/, name);
    }
  });

  it("are not the specification's", () => {
    assert.throws(() => request(plain, QUERY, { vector: [1] }), /"vector" must be an object/);
  });
});

describe("LanceDB's dialect: other requests", () => {
  it("a description has the version and the schema without a flag", () => {
    assert.equal(request(spoken, "/v1/table/t/describe/")["loadDetailedMetadata"], true);
    assert.equal(request(spoken, "/v1/table/t/describe/", { version: null })["loadDetailedMetadata"], true);
    assert.equal(request(plain, "/v1/table/t/describe")["loadDetailedMetadata"], undefined);
  });

  it("a merge uses indices unless it says no", () => {
    const merge = (query: string) => {
      const { binding, segments } = findBinding(spoken, "POST", "/v1/table/t/merge_insert/", ARROW);
      return (binding.decode(segments, query, undefined) as never as { useIndex?: boolean }).useIndex;
    };
    assert.equal(merge("on=id"), true);
    assert.equal(merge("on=id&use_index=false"), false);
  });

  it("a restored table without a version is the newest", () => {
    assert.equal(request(spoken, "/v1/table/t/restore/", { version: null })["version"], 0n);
    assert.equal(request(spoken, "/v1/table/t/restore/", { version: 3 })["version"], 3n);
    assert.throws(() => request(plain, "/v1/table/t/restore", { version: null }), /"version" is required/);
  });

  it("a rename and an index have other names for two fields", () => {
    const renamed = request(spoken, "/v1/table/t/rename/", { new_table_name: "u", new_namespace: ["a"] });
    assert.deepEqual(renamed["newNamespaceId"], ["a"]);
    const index = { column: "v", index_type: "IVF_PQ", metric_type: "cosine", custom_stop_words: null };
    assert.equal(request(spoken, "/v1/table/t/create_index/", index)["distanceType"], "cosine");
  });

  const ARROW = "application/vnd.apache.arrow.stream";

  it("columns are added by JSON or by an Arrow schema on one route", () => {
    const type = (contentType?: string) =>
      findBinding(spoken, "POST", "/v1/table/t/add_columns/", contentType).binding.requestBody;
    assert.deepEqual([type("application/json"), type(), type(ARROW)], ["json", "json", "raw"]);
  });

  it("a part of an upload is told by the query", () => {
    const { binding, segments } = findBinding(spoken, "POST", "/v1/table/t/insert/", ARROW);
    assert.equal(binding.method.input, InsertIntoTableRequestSchema);
    const part = binding.decode(segments, "upload_id=u&upload_part_id=p", undefined) as never;
    assert.deepEqual([part["uploadId"], part["uploadPartId"]], ["u", "p"]);
  });
});

describe("LanceDB's dialect: answers", () => {
  it("tags are bare, whatever their names", () => {
    const tags = { tags: { version: 1, manifestSize: 2 }, b: { version: 3, manifestSize: 4 } };
    assert.deepEqual(answer(spoken, "/v1/table/t/tags/list/", { tags }), tags);
    assert.deepEqual(answer(spoken, "/v1/table/t/tags/list/", {}), {});
    assert.deepEqual(answer(plain, "/v1/table/t/tags/list", { tags }), { tags });
  });

  it("updated rows have both names", () => {
    const { typeName } = UpdateTableResponseSchema;
    const updated = { updatedRows: 2, version: "9007199254740993" };
    const { binding } = findBinding(spoken, "POST", "/v1/table/t/update/");
    assert.equal(binding.method.output.typeName, typeName);
    const text = binding.encode(fromJson(UpdateTableResponseSchema, updated));
    assert.match(text, /"updated_rows":2,.*"rows_updated":2/);
    assert.match(text, /"version":9007199254740993,/);
  });

  const types: [specification: object, lance: object][] = [
    [{ type: "int64" }, { type: "int64" }],
    [{ type: "utf8" }, { type: "string" }],
    [{ type: "float16" }, { type: "halffloat" }],
    [{ type: "date32" }, { type: "date32:day" }],
    [{ type: "timestamp" }, { type: "timestamp:us:-" }],
    [{ type: "timestamp", logicalType: "timestamp:ns:UTC" }, { type: "timestamp:ns:UTC" }],
    [{ type: "utf8", logicalType: "dict:string:int32:false" }, { type: "dict:string:int32:false" }],
    [{ type: "decimal128", length: 10_002 }, { type: "decimal:128:10:2" }],
    [{ type: "decimal256", length: 39_997 }, { type: "decimal:256:40:-3" }],
    [
      { type: "fixed_size_binary", length: 4 },
      { type: "fixed_size_binary", length: 4 },
    ],
    [{ type: "map" }, { type: "list" }],
  ];
  for (const [specified, lance] of types) {
    it(`the type ${JSON.stringify(specified)}`, () => {
      const schema = { fields: [{ name: "a", nullable: true, type: specified }] };
      const { schema: read } = answer(spoken, "/v1/table/t/describe/", { schema }) as never;
      assert.deepEqual((read as { fields: { type: object }[] }).fields[0]?.type, lance);
    });
  }

  it("types inside types", () => {
    const item = { name: "item", nullable: true, type: { type: "float32" } };
    const list = { type: "fixed_size_list", length: 2, fields: [item] };
    const { schema } = answer(spoken, "/v1/table/t/describe/", {
      schema: { fields: [{ name: "v", nullable: true, type: list }] },
    }) as never;
    assert.deepEqual((schema as { fields: { type: object }[] }).fields[0]?.type, {
      type: "fixed_size_list",
      fields: [{ ...item, type: { type: "float" } }],
      length: 2,
    });
  });
});

describe("LanceDB's dialect: errors", () => {
  const status = (error: string, input = "any") => errorForm(lancedb, error, input)?.status;

  it("a table that is there is a 400 to its creator only", () => {
    assert.equal(status("TableAlreadyExists", CreateTableRequestSchema.typeName), 400);
    assert.equal(status("TableAlreadyExists"), undefined);
    assert.equal(
      errorForm(specification, "TableAlreadyExists", CreateTableRequestSchema.typeName)?.status,
      undefined,
    );
  });

  it("keeps the status of conflicts that a retry may resolve", () => {
    for (const name of ["ConcurrentModification", "Throttling", "ServiceUnavailable", "TableNotFound"]) {
      assert.equal(status(name), undefined, name);
    }
  });

  it("answers conflicts that a retry cannot resolve with 400", () => {
    for (const { error, status: shown } of lancedb.errors) {
      if (errorEntry(error).httpStatus === 409) assert.equal(shown, 400, error);
    }
  });
});
