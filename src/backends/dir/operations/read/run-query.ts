import { type FileMessages, splitIpcFile } from "../../../../arrow/ipc/stream.ts";
import type { Call } from "../../../../namespace/call/call.ts";
import { timeLimit } from "../../concurrency/wait.ts";
import { hasNoNeighbours } from "../../engine/failures/errors.ts";
import type { NativeBatches } from "../../engine/native/query.ts";
import { costlyRows, passingRows } from "../../engine/passing-rows.ts";
import { MAX_BATCH_ROWS } from "../../engine/row-widths.ts";
import type { BuiltQuery, Run } from "../query/build.ts";
import { createResultEditor, foundRows } from "../query/edit-result.ts";
import type { Guarded } from "../tables/call-data.ts";
import { sizeOfExpressions } from "./columns-size.ts";

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
export async function* batchFiles(
  batches: NativeBatches,
  { data }: RunOptions,
): AsyncGenerator<Buffer, void> {
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
