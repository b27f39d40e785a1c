import { create } from "@bufbuild/protobuf";
import { ARROW_STREAM } from "../../../arrow/media-types.ts";
import { freeAtOnce } from "../../../arrow/memory.ts";
import { rowWidth } from "../../../arrow/row-width.ts";
import { decodeSchema } from "../../../arrow/schema.ts";
import { END_OF_STREAM, splitIpcFile } from "../../../arrow/stream.ts";
import {
  type QueryTableResponse,
  QueryTableResponseSchema,
} from "../../../gen/lance/namespace/v1/query_pb.ts";
import type { Call } from "../../../namespace/call.ts";
import { hasNoNeighbours } from "../engine/errors.ts";
import type { NativeBatches } from "../engine/native.ts";
import type { Turns } from "../engine/turns.ts";
import { timeLimit } from "../engine/wait.ts";
import type { Guarded } from "./guarded.ts";
import type { BuiltQuery } from "./query/build.ts";
import { createResultEditor } from "./query/edit-result.ts";

/** The size that batches are to have, in bytes; the engine reads a few of them ahead. */
const BATCH_BYTES = 2 * 1024 * 1024;

/** The rows of a batch, at most. */
const MAX_BATCH_ROWS = 8192;

/** A result of no more rows than this is one batch, whatever their width. */
const SMALL_RESULT_ROWS = 64;

/** The bytes of a message, at most: gRPC clients refuse messages of more than 4 MiB by default. */
const MESSAGE_BYTES = 1024 * 1024;

/** What a result is read with. */
export interface ResultOptions {
  /** The data that the query is of. */
  readonly data: Guarded;
  readonly call: Call;
  /** The turns of long results: from its second batch on, a result waits for one before each batch. */
  readonly turns: Turns;
}

/**
 * Runs a query and gives its result as messages with an Arrow IPC stream.
 *
 * The next batch is asked of the engine when the one before has been taken. How many rows a batch has follows
 * from the width of the rows, so that it stays within a few megabytes.
 *
 * @throws LanceError Cancelled when the call ends before the result, and those of the engine
 */
export async function* resultMessages(
  built: BuiltQuery,
  options: ResultOptions,
): AsyncIterable<QueryTableResponse> {
  let contentType = ARROW_STREAM;
  const chunks = resultStream(built, options);
  for await (const chunk of isSmall(built) ? joined(chunks) : chunks) {
    for (let at = 0; at < chunk.byteLength; at += MESSAGE_BYTES) {
      const data = chunk.subarray(at, at + MESSAGE_BYTES);
      yield create(QueryTableResponseSchema, { data: { contentType, data } });
      contentType = "";
    }
  }
}

async function* resultStream(
  built: BuiltQuery,
  { data, call, turns }: ResultOptions,
): AsyncIterable<Uint8Array> {
  const rows = await batchRows(built, data);
  const { batches, ranked } = await data.wait(() => start(built, rows, timeLimit(call)));
  const edit = createResultEditor(built, ranked);
  // A small result is collected before it is sent.
  const frees = call.releasesChunks === true && !isSmall(built);
  const isWanted = () => !call.signal.aborted;
  let first = true;
  let pull = () => batches.next();
  for (;;) {
    const batch = await data.wait(pull);
    if (batch === null) break;
    pull = async () => (await turns.run(() => batches.next(), isWanted)) ?? null;
    const edited = edit(splitIpcFile(batch));
    if (edited.data.length === 0) continue;
    // A batch's own schema is the one that is true: the planned one may differ in what can be null.
    if (first) yield edited.schema;
    first = false;
    yield* edited.data;
    // A wire that was broken off may still be sending.
    if (frees && !call.signal.aborted) freeAtOnce(batch);
  }
  if (first) yield edit({ ...(await shapeOf(built, data)), data: [] }).schema;
  yield END_OF_STREAM;
}

/** The engine cannot fuse ranks when there are no neighbours; the words alone make up the result then. */
async function start(
  { query, shape, hybrid }: BuiltQuery,
  rows: number,
  timeout: number | undefined,
): Promise<{ batches: NativeBatches; ranked: boolean }> {
  try {
    return { batches: await query.execute(rows, timeout), ranked: true };
  } catch (error) {
    if (!hybrid || !hasNoNeighbours(error)) throw error;
    return { batches: await shape.execute(rows, timeout), ranked: false };
  }
}

async function shapeOf({ shape }: BuiltQuery, { wait }: Guarded) {
  return splitIpcFile(await wait(() => shape.outputSchema()));
}

function isSmall({ maxRows }: BuiltQuery): boolean {
  return maxRows !== undefined && maxRows <= SMALL_RESULT_ROWS;
}

/** The chunks of a small result as one: each costs more on its way than copying it. */
async function* joined(chunks: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
  const pieces: Uint8Array[] = [];
  for await (const chunk of chunks) pieces.push(chunk);
  yield Buffer.concat(pieces);
}

/** How many rows make a batch; where types do not tell their width, the table's average row is the measure. */
async function batchRows(built: BuiltQuery, data: Guarded): Promise<number> {
  if (isSmall(built)) return MAX_BATCH_ROWS;
  const { schemaMetadata } = await shapeOf(built, data);
  const { bytes, exact } = rowWidth(decodeSchema(schemaMetadata));
  const width = exact ? bytes : Math.max(bytes, await averageRow(data));
  return Math.min(MAX_BATCH_ROWS, Math.max(1, Math.floor(BATCH_BYTES / Math.max(1, width))));
}

async function averageRow({ table, wait }: Guarded): Promise<number> {
  const { totalBytes, numRows } = await wait(() => table.stats());
  return numRows === 0 ? 0 : totalBytes / numRows;
}
