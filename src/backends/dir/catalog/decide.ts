import { LanceError } from "../../../namespace/errors.ts";
import { createDraft, type Draft } from "./draft.ts";
import { rewrittenIds } from "./foreign-values.ts";
import type { CatalogView, Changes } from "./view.ts";

/**
 * A change to the catalog: it reads and changes the draft, and returns the caller's answer.
 *
 * It throws LanceError to refuse, and then none of its changes counts. It may run several times, on different states,
 * and must decide consistently: random names are drawn outside of it.
 */
export type Mutation<T> = (draft: Draft) => T;

/** The answer to the caller of a mutation, or its failure. */
export type Outcome = { readonly answer: unknown } | { readonly error: unknown };

/** Result of a group of mutations. */
export interface Decision {
  /** In the order of the mutations. */
  readonly outcomes: readonly Outcome[];
  /** The changes of all mutations that succeed. */
  readonly changes: Changes;
  /** The verdicts that these mutations record. */
  readonly recorded: Draft["recorded"];
}

/**
 * Decides mutations in their order: each sees the changes of the earlier ones, and a refused one changes nothing.
 *
 * @param kept ids of rows that must not be rewritten; a mutation that rewrites any of them is refused
 */
export function decide(
  state: CatalogView,
  mutations: readonly Mutation<unknown>[],
  kept: ReadonlySet<string>,
): Decision {
  const draft = createDraft(state);
  const outcomes = mutations.map((mutation): Outcome => {
    try {
      return { answer: allOrNothing(draft, (inner) => checked(mutation, draft, inner, kept)) };
    } catch (error) {
      return { error };
    }
  });
  return { outcomes, changes: draft.changes, recorded: draft.recorded };
}

/** Runs work on a draft of its own and adopts the changes and verdicts, unless the work throws. */
export function allOrNothing<T>(draft: Draft, work: (inner: Draft) => T): T {
  const inner = createDraft(draft);
  const answer = work(inner);
  for (const [objectId, row] of inner.changes) {
    if (row === undefined) draft.delete(objectId);
    else draft.put(row);
  }
  for (const [changeId, verdict] of inner.recorded) draft.record(changeId, verdict);
  return answer;
}

function checked<T>(mutation: Mutation<T>, before: Draft, inner: Draft, kept: ReadonlySet<string>): T {
  const answer = mutation(inner);
  if (kept.size > 0 && rewrittenIds(before, inner.changes).some((id) => kept.has(id))) {
    throw new LanceError(
      "Unsupported",
      "another program keeps values with this object that this version cannot keep when it is changed",
    );
  }
  return answer;
}
