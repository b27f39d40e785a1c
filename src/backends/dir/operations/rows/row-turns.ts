import type { Call } from "../../../../namespace/call/call.ts";
import type { EarlyEnding } from "../../concurrency/early-end.ts";
import { inTurn } from "../../concurrency/in-turn.ts";
import { cancellationOf, untilAborted } from "../../concurrency/wait.ts";
import type { DataContext } from "../../data/data-context.ts";
import { objectIdOf } from "../tables/naming/object-names.ts";
import { isMain } from "../tables/open-data.ts";

/** Longest wait for the changes of other callers, in milliseconds; most changes take less than a tenth of this. */
const LONGEST_WAIT_MS = 1_000;

/**
 * Lets changes of existing rows of a table follow each other: of two at the same time the engine commits one, and computes
 * the other one again, which leaves behind a file of deleted rows that no version refers to. A change that takes long does
 * not hold up the others for more than a second. The next change may begin when the engine has committed one: each waits
 * for its own sync, and these are shared.
 *
 * @returns runs a change in its turn; throws LanceError Cancelled when the call ends first
 */
export function createRowTurns({ createLocks }: Pick<DataContext, "createLocks">) {
  const locks = createLocks("rows");
  return <T>(call: Call, branch: string | undefined, change: EarlyEnding<T>): Promise<T> => {
    const name = `${objectIdOf(call.id)}\0${isMain(branch) ? "" : branch}`;
    const work = inTurn(locks, name, LONGEST_WAIT_MS, async (endTurn) => {
      if (call.signal.aborted) throw cancellationOf(call.signal);
      return change(endTurn);
    });
    return untilAborted(work, call.signal);
  };
}
