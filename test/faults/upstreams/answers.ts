import { create, type DescMessage, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { InsertIntoTableResponseSchema } from "../../../src/gen/lance/namespace/v1/data_pb.ts";
import { CreateNamespaceResponseSchema } from "../../../src/gen/lance/namespace/v1/namespace_pb.ts";
import { QueryTableResponseSchema } from "../../../src/gen/lance/namespace/v1/query_pb.ts";
import { DescribeTableResponseSchema } from "../../../src/gen/lance/namespace/v1/table_pb.ts";
import { people, personStream } from "../../support/arrow.ts";

/** The operations that meet every fault: a read, a body out, a body in, and a change without a body. */
export type Operation = "describe" | "query" | "insert" | "create";

export const OPERATIONS: readonly Operation[] = ["describe", "query", "insert", "create"];

export const ROWS = 5_000;
const STREAM = "application/vnd.apache.arrow.stream";
/** Number of parts of a query's result. */
const PARTS = 8;

/** The answer of an upstream without faults. */
interface Answer {
  /** The body of REST. */
  readonly type: string;
  readonly body: Buffer;
  /** The messages of gRPC, each in its frame. */
  readonly frames: readonly Buffer[];
}

const rows = Buffer.from(personStream(people(ROWS)));
/** Makes every answer so long that half of it has content. */
const text = "long".repeat(100);

/** The answers by operation. */
export const ANSWERS: Readonly<Record<Operation, Answer>> = {
  describe: unary(
    DescribeTableResponseSchema,
    { table: "t", location: text },
    { table: "t", location: text },
  ),
  query: {
    type: STREAM,
    body: rows,
    frames: parts(rows).map((data) =>
      frameOf(QueryTableResponseSchema, { data: { contentType: STREAM, data } }),
    ),
  },
  insert: unary(InsertIntoTableResponseSchema, { transactionId: text }, { transaction_id: text }),
  create: unary(CreateNamespaceResponseSchema, { properties: { text } }, { properties: { text } }),
};

function unary<D extends DescMessage>(schema: D, message: MessageInitShape<D>, json: unknown): Answer {
  return {
    type: "application/json",
    body: Buffer.from(JSON.stringify(json)),
    frames: [frameOf(schema, message)],
  };
}

function parts(bytes: Buffer): Buffer[] {
  const size = Math.ceil(bytes.length / PARTS);
  return Array.from({ length: PARTS }, (_, part) => bytes.subarray(part * size, (part + 1) * size));
}

function frameOf<D extends DescMessage>(schema: D, message: MessageInitShape<D>): Buffer {
  const bytes = toBinary(schema, create(schema, message));
  const head = Buffer.alloc(5);
  head.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([head, bytes]);
}
