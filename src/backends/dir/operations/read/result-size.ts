import { rowWidth } from "../../../../arrow/row-width.ts";
import { decodeSchema } from "../../../../arrow/schema.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import type { BuiltQuery, Gathered } from "../query/build.ts";
import type { Guarded } from "../tables/guarded.ts";
import { MAX_BATCH_ROWS, shapeOf } from "./run-query.ts";
import { sampledWidth } from "./sampled-width.ts";

/** Target size of a batch, in bytes; the engine reads a few batches ahead. */
const BATCH_BYTES = 2 * 1024 * 1024;

/**
 * How much wider than the table's rows those of a result are taken to be at most, whatever results had before. A batch takes time however few
 * rows it has: with a batch for each row, a scan of a million narrow rows and a wide one took two minutes in place of 0.2 s.
 */
const MOST_TIMES_WIDER = 8;

/**
 * Memory that the engine holds for each column of an open result, in bytes: the pages of 8 MiB that it reads and
 * decodes at a time. The figure was measured, because the engine has no option for it.
 */
const COLUMN_BYTES = 16 * 1024 * 1024;

/** Memory that a large result holds in addition, in bytes: batches that are decoded or on their way. */
const RESULT_BYTES = 8 * 1024 * 1024;

/** Size of the pieces in which a result is read. */
export interface ResultSize {
  /** Number of rows of a batch. */
  readonly batchRows: number;
  /** Maximum number of bytes that the engine holds for the result while it is open. */
  readonly readAheadBytes: number;
}

/**
 * Derives the size from the width of the rows, or from that of a few rows and the files where types do not determine it.
 *
 * @throws LanceError InvalidInput for more rows than fit into the memory
 */
export async function sizeOf(built: BuiltQuery, data: Guarded): Promise<ResultSize> {
  const { schemaMetadata } = await shapeOf(built, data);
  const schema = decodeSchema(schemaMetadata);
  const { bytes, exact } = rowWidth(schema);
  const known = exact && built.maxRows !== undefined;
  const measured = exact ? 0 : Math.max(await data.averageRow(), await sampledWidth(built, data));
  const usual = Math.max(1, bytes, measured);
  const width = Math.max(usual, data.widths.of(built.columns) ?? 0);
  const rows = Math.min(
    built.maxRows ?? Number.POSITIVE_INFINITY,
    known ? Number.POSITIVE_INFINITY : await data.rowCount(),
  );
  const vectors = Math.max(...built.runs.map((run) => run.vectors));
  const scanned = Math.min(2 * rows * width * vectors, schema.fields.length * COLUMN_BYTES + RESULT_BYTES);
  const gathered = await gatheredBytes(built.gathered, data, 2 * vectors, { usual, width }, scanned);
  checkMemory(gathered);
  return {
    batchRows: batchRowsOf(Math.min(width, MOST_TIMES_WIDER * usual)),
    readAheadBytes: Math.max(scanned, gathered),
  };
}

/** How many rows of a table are taken to be as wide as the widest that results had: one of them makes no table large. */
const WIDE_ROWS = 16;

function batchRowsOf(width: number): number {
  return Math.min(MAX_BATCH_ROWS, Math.max(1, Math.floor(BATCH_BYTES / width)));
}

/**
 * Returns the number of bytes of the rows that the engine gathers.
 *
 * @param times how often it holds each
 * @param widths that of the table's rows, and that of the widest that results had recently, in bytes
 * @param few number of bytes for which no rows are counted
 */
async function gatheredBytes(
  { rows, atATime, keptBytes, where }: Gathered,
  { countRows, rowCount }: Pick<Guarded, "countRows" | "rowCount">,
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

/**
 * The engine gathers without a bound of its own, and ends the process when the memory does not suffice.
 *
 * @throws LanceError InvalidInput
 */
function checkMemory(bytes: number): void {
  if (bytes <= process.availableMemory() / 2) return;
  throw new LanceError(
    "InvalidInput",
    `the engine would gather about ${Math.ceil(bytes / 2 ** 20)} MiB before the first row, which is more than half of the free memory; ask for fewer rows with k or filter, or for fewer columns`,
  );
}
