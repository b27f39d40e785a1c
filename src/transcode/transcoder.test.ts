import assert from "node:assert/strict";
import {
  create,
  createFileRegistry,
  type DescService,
  fromBinary,
  setExtension,
  toBinary,
} from "@bufbuild/protobuf";
import {
  FileDescriptorProtoSchema,
  FieldDescriptorProto_Label as Label,
  MethodOptionsSchema,
  FieldDescriptorProto_Type as Type,
} from "@bufbuild/protobuf/wkt";
import { test } from "vitest";
import { findBinding } from "../../test/support/bindings.ts";
import { http } from "../gen/google/api/annotations_pb.ts";
import { HttpRuleSchema } from "../gen/google/api/http_pb.ts";
import { LanceNamespaceService } from "../gen/lance/namespace/v1/service_pb.ts";
import { isLanceError } from "../namespace/errors.ts";
import { createTranscoder } from "./transcoder.ts";

const transcoder = createTranscoder([LanceNamespaceService]);

function decode(method: string, target: string, body?: string): Record<string, unknown> {
  const [path = "", query = ""] = target.split("?");
  const { binding, segments } = findBinding(transcoder, method, path);
  return binding.decode(segments, query, body) as unknown as Record<string, unknown>;
}

function refused(message: RegExp | string): (thrown: unknown) => boolean {
  return (thrown) => {
    assert.ok(isLanceError(thrown, "InvalidInput"), String(thrown));
    if (typeof message === "string") assert.equal(thrown.message, message);
    else assert.match(thrown.message, message);
    return true;
  };
}

test("a path is decoded once and a plus stays a plus", () => {
  assert.equal(decode("POST", "/v1/table/a%24b%2525+c/describe")["identifier"], "a$b%25+c");
  for (const bad of ["%zz", "%ff", "%", "ä"]) {
    const what = '"identifier" in the path must be percent-encoded UTF-8';
    assert.throws(() => decode("POST", `/v1/table/${bad}/describe`), refused(what));
  }
});

test("a query beats the body, and a path is held against it", () => {
  assert.equal(decode("POST", "/v1/table/t/describe?version=7", '{"version":8}')["version"], 7n);
  const path = "/v1/table/t/index/my+index/stats";
  assert.equal(decode("POST", path, '{"index_name":"my index"}')["indexName"], "my index");
  assert.equal(decode("POST", path, '{"index_name":null}')["indexName"], "my+index");
  assert.throws(
    () => decode("POST", path.replace("+", "%2B"), '{"index_name":"my index"}'),
    refused('field "index_name": the request body says "my index", the route says "my+index"'),
  );
});

test("reads an empty body and null as an empty object", () => {
  for (const body of [undefined, "", "null", "{}"]) {
    assert.equal(decode("POST", "/v1/table/t/drop", body)["identifier"], "t");
    assert.deepEqual(decode("POST", "/v1/table/t/schema_metadata/update", body)["metadata"], {});
  }
  for (const body of ["[]", "1", '"x"', "false"]) {
    assert.throws(
      () => decode("POST", "/v1/table/t/drop", body),
      refused("request body must be a JSON object"),
    );
  }
});

test("a body's mistakes are named with their place", () => {
  for (const [operation, body, message] of [
    ["register", "{}", 'field "location" is required'],
    ["register", '{"location":null}', 'field "location" is required'],
    ["register", '{"location":1}', 'field "location" must be a string'],
    ["register", '{"location":"\\ud800"}', 'field "location" must be well-formed Unicode'],
    ["update", "{}", 'field "updates" is required'],
    ["update", '{"updates":[["a"]]}', 'field "updates[0]" must be an array of 2 values'],
    ["update", '{"updates":[["a","b"],["c",1]]}', 'field "updates[1][1]" must be a string'],
    ["update", '{"updates":[],"properties":{"k":1}}', 'field "properties.k" must be a string'],
    ["describe", '{"version":1.5}', 'field "version" must be an integer'],
    ["describe", '{"version":"1"}', 'field "version" must be an integer'],
    [
      "describe",
      '{"version":9223372036854775808}',
      'field "version" must be an integer from -9223372036854775808 to 9223372036854775807',
    ],
    ["describe", '{"check_declared":1}', 'field "check_declared" must be true or false'],
    ["describe", '{"tag":}', "request body is not valid JSON at position 7 (line 1, column 8)"],
    ["query", '{"nprobes":2147483648}', 'field "nprobes" must be an integer from -2147483648 to 2147483647'],
    ["query", '{"lower_bound":"1"}', 'field "lower_bound" must be a number'],
    ["alter_columns", '{"alterations":[{"rename":"x"}]}', 'field "alterations[0].path" is required'],
  ] as const) {
    assert.throws(() => decode("POST", `/v1/table/t/${operation}`, body), refused(message));
  }
  assert.deepEqual(decode("POST", "/v1/table/t/update", '{"updates":[]}')["updates"], []);
});

test("integers are exact beyond what a number holds", () => {
  const { k } = decode("POST", "/v1/table/t/query", '{"k":9223372036854775807,"lower_bound":1,"x":1e999}');
  assert.equal(k, 9223372036854775807n);
  assert.equal(decode("POST", "/v1/table/t/describe?version=9007199254740993")["version"], 9007199254740993n);
});

