import { inSlices, type Steps } from "../../../../runtime/pace.ts";
import type { CatalogState } from "./state.ts";

/** The state that work reads in steps has changed between two of them; the work starts again. */
export class StateChanged extends Error {}

/**
 * Runs steps that read a state, and lets waiting work run between them.
 *
 * @param revision the revision that the state must have. Default: its present one
 * @throws StateChanged if that work changes the state, or if it has changed already
 */
export async function inSlicesOn<T>(
  state: Pick<CatalogState, "revision">,
  steps: Steps<T>,
  revision = state.revision,
): Promise<T> {
  const check = () => {
    if (state.revision !== revision) throw new StateChanged("the state has changed between two steps");
  };
  check();
  return inSlices(steps, check);
}
