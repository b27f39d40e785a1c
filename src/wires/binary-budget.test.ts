import assert from "node:assert/strict";
import { create, type DescMessage, fromBinary, fromJson, toBinary } from "@bufbuild/protobuf";
import { BinaryWriter } from "@bufbuild/protobuf/wire";
import fc from "fast-check";
import { test } from "vitest";
import {
  BooleanQuerySchema,
  FtsQuerySchema,
  FullTextQuerySchema,
  QueryTableRequestSchema,
  QueryVectorSchema,
  StructuredFtsQuerySchema,
} from "../gen/lance/namespace/v1/query_pb.ts";
import { AlterTableAddColumnsRequestSchema } from "../gen/lance/namespace/v1/schema_pb.ts";
import { isLanceError } from "../namespace/errors.ts";
import { atOnce } from "../runtime/pace.ts";
import { scanBinary } from "./binary-budget.ts";

const MIB = 1024 * 1024;

const tooMuch = (error: unknown) => isLanceError(error, "InvalidInput") && /too much/.test(error.message);

/** Returns the two bytes of a field of length 0, repeated. */
function repeated(number: number, bytes: number): Buffer {
  return Buffer.alloc(bytes, Buffer.from([(number << 3) | 2, 0]));
}

const fieldOf = (name: string) =>
  AlterTableAddColumnsRequestSchema.fields.find(({ localName }) => localName === name)?.number as number;

test("a message of millions of messages, texts, entries or unknown fields is refused", () => {
  const unknown = Buffer.alloc(16 * MIB, Buffer.from([0xf8, 0x3f, 0]));
  const bodies = [
    repeated(fieldOf("newColumns"), 16 * MIB),
    repeated(fieldOf("id"), 16 * MIB),
    repeated(fieldOf("context"), 16 * MIB),
    unknown,
  ];
  for (const bytes of bodies) {
    assert.throws(() => atOnce(scanBinary(AlterTableAddColumnsRequestSchema, bytes)), tooMuch);
  }
});

test("counts the contents of messages and maps", () => {
  const inner = repeated(1, 4 * MIB);
  const head = Buffer.from([(fieldOf("newColumns") << 3) | 2, 0x80, 0x80, 0x80, 0x02]);
  const bytes = Buffer.concat([head, inner]);
  assert.throws(() => atOnce(scanBinary(AlterTableAddColumnsRequestSchema, bytes)), tooMuch);
});

test("long texts, long bytes and long vectors pass", () => {
  const query = create(QueryTableRequestSchema, {
    id: ["t"],
    filter: "x".repeat(8 * MIB),
    vector: { singleVector: { values: Array.from({ length: 500_000 }, () => 0.5) } } as never,
  });
  atOnce(scanBinary(QueryTableRequestSchema, toBinary(QueryTableRequestSchema, query)));
});

const invalid = (error: unknown) =>
  isLanceError(error, "InvalidInput") && /^a message is not a valid /.test(error.message);

test("passes, counts or refuses any bytes", () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 33_000, maxLength: 34_000 }), (bytes) => {
      try {
        atOnce(scanBinary(QueryTableRequestSchema, bytes));
      } catch (error) {
        assert.ok(tooMuch(error) || invalid(error));
      }
    }),
    { numRuns: 30 },
  );
});

test("passes what the library encodes, and unknown fields of all forms but groups", () => {
  const text = "é".repeat(20_000);
  const query = fromJson(QueryTableRequestSchema, {
    ...{ id: ["", text], filter: text, k: "9007199254740993", offset: 1, bypassVectorIndex: true },
    ...{ columns: { columnNames: ["a"] }, vector: { multiVector: [{ values: [1, -1] }, {}] } },
    ...{ context: { a: "1", [text]: "", "": text }, distanceType: "l2", prefilter: false },
    fullTextQuery: {
      structuredQuery: {
        query: { multiMatch: { matchQueries: [{ terms: "x", boost: 0.5, fuzziness: -1, operator: 1 }] } },
      },
    },
  });
  const unknown = Buffer.from("f83fff01f93fffffffffffffffff" + "fa3f01fffd3f01020304", "hex");
  const bytes = Buffer.concat([toBinary(QueryTableRequestSchema, query), unknown]);
  atOnce(scanBinary(QueryTableRequestSchema, bytes));
});

test("refuses what the decoder would read in another form, or beyond its end", () => {
  const number = (type: DescMessage, name: string) =>
    type.fields.find(({ localName }) => localName === name)?.number as number;
  const field = (no: number, content: Uint8Array, length = content.length, form = 2) =>
    Buffer.concat([toVarint((no << 3) | form), toVarint(length), content]);
  const boolean = number(FtsQuerySchema, "boolean");
  // Matches in a condition, which are a text among the fields of the request.
  const many = field(1, field(boolean, repeated(number(BooleanQuerySchema, "must"), 40_000)));
  const within = (query: Uint8Array) =>
    [
      [QueryTableRequestSchema, "fullTextQuery"],
      [FullTextQuerySchema, "structuredQuery"],
      [StructuredFtsQuerySchema, "query"],
    ]
      .toReversed()
      .reduce((inner, [type, name]) => field(number(type as DescMessage, name as string), inner), query);
  const text = field(number(QueryTableRequestSchema, "filter"), Buffer.alloc(33_000, "x"));
  const hostile = {
    "a message beyond its end": Buffer.concat([within(field(boolean, new Uint8Array(), many.length)), many]),
    "a message in the form of a number": within(field(boolean, many, many.length, 0)),
    "a text in the form of a number": Buffer.concat([text, field(1, Buffer.from("x"), 1, 0)]),
    "a packed number beyond its end": Buffer.concat([
      text,
      field(
        number(QueryTableRequestSchema, "vector"),
        field(number(QueryVectorSchema, "singleVector"), Buffer.alloc(3)),
      ),
    ]),
    "a key in the form of a number": Buffer.concat([
      text,
      field(number(QueryTableRequestSchema, "context"), field(1, Buffer.from("x"), 1, 0)),
    ]),
    "a group": Buffer.concat([text, Buffer.from([0xfb, 0x3f, 8, 1, 0xfc, 0x3f])]),
    "a number without an end": Buffer.concat([
      text,
      Buffer.from([0xf8, 0x3f]),
      Buffer.alloc(11, 255),
      Buffer.from([1]),
    ]),
  };
  for (const [what, bytes] of Object.entries(hostile))
    assert.throws(() => atOnce(scanBinary(QueryTableRequestSchema, bytes)), invalid, what);
  // The library takes this message, and makes 20,000 messages of a text.
  const decoded = fromBinary(QueryTableRequestSchema, hostile["a message beyond its end"]);
  const query = decoded.fullTextQuery?.structuredQuery?.query?.boolean?.must[0];
  assert.equal(query?.boolean?.must.length, 20_000);
});

function toVarint(value: number): Uint8Array {
  return new BinaryWriter().uint32(value).finish();
}

test("messages that are nested without end are refused by the decoder", () => {
  const field = QueryTableRequestSchema.fields.find(({ localName }) => localName === "fullTextQuery");
  const group = (((field?.number ?? 0) + 1000) << 3) | 3;
  const start = Buffer.from([(group & 0x7f) | 0x80, group >> 7]);
  assert.throws(() => fromBinary(QueryTableRequestSchema, Buffer.alloc(4 * MIB, start)), /recursion depth/);
});
