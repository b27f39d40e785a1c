import { fieldNamed } from "../../../../arrow/field-path.ts";
import { rowWidth } from "../../../../arrow/row-width.ts";
import type { ArrowField } from "../../../../arrow/schema.ts";
import { dataBytes, splitIpcFile } from "../../../../arrow/stream.ts";
import type { BuiltQuery } from "../query/build.ts";
import { MANY_NAMES, OF_RESULTS } from "../query/columns.ts";
import type { Guarded } from "../tables/guarded.ts";
import { isBlob } from "./expected-width.ts";

/** Number of rows that are read at each place. The parts of a batch without rows weigh little against so many. */
const ROWS = 4;

/** The places that are read, as parts of the table. A single wide row in one of them does not count. */
const PLACES = [0, 1 / 2, 1] as const;

/**
 * Returns the number of bytes of a row in memory, in those columns of a result whose types do not say it: the median of three places of the
 * table. The size of the files says little, because a text that repeats itself has a thousandth of its size there.
 *
 * @throws LanceError the errors of `wait`
 */
export async function sampledWidth({ columns }: Pick<BuiltQuery, "columns">, data: Guarded): Promise<number> {
  const { fields } = await data.schema();
  const names = guessedColumns(columns, fields);
  const rows = await data.rowCount();
  if (names.length === 0 || rows === 0) return 0;
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
  return data.wait(() => data.widths.sampled(columns ?? "", read).catch(() => 0));
}

/** Returns the columns in a result that have no fixed width; of all columns, if the result has computed ones. */
function guessedColumns(columns = "", fields: readonly ArrowField[]): string[] {
  const names = columns.split("\n").filter((name) => name !== "" && !OF_RESULTS.has(name));
  const named = names.map((name) => fieldNamed(fields, name));
  const chosen = columns === "" ? fields : named.every((field) => field !== undefined) ? named : fields;
  return chosen
    .filter((field) => !isBlob(field) && !rowWidth({ fields: [field] }).exact)
    .map(({ name }) => name);
}
