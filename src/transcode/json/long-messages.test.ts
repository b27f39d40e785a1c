import assert from "node:assert/strict";
import { create, type Message } from "@bufbuild/protobuf";
import { describe, test } from "vitest";
import { DIALECTS } from "../../dialects/registry.ts";
import { UPSTREAM_FORMS } from "../../dialects/upstream.ts";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import {
  DescribeTableResponseSchema,
  ListTablesResponseSchema,
} from "../../gen/lance/namespace/v1/table_pb.ts";
import type { Steps } from "../../runtime/pace.ts";
import { type ClientBinding, createClientBindings } from "../client-binding.ts";
import { createLongAnswerReader } from "../long-answer.ts";
import { createTranscoder } from "../transcoder.ts";
import type { JsonPieces } from "./encode-steps.ts";
import { MAX_NAMES } from "./parts.ts";

const {
  describeTable,
  listTableTags,
  listTableVersions,
  listTables,
  describeTableVersion,
  explainTableQueryPlan,
} = LanceNamespaceService.method;

/** Runs steps, and returns how many they were. */
function counted<T>(steps: Steps<T>): { readonly value: T; readonly steps: number } {
  for (let count = 1; ; count++) {
    const step = steps.next();
    if (step.done) return { value: step.value, steps: count };
  }
}

const deep = (level: number): object =>
  level === 0
    ? { type: "int32" }
    : { type: "struct", fields: [{ name: `l${level}`, nullable: false, type: deep(level - 1) }] };

const many = <T>(count: number, item: (number: number) => T) =>
  Array.from({ length: count }, (_, i) => item(i));

/** Long answers by the methods that have them. */
const ANSWERS = [
  [listTables, { tables: many(50_000, (i) => `t${i}`), page_token: "p" }],
  [
    listTableVersions,
    { versions: many(3_000, (i) => ({ version: i, manifest_path: `p${i}`, metadata: { a: String(i) } })) },
  ],
  [listTableTags, { tags: Object.fromEntries(many(3_000, (i) => [`t${i}`, { version: i, branch: null }])) }],
  [
    describeTable,
    {
      table: "t",
      unknown: [1, 2],
      version: null,
      properties: Object.fromEntries(many(2_000, (i) => [`k${i}`, "v"])),
      schema: { fields: many(2_000, (i) => ({ name: `s${i}`, nullable: true, type: deep(3) })) },
    },
  ],
  [
    describeTableVersion,
    { version: { version: 1, manifest_path: "p", metadata: { big: "x".repeat(200_000) } } },
  ],
] as const;

for (const [dialect, form] of Object.entries(UPSTREAM_FORMS)) {
  describe(`long answers of a server of the dialect ${dialect}`, () => {
    const bindings = createClientBindings(LanceNamespaceService.methods, form);
    const readLong = createLongAnswerReader(form);
    const bindingOf = (method: ClientBinding["method"]) => bindings.get(method) as ClientBinding;
    const long = (method: ClientBinding["method"], text: string, mayPass = false) =>
      counted(
        readLong({
          binding: bindingOf(method),
          body: Buffer.from(text),
          contentType: "application/json",
          mayPass,
        }),
      );

    for (const [method, json] of ANSWERS) {
      test(`of ${method.name} are read in steps, as they are read at once`, () => {
        const text = JSON.stringify(json);
        const { value, steps } = long(method, text);
        assert.deepEqual(value, bindingOf(method).read(text, "application/json"));
        assert.ok(steps > 3, `${steps} steps`);
      });
    }

    test("have exact numbers, and the same errors", () => {
      const exact = many(
        2_000,
        (i) => `{"version":${9_007_199_254_740_993n + BigInt(i)},"manifest_path":"p"}`,
      );
      const wrong = JSON.stringify({ tables: [...many(20_000, (i) => `t${i}`), 1] });
      for (const [method, text] of [
        [listTableVersions, `{"versions":[${exact}]}`],
        [listTables, wrong],
        [listTables, `${wrong}}`],
        [describeTable, JSON.stringify({ schema: { fields: many(3_000, () => ({ name: [] })) } })],
        [describeTable, JSON.stringify(many(30_000, () => "a"))],
        [explainTableQueryPlan, "plan ".repeat(20_000)],
      ] as const) {
        assert.deepEqual(
          outcome(() => long(method, text).value),
          outcome(() => bindingOf(method).read(text, "application/json")),
        );
      }
    });
  });
}

