import { ARROW_FILE, ARROW_STREAM, acceptedArrow } from "../../../../arrow/ipc/ipc-forms.ts";
import { dataBytes, END_OF_STREAM, type FileMessages, splitIpcFile } from "../../../../arrow/ipc/stream.ts";
import type { NativeBatches } from "../../engine/native/query.ts";
import type { BuiltQuery, Run } from "../query/build.ts";
import { createResultEditor } from "../query/edit-result.ts";
import { batchFiles, emptySchema, passingOf, type RunOptions, startRun } from "./run-query.ts";

/** Maximum size of a small result, in bytes. */
export const SMALL_RESULT_BYTES = 1024 * 1024;

/** A whole result in one of the forms of Arrow. */
export interface WholeResult {
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
