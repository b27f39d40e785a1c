import { integersOf } from "../../../arrow/edit.ts";
import { splitIpcFile } from "../../../arrow/ipc/stream.ts";
import { decodeSchema } from "../../../arrow/schema.ts";
import { filteredRows } from "./filtered-rows.ts";
import type { Milestones } from "./milestones.ts";
import type { NativeTable } from "./native/native.ts";

/**
 * Returns those of the given row ids whose rows meet a filter. The engine reads only these rows. Its Node API always filters before a search
 * for words alone, so the rows that it finds are looked up once more. As a column of the search, a filter would have another meaning: only in a
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

/**
 * Yields the ids of the rows that meet a costly condition, those of each batch of the engine, of which many have none. The engine stops if the
 * caller asks for no further batch.
 *
 * @param fast whether rows that an index for the condition does not have yet are left out
 */
export async function* costlyRows(
  table: Pick<NativeTable, "query">,
  where: string,
  milestones: Milestones,
  timeoutMs: number | undefined,
  fast = false,
): AsyncGenerator<readonly bigint[], void> {
  // An error of the engine must quote the condition without its milestones.
  await filteredRows(table, where).explainPlan(false);
  const query = filteredRows(table, milestones.where);
  if (fast) query.fastSearch();
  const batches = await query.execute(milestones.batchRows, timeoutMs);
  for (let file = await batches.next(); file !== null; file = await batches.next()) {
    const ids = rowIdsIn(file);
    const doubtful = ids.filter((id) => milestones.has(id));
    const passing = await passingRows(table, where, doubtful, milestones.batchRows, timeoutMs);
    yield ids.filter((id) => !milestones.has(id) || passing.has(id));
  }
}

function rowIdsIn(file: Buffer): bigint[] {
  const { schemaMetadata, data } = splitIpcFile(file);
  const { fields } = decodeSchema(schemaMetadata);
  return data.flatMap((message) => integersOf(message, fields, 0));
}