test("a long answer with an object of too many names is refused, and says which", () => {
  const form = UPSTREAM_FORMS.specification;
  const bindings = createClientBindings(LanceNamespaceService.methods, form);
  const names = (count: number) => Object.fromEntries(many(count, (i) => [`k${i}`, "v"]));
  const read = (method: typeof describeTable | typeof listTableVersions, json: object) => {
    const binding = bindings.get(method) as ClientBinding;
    const body = Buffer.from(JSON.stringify(json));
    return counted(createLongAnswerReader(form)({ binding, body, contentType: undefined, mayPass: true }));
  };
  assert.ok(read(describeTable, { properties: names(MAX_NAMES) }).steps > 3);
  for (const [method, json, field] of [
    [describeTable, { table: "t", properties: names(MAX_NAMES + 1) }, "properties"],
    [
      listTableVersions,
      { versions: [{ version: 1, metadata: names(MAX_NAMES + 1) }] },
      "versions[0].metadata",
    ],
  ] as const) {
    assert.throws(() => read(method, json), {
      kind: "ServiceUnavailable",
      message: `cannot read the upstream's response: field "${field}" has more than 50000 names`,
    });
  }
});

test("a long plain answer passes through, up to a size", () => {
  const form = UPSTREAM_FORMS.specification;
  const binding = createClientBindings(LanceNamespaceService.methods, form).get(listTables) as ClientBinding;
  for (const [count, passes] of [
    [20_000, true],
    [600_000, false],
  ] as const) {
    const text = JSON.stringify({ tables: many(count, (i) => `t${i}`) });
    const answer = { binding, body: Buffer.from(text), contentType: undefined, mayPass: true };
    const { value } = counted(createLongAnswerReader(form)(answer));
    assert.equal(JSON.stringify(value) === JSON.stringify(binding.read(text, undefined, true)), passes);
  }
});

describe("long answers to clients", () => {
  for (const dialect of DIALECTS) {
    const { bindings } = createTranscoder([LanceNamespaceService], dialect);
    const read = createClientBindings(LanceNamespaceService.methods, UPSTREAM_FORMS.specification);
    test(`are written in steps as at once, in the dialect ${dialect.name}`, () => {
      for (const [method, json] of ANSWERS) {
        const message = (read.get(method) as ClientBinding).read(JSON.stringify(json), undefined);
        const binding = bindings.find((each) => each.method === method);
        const steps = binding?.encodeLong(message);
        if (method === describeTableVersion) assert.equal(steps, undefined);
        else assert.equal(textOf(counted(steps as Steps<JsonPieces>).value), binding?.encode(message));
      }
    });
    test(`become bytes in pieces, in the dialect ${dialect.name}`, () => {
      const tables = many(20_000, (i) => `${"é".repeat(50)}${i}`);
      const binding = bindings.find((each) => each.method === listTables);
      const message = create(ListTablesResponseSchema, { tables });
      const { value, steps } = counted(binding?.encodeLong(message) as Steps<JsonPieces>);
      assert.ok(Array.isArray(value) && value.length >= 4, `${value.length} pieces`);
      assert.ok(steps > value.length, `${steps} steps`);
      const longest = Math.max(...value.map((piece: Buffer) => piece.length));
      assert.ok(longest < 1024 * 1024, `${longest} bytes`);
      assert.equal(textOf(value), binding?.encode(message));
    });
    test(`take no steps when they are short, in the dialect ${dialect.name}`, () => {
      const binding = bindings.find(({ method }) => method === describeTable);
      const message: Message = create(DescribeTableResponseSchema, { table: "t" });
      assert.equal(binding?.encodeLong(message), undefined);
    });
  }
});

function textOf(pieces: JsonPieces): string {
  return typeof pieces === "string" ? pieces : Buffer.concat(pieces).toString();
}

function outcome(read: () => Message): unknown {
  try {
    return read();
  } catch (error) {
    return String(error);
  }
}
