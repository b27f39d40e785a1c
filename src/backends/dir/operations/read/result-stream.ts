import { create } from "@bufbuild/protobuf";
import { rowWidth } from "../../../../arrow/bit-width.ts";
import { ARROW_STREAM } from "../../../../arrow/ipc/ipc-forms.ts";
import { dataBytes, END_OF_STREAM, splitIpcFile } from "../../../../arrow/ipc/stream.ts";
import { decodeSchema } from "../../../../arrow/schema.ts";
import {
  type QueryTableResponse,
  QueryTableResponseSchema,
} from "../../../../gen/lance/namespace/v1/query_pb.ts";
import { callerKey } from "../../../../namespace/call/caller-key.ts";
import { freeAtOnce } from "../../../../runtime/byte-memory.ts";
import type { NativeBatches } from "../../engine/native/query.ts";
import { batchRowsOf, MAX_BATCH_ROWS, MAX_EXACT_ROWS } from "../../engine/row-widths.ts";
import type { BuiltQuery, Gathered } from "../query/build.ts";
import { createResultEditor } from "../query/edit-result.ts";
import type { Guarded } from "../tables/call-data.ts";
import { countRows } from "./count-rows.ts";
import { checkMemory, type WaitingCall } from "./memory-room.ts";
import type { Place, ReadAhead } from "./read-ahead.ts";
import {
  batchFilesAhead,
  emptySchema,
  passingOf,
  type RunOptions,
  runsOf,
  SMALL_RESULT_BYTES,
  shapeOf,
  smallResult,
  startRun,
  type WideResult,
} from "./run-query.ts";
import {
  COLUMN_BYTES,
  expectedWidth,
  RESULT_BYTES,
  type ResultSize,
  sampledWidth,
  sizeBeside,
  sizeOfExpressions,
} from "./sampled-width.ts";

/** Maximum number of rows of a result that is collected before it is sent. */
const SMALL_RESULT_ROWS = 64;

/** Maximum size of a message, in bytes. gRPC clients refuse messages of more than 4 MiB by default, and a larger one holds the loop longer. */
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

/**
 * How much wider than the table's rows those of a result are taken to be at most, whatever results had before. A batch takes time however few
 * rows it has: with a batch for each row, a scan of a million narrow rows and a wide one took two minutes in place of 0.2 s.
 */
const MOST_TIMES_WIDER = 8;

/**
 * Derives the size from the width of the rows, or from that of a few rows and the files where types do not determine it.
 *
 * @throws LanceError InvalidInput for more rows than fit into the memory
 */
async function sizeOf(
  built: BuiltQuery,
  { data, ...waiting }: WaitingCall & { readonly data: Guarded },
): Promise<ResultSize> {
  const { schemaMetadata } = await shapeOf(built, data);
  const schema = decodeSchema(schemaMetadata);
  const { bytes, exact } = rowWidth(schema);
  const known = exact && built.maxRows !== undefined;
  const measured = exact ? 0 : Math.max(await data.averageRow(), await sampledWidth(built, data));
  const usual = Math.max(1, bytes, measured);
  const width = Math.max(usual, data.widths.of(built.columns) ?? 0);
  const beside = await sizeBeside(built, data);
  const ordered = (await sizeOfExpressions(built.orders, data))?.width ?? 0;
  const rows = Math.min(
    built.maxRows ?? Number.POSITIVE_INFINITY,
    known ? Number.POSITIVE_INFINITY : await data.rowCount(),
  );
  const vectors = Math.max(...built.runs.map((run) => run.vectors));
  const scanned = Math.min(2 * rows * width * vectors, schema.fields.length * COLUMN_BYTES + RESULT_BYTES);
  const widths = { usual: usual + ordered, width: width + ordered };
  const count = {
    rowCount: data.rowCount,
    countRows: (where: string) => countRows(data, where, waiting),
  };
  const gathered = await gatheredBytes(built.gathered, count, 2 * vectors, widths, scanned);
  checkMemory(gathered, "ask for fewer rows with k or filter, or for fewer columns");
  return {
    batchRows: Math.min(
      batchRowsOf(Math.min(width, MOST_TIMES_WIDER * usual), exact ? MAX_EXACT_ROWS : MAX_BATCH_ROWS),
      beside?.batchRows ?? MAX_EXACT_ROWS,
      built.mostBatchRows,
    ),
    readAheadBytes: Math.max(scanned + (beside?.readAheadBytes ?? 0), gathered),
  };
}

/** How many rows of a table are taken to be as wide as the widest that results had: one of them makes no table large. */
const WIDE_ROWS = 16;

/**
 * Returns the number of bytes of the rows that the engine gathers.
 *
 * @param times how often it holds each
 * @param widths that of the table's rows, and that of the widest that results had recently, in bytes
 * @param few number of bytes for which no rows are counted
 */
async function gatheredBytes(
  { rows, atATime, keptBytes, where }: Gathered,
  { countRows, rowCount }: { rowCount(): Promise<number>; countRows(where: string): Promise<number> },
  times: number,
  { usual, width }: { readonly usual: number; readonly width: number },
  few: number,
): Promise<number> {
  const bytesOf = (found: number, ofTable = Number.POSITIVE_INFINITY) =>
    times * Math.max(Math.min(Math.min(found, atATime) * width, ofTable), found * keptBytes);
  if (bytesOf(rows) <= few) return bytesOf(rows);
  const tableRows = await rowCount();
  const most = Math.min(rows, tableRows);
  const ofTable = tableRows * usual + WIDE_ROWS * width;
  if (bytesOf(most, ofTable) <= few || where === undefined) return bytesOf(most, ofTable);
  return bytesOf(Math.min(most, await countRows(where)), ofTable);
}
