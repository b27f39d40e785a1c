import { engineCall } from "../../engine/failures/errors.ts";
import type { NativeTable } from "../../engine/native/native.ts";
import { countMatching } from "../../engine/passing-rows.ts";
import { createRowWidths } from "../../engine/row-widths.ts";
import { createVersionAnswers } from "../../engine/version-answers.ts";
import type { Guarded } from "../tables/call-data.ts";
import { inRoom, type WaitingCall } from "./memory-room.ts";
import { type Sampled, sizeOfConditions } from "./sampled-width.ts";

/** Data whose rows are counted and read for a width. */
export type Measured = Sampled & Pick<Guarded, "countRows">;

/** Returns the data of a table for work without a call, until a signal ends it. */
export function dataOfJob(table: NativeTable, signal: AbortSignal): Measured {
  const { schema, rowCount } = createVersionAnswers(table);
  return {
    table,
    schema: () => engineCall(schema),
    rowCount: () => engineCall(rowCount),
    countRows: (where, width) =>
      engineCall(async () =>
        countMatching(table, where, {
          width,
          tableRows: await rowCount(),
          timeoutMs: undefined,
          isWanted: () => !signal.aborted,
        }),
      ),
    widths: createRowWidths(),
    wait: engineCall,
  };
}

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
