import { rowWidth } from "../../../../arrow/bit-width.ts";
import { fieldNamed } from "../../../../arrow/field-path.ts";
import { dataBytes, splitIpcFile } from "../../../../arrow/ipc/stream.ts";
import type { ArrowField, ArrowSchema } from "../../../../arrow/schema.ts";
import { BLOB_TYPE, EXTENSION } from "../../format/files/blob-files.ts";
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
