import { ARROW_FILE, ARROW_STREAM, acceptedArrow } from "../../../../arrow/ipc/ipc-forms.ts";
import { dataBytes, END_OF_STREAM, type FileMessages, splitIpcFile } from "../../../../arrow/ipc/stream.ts";
import type { Call } from "../../../../namespace/call/call.ts";
import { timeLimit } from "../../concurrency/wait.ts";
import { hasNoNeighbours } from "../../engine/failures/errors.ts";
import type { NativeBatches } from "../../engine/native/query.ts";
import { costlyRows, passingRows } from "../../engine/passing-rows.ts";
import { MAX_BATCH_ROWS } from "../../engine/row-widths.ts";
import type { BuiltQuery, Run } from "../query/build.ts";
import { createResultEditor, foundRows } from "../query/edit-result.ts";
import type { Guarded } from "../tables/call-data.ts";
import { sizeOfExpressions } from "./sampled-width.ts";

/** Options of a result. */
export interface RunOptions {
  /** The data that the query reads. */
  readonly data: Guarded;
  readonly call: Call;
}

/**
 * Begins a query. The engine cannot fuse ranks without neighbours; then the result is that of the words alone.
 *
 * @throws LanceError the engine's errors; Unsupported, if it misreads the version of the table at which the query began
 */
export async function startRun(
  built: BuiltQuery,
  run: Run,
  batchRows: number,
  { data, call }: RunOptions,
): Promise<{ batches: NativeBatches; ranked: boolean }> {
  const started = await execute(built, run, batchRows, call);
  await data.refuseMisread(built.reads);
  return started;
}

async function execute({ shape, hybrid }: BuiltQuery, { query }: Run, batchRows: number, call: Call) {
  const timeout = timeLimit(call);
  try {
    return { batches: await (await query()).execute(batchRows, timeout), ranked: true };
  } catch (error) {
    if (!hybrid || !hasNoNeighbours(error)) throw error;
    return { batches: await shape().execute(batchRows, timeout), ranked: false };
  }
}

/** Yields the batches of a result as IPC files. From the second one on, each waits for a turn. */
async function* batchFiles(batches: NativeBatches, { data }: RunOptions): AsyncGenerator<Buffer, void> {
  let inTurn: true | undefined;
  for (;;) {
    const file = await data.wait(() => batches.next(), inTurn);
    if (file === null) return;
    yield file;
    inTurn = true;
  }
}

/** Yields the same, and reads each batch while the one before is on its way. */
export async function* batchFilesAhead(
  batches: NativeBatches,
  options: RunOptions,
): AsyncGenerator<Buffer, void> {
  const files = batchFiles(batches, options);
  let ahead = files.next();
  for (;;) {
    const { value: file, done } = await ahead;
    if (done) return;
    ahead = files.next();
    // A reader may leave before it takes the batch.
    ahead.catch(() => {});
    yield file;
  }
}

/** Returns the ids of the rows of a batch that pass the filter after the search; undefined if there is none. */
export async function passingOf(
  { filterAfter, mostBatchRows }: BuiltQuery,
  batch: FileMessages,
  { data, call }: RunOptions,
): Promise<ReadonlySet<bigint> | undefined> {
  if (filterAfter === undefined) return undefined;
  const size = await sizeOfExpressions([filterAfter], data);
  const batchRows = Math.min(size?.batchRows ?? MAX_BATCH_ROWS, mostBatchRows);
  return data.wait(() => passingRows(data.table, filterAfter, foundRows(batch), batchRows, timeLimit(call)));
}

/** Yields the parts of a query, one after the other. Those of a costly scan have the rows that the engine finds in a batch. */
export async function* runsOf(
  { runs, costlyScan }: BuiltQuery,
  { data, call }: RunOptions,
): AsyncGenerator<Run, void> {
  if (costlyScan === undefined) {
    yield* runs;
    return;
  }
  const { where, milestones, fast, query, skipRows, maxRows = Number.POSITIVE_INFINITY } = costlyScan;
  const batches = costlyRows(data.table, where, milestones, timeLimit(call), fast);
  let [left, missing] = [skipRows, maxRows];
  while (missing > 0) {
    const { value: ids, done } = await data.wait(() => batches.next());
    if (done) return;
    const found = ids.slice(left, left + missing);
    left = Math.max(0, left - ids.length);
    missing -= found.length;
    if (found.length > 0) yield { query: async () => query(found), firstVector: 0, vectors: 1 };
  }
}

