import assert from "node:assert/strict";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import fc from "fast-check";
import { test } from "vitest";
import { QueryTableRequestSchema } from "../gen/lance/namespace/v1/query_pb.ts";
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

test("leaves malformed bytes to the decoder", () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 33_000, maxLength: 34_000 }), (bytes) => {
      try {
        atOnce(scanBinary(QueryTableRequestSchema, bytes));
      } catch (error) {
        assert.ok(tooMuch(error));
      }
    }),
    { numRuns: 30 },
  );
});

test("messages that are nested without end are refused by the decoder", () => {
  const field = QueryTableRequestSchema.fields.find(({ localName }) => localName === "fullTextQuery");
  const group = (((field?.number ?? 0) + 1000) << 3) | 3;
  const start = Buffer.from([(group & 0x7f) | 0x80, group >> 7]);
  assert.throws(() => fromBinary(QueryTableRequestSchema, Buffer.alloc(4 * MIB, start)), /recursion depth/);
});
