import { inSlices, type Steps } from "../../../namespace/pace.ts";
import type { CatalogState } from "./state.ts";

/** The state that work reads in steps has changed between two of them; the work starts again. */
export class StateChanged extends Error {}

/**
 * Runs steps that read a state, and lets waiting work run between them.
 *
 * @throws StateChanged if that work changes the state
 */
export function inSlicesOn<T>(state: Pick<CatalogState, "revision">, steps: Steps<T>): Promise<T> {
  const { revision } = state;
  return inSlices(steps, () => {
    if (state.revision !== revision) throw new StateChanged("the state has changed between two steps");
  });
}