/** Asks the engine for the schema of its result. */
export async function shapeOf({ shape }: BuiltQuery, { wait }: Guarded): Promise<FileMessages> {
  return splitIpcFile(await wait(async () => shape().outputSchema()));
}

/** Returns the schema message of a result without rows. */
export async function emptySchema(built: BuiltQuery, data: Guarded): Promise<Uint8Array> {
  const edit = createResultEditor(built, !built.hybrid, 0);
  return edit({ ...(await shapeOf(built, data)), data: [] }).schema;
}

/** Maximum size of a small result, in bytes. */
export const SMALL_RESULT_BYTES = 1024 * 1024;

/** A whole result in one of the forms of Arrow. */
interface WholeResult {
  readonly contentType: typeof ARROW_FILE | typeof ARROW_STREAM;
  /** Empty if the result is wide. */
  readonly bytes: Uint8Array;
  readonly wide: WideResult | undefined;
}

/** A result that is larger than {@link SMALL_RESULT_BYTES}. A copy of it would take as much memory again. */
export interface WideResult {
  /** The engine's batches. */
  readonly files: readonly Uint8Array[];
  /** The pieces of the result, in the memory of the batches. */
  readonly pieces: readonly Uint8Array[];
}

/**
 * Runs a query for few rows and collects its result, because sending parts one by one costs more than copying them. A
 * single batch that needs no change is an IPC file already, and remains one for clients that take files.
 *
 * @throws LanceError Cancelled, the engine's errors
 */
export async function smallResult(built: BuiltQuery, options: RunOptions): Promise<WholeResult> {
  const { data, call } = options;
  if (built.maxRows === 0) {
    // A result without rows needs no run.
    await data.refuseMisread(built.reads);
    return wholeOf([await emptySchema(built, data), END_OF_STREAM], ARROW_STREAM, []);
  }
  const [run] = built.runs as readonly [Run];
  const { batches, ranked } = await data.wait(() => startRun(built, run, built.mostBatchRows, options));
  const { hidesRowId, filterAfter, skipRows, maxRows = 0 } = built;
  const isFinal = ranked && !hidesRowId && filterAfter === undefined && skipRows === 0;
  const most = isFinal ? maxRows * run.vectors : Number.POSITIVE_INFINITY;
  const files = await collect(batches, most, built.columns, options);
  const [only, ...others] = files;
  const goesOn = isFinal && only !== undefined && only.rows > 0 && others.length === 0;
  if (goesOn && acceptedArrow(call) === ARROW_FILE) {
    return wholeOf([only.file], ARROW_FILE, files);
  }

  const edit = createResultEditor(built, ranked, run.firstVector);
  const edited: ReturnType<typeof edit>[] = [];
  for (const file of files) {
    const batch = edit(file, await passingOf(built, file, options));
    if (batch.data.length > 0) edited.push(batch);
  }
  const schema = edited[0]?.schema ?? (await emptySchema(built, data));
  const parts = [schema, ...edited.flatMap((batch) => batch.data), END_OF_STREAM];
  return wholeOf(parts, ARROW_STREAM, files);
}

function wholeOf(
  pieces: readonly Uint8Array[],
  contentType: WholeResult["contentType"],
  batches: readonly Batch[],
): WholeResult {
  const [first, ...others] = pieces;
  const files = batches.map(({ file }) => file);
  if (files.reduce((sum, { byteLength }) => sum + byteLength, 0) > SMALL_RESULT_BYTES) {
    return { contentType, bytes: NOTHING, wide: { files, pieces } };
  }
  const bytes = first !== undefined && others.length === 0 ? first : Buffer.concat(pieces);
  return { contentType, bytes, wide: undefined };
}

const NOTHING = new Uint8Array();

interface Batch extends FileMessages {
  readonly file: Uint8Array;
}

/** Takes the batches of a result until it has the most rows that there can be. */
async function collect(
  batches: NativeBatches,
  most: number,
  columns: BuiltQuery["columns"],
  options: RunOptions,
): Promise<Batch[]> {
  const collected: Batch[] = [];
  const note = options.data.widths.begin(columns);
  let rows = 0;
  for await (const file of batchFiles(batches, options)) {
    const batch = { file, ...splitIpcFile(file) };
    note(batch.rows, dataBytes(batch));
    collected.push(batch);
    rows += batch.rows;
    if (rows < most) continue;
    // The engine has no more rows, and the answer need not wait until it has seen that and ended the query.
    options.data.wait(() => batches.next()).catch(() => {});
    break;
  }
  return collected;
}
