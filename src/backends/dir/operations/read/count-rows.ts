import { sizeOfConditions } from "./columns-size.ts";
import { inRoom, type WaitingCall } from "./in-room.ts";
import type { Measured } from "./job-data.ts";

/**
 * Returns the number of rows that meet a checked condition. A count that reads wide columns takes a place in the memory for results.
 *
 * @param where undefined for all rows
 * @throws LanceError the errors of `wait` and of {@link inRoom}
 */
export async function countRows(
  data: Measured,
  where: string | undefined,
  waiting: WaitingCall,
): Promise<number> {
  if (where === undefined) return data.rowCount();
  const size = await sizeOfConditions([where], data);
  return inRoom(size?.readAheadBytes ?? 0, waiting, () => data.countRows(where, size?.width ?? 0));
}