test("an enum is read in all spellings in use", () => {
  const mode = (text: string) =>
    decode("POST", "/v1/namespace/n/create", JSON.stringify({ mode: text }))["mode"];
  const spellings = ["ExistOk", "exist_ok", "EXIST-OK", '"ExistOk"', "CREATE_NAMESPACE_MODE_EXIST_OK"];
  for (const text of spellings) assert.equal(mode(text), mode("existok"));
  assert.throws(() => mode("nonsense"), refused('field "mode" must be one of Create, ExistOk, Overwrite'));
});

test("a query binds lists, maps and strict scalars, and ignores what it does not know", () => {
  const merge = decode("POST", "/v1/table/t/merge_insert?on=a&x=%zz&on=b+c&use_index=false&identifier=other");
  assert.deepEqual(merge["on"], ["a", "b c"]);
  assert.equal(merge["useIndex"], false);
  assert.equal(merge["identifier"], "t");
  const made = decode("POST", "/v1/table/t/create?mode=exist_ok&properties=%7B%22a%22%3A%22b%22%7D&");
  assert.deepEqual(made["properties"], { a: "b" });
  assert.equal(decode("GET", "/v1/table?page_token=")["pageToken"], "");
  for (const [query, message] of [
    ["limit=", 'query parameter "limit" must be an integer'],
    ["limit=1.0", 'query parameter "limit" must be an integer'],
    ["limit=4294967296", /query parameter "limit" must be an integer from/],
    ["include_declared=True", 'query parameter "include_declared" must be true or false'],
    ["page_token=%ff", 'query parameter "page_token" must be percent-encoded UTF-8'],
  ] as const) {
    assert.throws(() => decode("GET", `/v1/table?${query}`), refused(message));
  }
  assert.throws(
    () => decode("POST", "/v1/table/t/create?properties=%7B"),
    refused('query parameter "properties" is not valid JSON at position 1 (line 1, column 2)'),
  );
});

test("every rule of the contract is bound, and its answer has the form that it says", () => {
  const count = findBinding(transcoder, "POST", "/v1/table/t/count_rows").binding;
  assert.equal(count.encode(create(count.method.output, { count: 3n } as never)), "3");
  const exists = findBinding(transcoder, "POST", "/v1/table/t/exists").binding;
  assert.equal(exists.responseBody, "empty");
  assert.equal(findBinding(transcoder, "POST", "/v1/table/t/query").binding.rawResponseField, "data");
  assert.equal(findBinding(transcoder, "POST", "/v1/table/t/insert").binding.rawRequestField, "data");
  assert.equal(findBinding(transcoder, "POST", "/v1/table/t/backfill_column").binding.successStatus, 202);
  assert.equal(
    findBinding(transcoder, "POST", "/v1/table/version/batch-create").binding.method.name,
    "BatchCreateTableVersions",
  );
});

test("an annotation that does not fit stops the start and names the method", () => {
  for (const [rules, message] of [
    [[{ path: "/v1/{none}" }], /^t\.S\.M0: path template names "none", which is no field of t\.Request$/],
    [[{ path: "/v1/{list}" }], /^t\.S\.M0: field "list" is not a plain scalar/],
    [[{ path: "/v1/{self}" }], /^t\.S\.M0: field "self" is not a plain scalar/],
    [[{ path: "/v1/{text.x}" }], /fields of fields are not supported/],
    [[{ path: "/v1/{text" }], /^t\.S\.M0: path template "\/v1\/\{text": expected "}"/],
    [[{ path: "/v1", body: "none" }], /^t\.S\.M0: body names "none"/],
    [[{ path: "/v1/{text}", body: "text" }], /^t\.S\.M0: field "text" is both in the path and the body/],
    [[{ path: "/v1", responseBody: "none" }], /^t\.S\.M0: response_body names "none"/],
    [[{ path: "/v1/{text}" }, { path: "/v1/{other}" }], /^t\.S\.M1: a second route POST \/v1\/\{other\}$/],
    [[{ path: "/v1/{text=**}" }], /expected "}" at position 11/],
    [[{ path: "/v1/{text}:read" }], /expected the end at position 10/],
  ] as const) {
    assert.throws(() => createTranscoder([serviceOf(rules)]), { message });
  }
  assert.equal(createTranscoder([serviceOf([{ path: "/v1/{text}", body: "*" }])]).bindings.length, 1);
});

interface Rule {
  readonly path: string;
  readonly body?: string;
  readonly responseBody?: string;
}

/** Returns a service `t.S` with a method for each rule. */
function serviceOf(rules: readonly Rule[]): DescService {
  const file = create(FileDescriptorProtoSchema, {
    name: "t.proto",
    package: "t",
    syntax: "proto3",
    messageType: [
      {
        name: "Request",
        field: [
          { name: "text", number: 1, type: Type.STRING, label: Label.OPTIONAL },
          { name: "other", number: 2, type: Type.STRING, label: Label.OPTIONAL },
          { name: "list", number: 3, type: Type.STRING, label: Label.REPEATED },
          { name: "self", number: 4, type: Type.MESSAGE, typeName: ".t.Request", label: Label.OPTIONAL },
        ],
      },
    ],
    service: [
      {
        name: "S",
        method: rules.map(({ path, body = "", responseBody = "" }, index) => {
          const options = create(MethodOptionsSchema);
          const rule = create(HttpRuleSchema, { pattern: { case: "post", value: path }, body, responseBody });
          setExtension(options, http, rule);
          return { name: `M${index}`, inputType: ".t.Request", outputType: ".t.Request", options };
        }),
      },
    ],
  });
  const registry = createFileRegistry(
    fromBinary(FileDescriptorProtoSchema, toBinary(FileDescriptorProtoSchema, file)),
    () => undefined,
  );
  return registry.getService("t.S") as DescService;
}
