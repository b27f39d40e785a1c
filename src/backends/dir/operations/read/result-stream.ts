import { create } from "@bufbuild/protobuf";
import { ARROW_STREAM } from "../../../../arrow/ipc-forms.ts";
import { freeAtOnce } from "../../../../arrow/memory.ts";
import { rowWidth } from "../../../../arrow/row-width.ts";
import { decodeSchema } from "../../../../arrow/schema.ts";
import { END_OF_STREAM, splitIpcFile } from "../../../../arrow/stream.ts";
import {
  type QueryTableResponse,
  QueryTableResponseSchema,
} from "../../../../gen/lance/namespace/v1/query_pb.ts";
import type { NativeBatches } from "../../engine/native-query.ts";
import type { BuiltQuery } from "../query/build.ts";
import { createResultEditor } from "../query/edit-result.ts";
import type { Guarded } from "../tables/guarded.ts";
import type { Place, ReadAhead } from "./read-ahead.ts";
import { batchFiles, emptySchema, MAX_BATCH_ROWS, type RunOptions, shapeOf, startRun } from "./run-query.ts";
import { smallResult } from "./small-result.ts";

/** Target size of a batch, in bytes; the engine reads a few batches ahead. */
const BATCH_BYTES = 2 * 1024 * 1024;

/** Maximum number of rows of a result that is collected before it is sent, whatever their width. */
const SMALL_RESULT_ROWS = 64;

/**
 * Memory that the engine holds for each column of an open result, in bytes: the pages of 8 MiB that it reads and
 * decodes at a time. The figure was measured, because the engine has no option for it.
 */
const COLUMN_BYTES = 16 * 1024 * 1024;

/** Memory that a large result holds in addition, in bytes: batches that are decoded or on their way. */
const RESULT_BYTES = 8 * 1024 * 1024;

/** Maximum size of a message, in bytes. gRPC clients refuse messages of more than 4 MiB by default. */
const MESSAGE_BYTES = 1024 * 1024;

/** Options of {@link resultMessages}. */
export interface ResultOptions extends RunOptions {
  /** The memory that a result takes before it begins. A small result takes none and is collected at once. */
  readonly readAhead: ReadAhead;
}

/**
 * Runs a query and yields its result as messages with an Arrow IPC stream, or with the form that {@link smallResult} has.
 *
 * The server asks the engine for the next batch when the reader has taken the one before. The number of rows of a batch
 * follows from the width of the rows, so that a batch stays within a few megabytes.
 *
 * @throws LanceError Cancelled when the call ends before the result, the engine's errors, and those of {@link
 *   ReadAhead.enter}
 */
export async function* resultMessages(
  built: BuiltQuery,
  options: ResultOptions,
): AsyncIterable<QueryTableResponse> {
  if (isSmall(built)) {
    const { contentType, bytes } = await smallResult(built, options);
    yield* messagesOf(bytes, contentType);
    return;
  }
  let contentType: string = ARROW_STREAM;
  const { data, call, readAhead } = options;
  const { batchRows, readAheadBytes } = await sizeOf(built, data);
  const place = await readAhead.enter(readAheadBytes, call.signal, call.cutOff);
  for await (const chunk of resultStream(built, options, batchRows, place)) {
    for (const message of messagesOf(chunk, contentType)) {
      place.given();
      yield message;
      place.taken();
      contentType = "";
    }
  }
}

/** Cuts bytes into messages, of which the first one has the content type. */
function* messagesOf(bytes: Uint8Array, contentType: string): Iterable<QueryTableResponse> {
  for (let at = 0; at < bytes.byteLength; at += MESSAGE_BYTES) {
    const data = { contentType: at === 0 ? contentType : "", data: bytes.subarray(at, at + MESSAGE_BYTES) };
    yield create(QueryTableResponseSchema, { data });
  }
}

/**
 * Yields the bytes of the result. Its place is free when they end, or when the collector frees an unread rest. A reader
 * that knows the end of a stream when it sees it does not ask for more, and has left no rest.
 */
async function* resultStream(
  built: BuiltQuery,
  options: ResultOptions,
  batchRows: number,
  place: Place,
): AsyncIterable<Uint8Array> {
  let rest: NativeBatches | undefined;
  try {
    yield* editedBatches(built, options, batchRows, (batches) => {
      rest = batches;
    });
  } finally {
    place.leave(rest);
  }
}

/** @param onRest gets the engine's result when it begins, and undefined when it has no further batch */
async function* editedBatches(
  built: BuiltQuery,
  options: ResultOptions,
  batchRows: number,
  onRest: (rest: NativeBatches | undefined) => void,
): AsyncIterable<Uint8Array> {
  const { data, call } = options;
  let first = true;
  for (const run of built.runs) {
    const { batches, ranked } = await data.wait(() => startRun(built, run, batchRows, call));
    onRest(batches);
    const edit = createResultEditor(built, ranked, run.firstVector);
    for await (const batch of batchFiles(batches, options)) {
      const edited = edit(splitIpcFile(batch));
      if (edited.data.length === 0) continue;
      // The batch's own schema is authoritative: the planned one may differ in nullability.
      if (first) yield edited.schema;
      first = false;
      yield* edited.data;
      // A wire whose call was aborted may still be sending the batch.
      if (call.releasesChunks && !call.signal.aborted) freeAtOnce(batch);
    }
    onRest(undefined);
  }
  if (first) yield await emptySchema(built, data);
  yield END_OF_STREAM;
}

function isSmall({ maxRows, runs }: BuiltQuery): boolean {
  const [only, ...others] = runs;
  const rows = (maxRows ?? Number.POSITIVE_INFINITY) * (only?.vectors ?? 0);
  return others.length === 0 && rows <= SMALL_RESULT_ROWS;
}

/** Size of the pieces in which a result is read. */
interface ResultSize {
  /** Number of rows of a batch. */
  readonly batchRows: number;
  /** Maximum number of bytes that the engine holds for the result while it is open. */
  readonly readAheadBytes: number;
}

/**
 * Derives the size from the width of the rows, or from the table's average row where types do not determine the width.
 */
async function sizeOf(built: BuiltQuery, data: Guarded): Promise<ResultSize> {
  const { schemaMetadata } = await shapeOf(built, data);
  const schema = decodeSchema(schemaMetadata);
  const { bytes, exact } = rowWidth(schema);
  const known = exact && built.maxRows !== undefined;
  const { totalBytes, numRows } = known
    ? { totalBytes: 0, numRows: 0 }
    : await data.wait(() => data.table.stats());
  const width = Math.max(1, bytes, exact || numRows === 0 ? 0 : totalBytes / numRows);
  const rows = Math.min(
    built.maxRows ?? Number.POSITIVE_INFINITY,
    known ? Number.POSITIVE_INFINITY : numRows,
  );
  const total = rows * width * Math.max(...built.runs.map(({ vectors }) => vectors));
  return {
    batchRows: Math.min(MAX_BATCH_ROWS, Math.max(1, Math.floor(BATCH_BYTES / width))),
    readAheadBytes: Math.min(2 * total, schema.fields.length * COLUMN_BYTES + RESULT_BYTES),
  };
}
