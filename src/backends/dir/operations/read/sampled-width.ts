import { rowWidth } from "../../../../arrow/bit-width.ts";
import { fieldNamed } from "../../../../arrow/field-path.ts";
import { dataBytes, splitIpcFile } from "../../../../arrow/ipc/stream.ts";
import type { ArrowField, ArrowSchema } from "../../../../arrow/schema.ts";
import { batchRowsOf, MAX_BATCH_ROWS } from "../../engine/row-widths.ts";
import { namedColumns } from "../../engine/sql/trees.ts";
import { BLOB_TYPE, EXTENSION } from "../../format/files/manifest.ts";
import type { BuiltQuery } from "../query/build.ts";
import { MANY_NAMES, OF_RESULTS } from "../query/clauses.ts";
import type { Guarded } from "../tables/call-data.ts";

/** Number of rows that are read at each place. The parts of a batch without rows weigh little against so many. */
const ROWS = 4;

/** The places that are read, as parts of the table. A single wide row in one of them does not count. */
const PLACES = [0, 1 / 2, 1] as const;

/** The data whose rows are read for a width. */
export type Sampled = Pick<Guarded, "schema" | "rowCount" | "table" | "widths" | "wait">;

/**
 * Returns the number of bytes of a row in memory, in those columns of a result whose types do not say it; see {@link sampleOf}.
 *
 * @throws LanceError the errors of `wait`
 */
export async function sampledWidth({ columns }: Pick<BuiltQuery, "columns">, data: Sampled): Promise<number> {
  return sampleOf(columnsOfResult(columns, (await data.schema()).fields), data);
}

/**
 * Returns the number of bytes of a row in memory, in those of the columns whose types do not say it: the median of three places of the
 * table. The size of the files says little, because a text that repeats itself has a thousandth of its size there.
 *
 * @throws LanceError the errors of `wait`
 */
export async function sampleOf(columns: readonly ArrowField[], data: Sampled): Promise<number> {
  const names = columns.filter(hasGuess).map(({ name }) => name);
  if (names.length === 0) return 0;
  const rows = await data.rowCount();
  if (rows === 0) return 0;
  const widthAt = async (place: number) => {
    const query = data.table.query();
    if (names.length <= MANY_NAMES) query.selectColumns(names);
    query.useLsm(false);
    query.limit(ROWS);
    query.offset(Math.floor(Math.max(0, rows - ROWS) * place));
    const batches = await query.execute(ROWS);
    let widest = 0;
    for (let file = await batches.next(); file !== null; file = await batches.next()) {
      const batch = splitIpcFile(file);
      if (batch.rows > 0) widest = Math.max(widest, dataBytes(batch) / batch.rows);
    }
    return widest;
  };
  const read = async () => {
    const [, middle] = (await Promise.all(PLACES.map(widthAt))).sort((a, b) => a - b);
    return middle as number;
  };
  // Rows that the engine cannot read must not fail a query that does not ask for them.
  return data.wait(() => data.widths.sampled(keyOf(names, rows), read).catch(() => 0));
}

/** Names a sample, which is read again when a table has doubled: the first rows need not be like the later ones. */
function keyOf(names: readonly string[], rows: number): string {
  return [Math.floor(Math.log2(rows)), ...(names.length <= MANY_NAMES ? names : [])].join("\n");
}

/** Whether the type of a column does not say how wide its values are. */
function hasGuess(field: ArrowField): boolean {
  return !isBlob(field) && !rowWidth({ fields: [field] }).exact;
}

/** Returns the columns of the table that are in a result; all columns, if the result has computed ones. */
function columnsOfResult(columns = "", fields: readonly ArrowField[]): readonly ArrowField[] {
  const names = columns.split("\n").filter((name) => name !== "" && !OF_RESULTS.has(name));
  const named = names.map((name) => fieldNamed(fields, name));
  if (columns === "") return fields;
  return named.every((field) => field !== undefined) ? named : fields;
}

/**
 * Returns the number of bytes that a row of a result is expected to have: as many as in the widest recent result with these columns, or
 * at first as many as a row of the whole table has by types and by the size of the data files.
 *
 * @throws LanceError the errors of `wait`
 */
export async function expectedWidth(
  { columns }: Pick<BuiltQuery, "columns">,
  data: Guarded,
): Promise<number> {
  const known = data.widths.of(columns);
  if (known !== undefined) return known;
  const schema = await data.schema();
  const width = Math.max(rowWidth(schema).bytes, await data.averageRow());
  if (hasLargeValues(columns, schema)) data.widths.expect(columns, width);
  return width;
}

/**
 * Whether most bytes of the table may be in these columns. Otherwise narrow results prove that others are narrow, too; here a reader
 * could ask for narrow rows first, and then for many wide ones at once.
 */
function hasLargeValues(columns: string | undefined, { fields }: ArrowSchema): boolean {
  if (columns === "") return !fields.some(isBlob) || fields.some(hasBinary);
  return (columns ?? "").split("\n").some((name) => {
    if (name === "" || OF_RESULTS.has(name)) return false;
    const field = fieldNamed(fields, name);
    return field === undefined || hasBinary(field);
  });
}

function hasBinary(field: ArrowField): boolean {
  if (isBlob(field)) return false;
  return /^(?:large_)?binary/.test(field.type.name) || field.children.some(hasBinary);
}

/** Whether results have the place of a value instead of its bytes. */
function isBlob({ metadata }: ArrowField): boolean {
  return metadata[EXTENSION] === BLOB_TYPE;
}

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
