import { joinIdentifier } from "../../../../namespace/identifier.ts";
import type { DataContext } from "../../data/data-context.ts";
import type { FoundTable, WorkPlace } from "../../data/table-source.ts";

/**
 * Does work on a table that takes long and commits. A drop of the table does not wait for the work, but its directory
 * stays until the work ends, also in other processes: otherwise the engine would commit to a new table that was created
 * in the same place. A deletion of the table's newest versions waits for it.
 *
 * @throws LanceError TableNotFound, if the table was dropped or replaced; the errors of `work`
 */
export async function duringWork<T>(
  { histories, tables }: Pick<DataContext, "histories" | "tables">,
  place: WorkPlace,
  work: (table: FoundTable) => Promise<T>,
): Promise<T> {
  return histories.pass(joinIdentifier(place.id), () => tables.duringWork(place, work));
}
