import { create } from "@bufbuild/protobuf";
import { ARROW_STREAM } from "../../../../arrow/ipc-forms.ts";
import { freeAtOnce } from "../../../../arrow/memory.ts";
import { END_OF_STREAM, splitIpcFile } from "../../../../arrow/stream.ts";
import {
  type QueryTableResponse,
  QueryTableResponseSchema,
} from "../../../../gen/lance/namespace/v1/query_pb.ts";
import type { NativeBatches } from "../../engine/native-query.ts";
import type { BuiltQuery } from "../query/build.ts";
import { createResultEditor } from "../query/edit-result.ts";
import type { Place, ReadAhead } from "./read-ahead.ts";
import { sizeOf } from "./result-size.ts";
import { batchFiles, emptySchema, type RunOptions, startRun } from "./run-query.ts";
import { smallResult } from "./small-result.ts";

/** Maximum number of rows of a result that is collected before it is sent, whatever their width. */
const SMALL_RESULT_ROWS = 64;

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
  const { batchRows, place } = await enterResult(built, options);
  for await (const chunk of resultStream(built, options, batchRows, place)) {
    for (const message of messagesOf(chunk, contentType)) {
      place.given();
      yield message;
      place.taken();
      contentType = "";
    }
  }
}

/**
 * Takes the memory of a result.
 *
 * @throws LanceError InvalidInput, if the engine would gather more rows than fit into the memory; the errors of {@link
 *   ReadAhead.enter}
 */
export async function enterResult(
  built: BuiltQuery,
  { data, call, readAhead }: Pick<ResultOptions, "data" | "call" | "readAhead">,
): Promise<{ batchRows: number; place: Place }> {
  const { batchRows, readAheadBytes } = await sizeOf(built, data);
  return { batchRows, place: await readAhead.enter(readAheadBytes, call.signal, call.cutOff) };
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
