import { create } from "@bufbuild/protobuf";
import { ARROW_STREAM } from "../../../arrow/media-types.ts";
import { decodeSchema } from "../../../arrow/schema.ts";
import { END_OF_STREAM, splitIpcFile } from "../../../arrow/stream.ts";
import {
  CountTableRowsResponseSchema,
  type QueryTableResponse,
  QueryTableResponseSchema,
} from "../../../gen/lance/namespace/v1/query_pb.ts";
import { LanceError } from "../../../namespace/errors.ts";
import type { LanceNamespace } from "../../../namespace/port.ts";
import { engineCall } from "../engine/errors.ts";
import type { NativeQueryBase } from "../engine/native.ts";
import { onePredicate } from "../engine/predicate.ts";
import type { DirContext } from "./context.ts";
import { openData, requireTable, withData } from "./lookup.ts";
import { buildQuery } from "./query.ts";

/** The rows of a batch, at most: large enough for narrow rows, and still a few megabytes for vectors. */
const BATCH_ROWS = 8192;

/** The bytes of a message, at most: gRPC clients refuse messages of more than 4 MiB by default. */
const MESSAGE_BYTES = 1024 * 1024;

/** The operations that read rows. */
export function createReadOperations(
  context: DirContext,
): Pick<LanceNamespace, "countTableRows" | "queryTable"> {
  return {
    async countTableRows({ version, branch, predicate }, { id }) {
      const filter = onePredicate(predicate);
      const table = await requireTable(context, id);
      const count = await withData(context, table, { version, branch }, (native) =>
        engineCall(() => native.countRows(filter)),
      );
      return create(CountTableRowsResponseSchema, { count: BigInt(count) });
    },
    async *queryTable(request, call) {
      const table = await requireTable(context, call.id);
      const lease = await openData(context, table, request);
      try {
        const schema = await engineCall(() => lease.table.schema());
        const { fields } = decodeSchema(splitIpcFile(schema).schemaMetadata);
        const names = fields.map(({ name }) => name);
        const query = await engineCall(async () => buildQuery(lease.table, request, names));
        yield* messages(resultStream(query, call.signal));
      } finally {
        lease.release();
      }
    },
  };
}

/** The result as an IPC stream; the next batch is asked of the engine when the one before has gone. */
async function* resultStream(query: NativeQueryBase, signal: AbortSignal): AsyncIterable<Uint8Array> {
  const batches = await engineCall(() => query.execute(BATCH_ROWS));
  let first = true;
  for (;;) {
    if (signal.aborted) throw new LanceError("Cancelled", "the query was cancelled");
    const batch = await engineCall(() => batches.next());
    if (batch === null) break;
    const { schema, data } = splitIpcFile(batch);
    if (first) yield schema;
    first = false;
    yield* data;
  }
  if (first) yield splitIpcFile(await engineCall(() => query.outputSchema())).schema;
  yield END_OF_STREAM;
}

async function* messages(chunks: AsyncIterable<Uint8Array>): AsyncIterable<QueryTableResponse> {
  let contentType = ARROW_STREAM;
  for await (const chunk of chunks) {
    for (let at = 0; at < chunk.byteLength; at += MESSAGE_BYTES) {
      const data = chunk.subarray(at, at + MESSAGE_BYTES);
      yield create(QueryTableResponseSchema, { data: { contentType, data } });
      contentType = "";
    }
  }
}
