import type { CatalogState } from "../state/state.ts";

/** Changes whose verdicts the next commit removes. */
export interface Forgettable {
  add(changeId: string): void;
  /** Returns those whose verdicts a state has; the others have been removed. */
  in(state: Pick<CatalogState, "verdicts">): ReadonlySet<string>;
}

/** Creates an empty {@link Forgettable}. */
export function createForgettable(): Forgettable {
  const ids = new Set<string>();
  return {
    add(changeId) {
      ids.add(changeId);
    },
    in({ verdicts }) {
      for (const id of ids) if (!verdicts.has(id)) ids.delete(id);
      return new Set(ids);
    },
  };
}
