import assert from "node:assert/strict";
import { create, type DescMessage, equals, type Message } from "@bufbuild/protobuf";
import fc from "fast-check";
import { test } from "vitest";
import { messages } from "../../../test/fixtures/transcode.ts";
import { QueryTableRequestSchema } from "../../gen/lance/namespace/v1/query_pb.ts";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import {
  DescribeTableResponseSchema,
  GetTableStatsResponseSchema,
  ListTablesResponseSchema,
} from "../../gen/lance/namespace/v1/table_pb.ts";
import { AlterTransactionRequestSchema } from "../../gen/lance/namespace/v1/transaction_pb.ts";
import { HTTP_BODY } from "../descriptors.ts";
import { FieldError } from "../field-error.ts";
import { createJsonDecoders } from "./decode.ts";
import { createJsonEncoders } from "./encode.ts";
import { parseJsonExactly } from "./parse.ts";

const decoders = createJsonDecoders();
const encoders = createJsonEncoders();

function decode(descriptor: DescMessage, text: string): Message {
  return decoders.message(descriptor)(parseJsonExactly(text), 0) as Message;
}

for (const method of LanceNamespaceService.methods) {
  for (const descriptor of [method.input, method.output]) {
    if (descriptor.fields.some((field) => field.message?.typeName === HTTP_BODY)) continue;
    test(`${descriptor.name} is what it was after JSON`, () => {
      fc.assert(
        fc.property(messages(descriptor, 4), (message) => {
          const text = encoders.message(descriptor)(message);
          const read = decode(descriptor, text);
          assert.ok(equals(descriptor, message, read), text);
          assert.equal(encoders.message(descriptor)(read), text);
        }),
        { numRuns: 25 },
      );
    });
  }
}

test("required fields are written even when empty, others are not", () => {
  assert.equal(encoders.message(ListTablesResponseSchema)(create(ListTablesResponseSchema)), '{"tables":[]}');
  assert.equal(
    encoders.message(DescribeTableResponseSchema)(create(DescribeTableResponseSchema)),
    '{"properties":{}}',
  );
  const stats = JSON.parse(
    encoders.message(GetTableStatsResponseSchema)(create(GetTableStatsResponseSchema)),
  );
  assert.equal(stats.num_rows, 0);
  assert.equal(stats.fragment_stats.lengths.p99, 0);
});

test("64-bit integers are numbers, exact to the last digit", () => {
  const message = create(DescribeTableResponseSchema, { version: 9007199254740993n });
  assert.match(encoders.message(DescribeTableResponseSchema)(message), /"version":9007199254740993,/);
});

test("nesting has a bound", () => {
  const nested = (depth: number) => {
    const open = '{"boost":{"negative":{},"positive":'.repeat(depth);
    return `{"full_text_query":{"structured_query":{"query":${open}{}${"}}".repeat(depth)}}}}`;
  };
  decode(QueryTableRequestSchema, nested(20));
  assert.throws(
    () => decode(QueryTableRequestSchema, nested(40)),
    (thrown) => thrown instanceof FieldError && thrown.problem === "is nested too deeply",
  );
});

test("two members of a oneof are refused, and null is none", () => {
  const one = '{"actions":[{"setStatusAction":{"status":"running"},"setPropertyAction":null}]}';
  decode(AlterTransactionRequestSchema, one);
  assert.throws(() => decode(AlterTransactionRequestSchema, one.replace("null", "{}")), FieldError);
});

test("a key named __proto__ stays a key", () => {
  const message = decode(
    DescribeTableResponseSchema,
    '{"__proto__":{"x":1},"metadata":{"__proto__":"a"},"properties":{}}',
  ) as unknown as { metadata: object; x?: number };
  assert.equal(message.x, undefined);
  assert.deepEqual(Object.entries(message.metadata), [["__proto__", "a"]]);
  assert.equal(Object.getPrototypeOf(message.metadata), Object.prototype);
});
