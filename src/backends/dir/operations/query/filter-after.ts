import { integersOf } from "../../../../arrow/edit.ts";
import { decodeSchema } from "../../../../arrow/schema.ts";
import { splitIpcFile } from "../../../../arrow/stream.ts";
import type { NativeTable } from "../../engine/native.ts";
import type { NativeQuery } from "../../engine/native-query.ts";

/**
 * Builds the query for the ids of the rows that meet a filter. The engine's Node API always filters before a search for words alone, so
 * the rows that it finds are looked up once more. As a column of the search, a filter would have another meaning: only in a filter does the engine
 * convert numbers and texts to the type of the column that they are compared with.
 */
export function filteredRows(table: Pick<NativeTable, "query">, filter: string): NativeQuery {
  const query = table.query();
  query.onlyIf(filter);
  query.selectColumns([]);
  query.withRowId();
  query.useLsm(false);
  return query;
}

/**
 * Returns those of the given row ids whose rows meet a filter. The engine reads only these rows.
 *
 * @param timeoutMs in milliseconds; undefined for no bound
 */
export async function passingRows(
  table: Pick<NativeTable, "query">,
  filter: string,
  ids: readonly bigint[],
  timeoutMs: number | undefined,
): Promise<ReadonlySet<bigint>> {
  const passing = new Set<bigint>();
  if (ids.length === 0) return passing;
  const query = filteredRows(table, `_rowid IN (${ids.join(",")}) AND (${filter})`);
  const batches = await query.execute(ids.length, timeoutMs);
  for (let file = await batches.next(); file !== null; file = await batches.next()) {
    const { schemaMetadata, data } = splitIpcFile(file);
    const { fields } = decodeSchema(schemaMetadata);
    for (const message of data) for (const id of integersOf(message, fields, 0)) passing.add(id);
  }
  return passing;
}
