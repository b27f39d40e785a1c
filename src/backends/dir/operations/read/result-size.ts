import { rowWidth } from "../../../../arrow/bit-width.ts";
import { decodeSchema } from "../../../../arrow/schema.ts";
import { batchRowsOf, MAX_BATCH_ROWS, MAX_EXACT_ROWS } from "../../engine/batch-rows.ts";
import type { BuiltQuery, Gathered } from "../query/build.ts";
import type { Guarded } from "../tables/call-data.ts";
import { checkMemory } from "./check-memory.ts";
import {
  COLUMN_BYTES,
  RESULT_BYTES,
  type ResultSize,
  sizeBeside,
  sizeOfExpressions,
} from "./columns-size.ts";
import { countRows } from "./count-rows.ts";
import type { WaitingCall } from "./in-room.ts";
import { shapeOf } from "./run-query.ts";
import { sampledWidth } from "./sampled-width.ts";

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
export async function sizeOf(
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
