import { rowWidth } from "../../../../arrow/bit-width.ts";
import type { ArrowField } from "../../../../arrow/schema.ts";
import { batchRowsOf, MAX_BATCH_ROWS } from "../../engine/row-widths.ts";
import { namedColumns } from "../../engine/sql/trees.ts";
import type { BuiltQuery } from "../query/build.ts";
import { type Sampled, sampleOf } from "./sampled-width.ts";

/**
 * Memory that the engine holds for each column that it reads, in bytes: the pages of 8 MiB that it reads and decodes at a time.
 * The figure was measured, because the engine has no option for it.
 */
export const COLUMN_BYTES = 16 * 1024 * 1024;

/** Memory that a large result holds in addition, in bytes: batches that are decoded or on their way. */
export const RESULT_BYTES = 8 * 1024 * 1024;

/** Size of the pieces in which a result is read. */
export interface ResultSize {
  /** Number of rows of a batch. */
  readonly batchRows: number;
  /** Maximum number of bytes that the engine holds for the result while it is open. */
  readonly readAheadBytes: number;
}

/** Size of the pieces in which the engine reads wide columns. */
export interface ColumnsSize extends ResultSize {
  /** That of a row in these columns, in bytes. */
  readonly width: number;
}

/**
 * Size up to which a batch of the most rows takes no room for a condition. Queries and counts run in any number at once, each with about ten such
 * batches: 60 with a condition on texts of 1 kB took 4 GiB.
 */
const CONDITION_BYTES = 1024 * 1024;

/** Bounds of {@link sizeOfColumns}. */
interface SizeBounds {
  /** Maximum number of rows of which the columns are read. Default: all */
  readonly mostRows?: number | undefined;
  /** Size up to which a batch of the most rows has little of them. Default: {@link COLUMN_BYTES} */
  readonly littleBytes?: number | undefined;
}

/**
 * Returns how columns are read in addition to those of a result; undefined if a batch of the most rows has little of them.
 *
 * @throws LanceError the errors of `wait`
 */
export async function sizeOfColumns(
  columns: readonly ArrowField[],
  data: Sampled,
  { mostRows = Number.POSITIVE_INFINITY, littleBytes = COLUMN_BYTES }: SizeBounds = {},
): Promise<ColumnsSize | undefined> {
  const exact = columns.filter((field) => rowWidth({ fields: [field] }).exact);
  const width = rowWidth({ fields: exact }).bytes + (await sampleOf(columns, data));
  if (width === 0) return undefined;
  const rows = Math.min(mostRows, await data.rowCount());
  if (Math.min(rows, MAX_BATCH_ROWS) * width <= littleBytes) return undefined;
  return {
    width,
    batchRows: batchRowsOf(width, MAX_BATCH_ROWS),
    readAheadBytes: Math.min(2 * rows * width, columns.length * COLUMN_BYTES + RESULT_BYTES),
  };
}

/** Returns how the columns are read that SQL expressions name, as {@link sizeOfColumns} does. */
export async function sizeOfExpressions(
  expressions: readonly string[],
  data: Sampled,
  bounds?: SizeBounds,
): Promise<ColumnsSize | undefined> {
  if (expressions.length === 0) return undefined;
  return sizeOfColumns(namedColumns(expressions, (await data.schema()).fields), data, bounds);
}

/** Returns how the columns are read that the conditions of a query or a count name, as {@link sizeOfColumns} does. */
export function sizeOfConditions(
  conditions: readonly string[],
  data: Sampled,
  mostRows?: number,
): Promise<ColumnsSize | undefined> {
  return sizeOfExpressions(conditions, data, { mostRows, littleBytes: CONDITION_BYTES });
}

/** Returns how the columns are read beside those of a query's result, as {@link sizeOfColumns} does. */
export async function sizeBeside(
  { conditions, outside }: Pick<BuiltQuery, "conditions" | "outside">,
  data: Sampled,
): Promise<ColumnsSize | undefined> {
  const all = await sizeOfConditions(conditions, data);
  const rest = await sizeOfConditions(outside.fields, data, outside.rows);
  if (all === undefined || rest === undefined) return all ?? rest;
  return {
    width: all.width + rest.width,
    batchRows: Math.min(all.batchRows, rest.batchRows),
    readAheadBytes: all.readAheadBytes + rest.readAheadBytes,
  };
}
