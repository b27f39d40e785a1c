import { type FileMessages, splitIpcFile } from "../../../../arrow/stream.ts";
import type { Call } from "../../../../namespace/call.ts";
import { timeLimit } from "../../concurrency/wait.ts";
import { MAX_BATCH_ROWS } from "../../engine/batch-rows.ts";
import { hasNoNeighbours } from "../../engine/errors.ts";
import type { NativeBatches } from "../../engine/native-query.ts";
import { passingRows } from "../../engine/passing-rows.ts";
import type { BuiltQuery, Run } from "../query/build.ts";
import { createResultEditor, foundRows } from "../query/edit-result.ts";
import type { Guarded } from "../tables/guarded.ts";
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

/** Returns the ids of the rows of a batch that pass the filter after the search; undefined if there is none. */
export async function passingOf(
  { filterAfter, milestones, mostBatchRows }: BuiltQuery,
  batch: FileMessages,
  { data, call }: RunOptions,
): Promise<ReadonlySet<bigint> | undefined> {
  if (filterAfter === undefined) return undefined;
  const size = await sizeOfExpressions([filterAfter], data);
  const batchRows = Math.min(size?.batchRows ?? MAX_BATCH_ROWS, mostBatchRows);
  const ids = foundRows(batch);
  const doubtful = milestones === undefined ? ids : ids.filter((id) => milestones.has(id));
  const passing = await data.wait(() =>
    passingRows(data.table, filterAfter, doubtful, batchRows, timeLimit(call)),
  );
  if (milestones === undefined) return passing;
  return new Set(ids.filter((id) => !milestones.has(id) || passing.has(id)));
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
