import { integersOf } from "../../../arrow/edit.ts";
import { decodeSchema } from "../../../arrow/schema.ts";
import { splitIpcFile } from "../../../arrow/stream.ts";
import { filteredRows } from "./filtered-rows.ts";
import type { NativeTable } from "./native.ts";

/**
 * Returns those of the given row ids whose rows meet a filter. The engine reads only these rows. Its Node API always filters before a search
 * for words alone, so the rows that it finds are looked up once more, as are milestones. As a column of the search, a filter would have another meaning: only in a
 * filter does the engine convert numbers and texts to the type of the column that they are compared with.
 *
 * @param batchRows maximum number of rows that the engine reads at a time
 * @param timeoutMs in milliseconds; undefined for no bound
 */
export async function passingRows(
  table: Pick<NativeTable, "query">,
  filter: string,
  ids: readonly bigint[],
  batchRows: number,
  timeoutMs: number | undefined,
): Promise<ReadonlySet<bigint>> {
  const passing = new Set<bigint>();
  if (ids.length === 0) return passing;
  const query = filteredRows(table, `_rowid IN (${ids.join(",")}) AND (${filter})`);
  const batches = await query.execute(Math.min(ids.length, batchRows), timeoutMs);
  for (let file = await batches.next(); file !== null; file = await batches.next()) {
    for (const id of rowIdsIn(file)) passing.add(id);
  }
  return passing;
}

/** Returns the row ids of a batch that has nothing else. */
export function rowIdsIn(file: Buffer): bigint[] {
  const { schemaMetadata, data } = splitIpcFile(file);
  const { fields } = decodeSchema(schemaMetadata);
  return data.flatMap((message) => integersOf(message, fields, 0));
}
