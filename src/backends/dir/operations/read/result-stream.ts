import { create } from "@bufbuild/protobuf";
import { ARROW_STREAM } from "../../../../arrow/ipc/ipc-forms.ts";
import { dataBytes, END_OF_STREAM, splitIpcFile } from "../../../../arrow/ipc/stream.ts";
import {
  type QueryTableResponse,
  QueryTableResponseSchema,
} from "../../../../gen/lance/namespace/v1/query_pb.ts";
import { callerKey } from "../../../../namespace/call/caller-key.ts";
import { freeAtOnce } from "../../../../runtime/free-at-once.ts";
import type { NativeBatches } from "../../engine/native/query.ts";
import type { BuiltQuery } from "../query/build.ts";
import { createResultEditor } from "../query/edit-result.ts";
import type { Guarded } from "../tables/call-data.ts";
import { sizeBeside } from "./columns-size.ts";
import type { Place, ReadAhead } from "./read-ahead.ts";
import { sizeOf } from "./result-size.ts";
import { batchFilesAhead, emptySchema, passingOf, type RunOptions, runsOf, startRun } from "./run-query.ts";
import { expectedWidth } from "./sampled-width.ts";
import { SMALL_RESULT_BYTES, smallResult, type WideResult } from "./small-result.ts";

/** Maximum number of rows of a result that is collected before it is sent. */
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
  if (await isSmall(built, options.data)) {
    const { contentType, bytes, wide } = await smallResult(built, options);
    if (wide === undefined) yield* messagesOf(bytes, contentType);
    else yield* wideResult(wide, contentType, options);
    return;
  }
  const { batchRows, place } = await enterResult(built, options);
  yield* placedMessages(resultStream(built, options, batchRows, place), ARROW_STREAM, place);
}

/** Yields a collected result that is wider than its query let expect. Its bytes count until its reader has them. */
async function* wideResult(
  { files, pieces }: WideResult,
  contentType: string,
  { readAhead, call }: ResultOptions,
): AsyncIterable<QueryTableResponse> {
  const bytes = files.reduce((sum, { byteLength }) => sum + byteLength, 0);
  const place = readAhead.count(bytes, call.cutOff);
  let rest: object | undefined = files.at(-1)?.buffer;
  try {
    yield* placedMessages(pieces, contentType, place);
    if (call.releasesChunks && !call.signal.aborted) {
      files.forEach(freeAtOnce);
      rest = undefined;
    }
  } finally {
    place.leave(rest);
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
  options: Pick<ResultOptions, "data" | "call" | "readAhead">,
): Promise<{ batchRows: number; place: Place }> {
  const { call, readAhead } = options;
  const { batchRows, readAheadBytes } = await sizeOf(built, options);
  const place = await readAhead.enter(readAheadBytes, call.signal, call.cutOff, callerKey(call));
  return { batchRows, place };
}

/** Cuts bytes into messages, of which the first one has the content type. */
function* messagesOf(bytes: Uint8Array, contentType: string): Iterable<QueryTableResponse> {
  for (let at = 0; at < bytes.byteLength; at += MESSAGE_BYTES) {
    const data = { contentType: at === 0 ? contentType : "", data: bytes.subarray(at, at + MESSAGE_BYTES) };
    yield create(QueryTableResponseSchema, { data });
  }
}

/** Cuts pieces into messages in the same way, and reports to the place of the result whose turn it is. */
async function* placedMessages(
  pieces: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
  contentType: string,
  place: Place,
): AsyncIterable<QueryTableResponse> {
  let type = contentType;
  for await (const piece of pieces) {
    for (const message of messagesOf(piece, type)) {
      place.given(message.data?.data.length ?? 0);
      yield message;
      place.taken();
      type = "";
    }
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
  const note = data.widths.begin(built.columns);
  let first = true;
  for await (const run of runsOf(built, options)) {
    const { batches, ranked } = await data.wait(() => startRun(built, run, batchRows, options));
    onRest(batches);
    const edit = createResultEditor(built, ranked, run.firstVector);
    for await (const batch of batchFilesAhead(batches, options)) {
      const messages = splitIpcFile(batch);
      note(messages.rows, dataBytes(messages));
      const edited = edit(messages, await passingOf(built, messages, options));
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

/** Whether the engine gives few rows, they are expected to be narrow, and so is what it reads to find them. */
async function isSmall(built: BuiltQuery, data: Guarded): Promise<boolean> {
  if (built.costlyScan !== undefined) return false;
  const { maxRows = Number.POSITIVE_INFINITY, skipRows, runs } = built;
  const [only, ...others] = runs;
  const rows = (maxRows + skipRows) * (only?.vectors ?? 0);
  if (others.length > 0 || rows > SMALL_RESULT_ROWS) return false;
  if (rows * (await expectedWidth(built, data)) > SMALL_RESULT_BYTES) return false;
  return (await sizeBeside(built, data)) === undefined;
}
