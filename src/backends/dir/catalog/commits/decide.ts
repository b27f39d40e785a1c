import { LanceError } from "../../../../namespace/errors.ts";
import { ITEMS_PER_STEP, type Steps, stepsOf } from "../../../../runtime/pace.ts";
import { rewrittenIds } from "../manifest/commit-base.ts";
import { createDraft, type Draft } from "../state/draft.ts";
import { checkGrowth, type PropertyLimits } from "../state/properties-size.ts";
import type { CatalogState } from "../state/state.ts";
import type { CatalogView, Changes } from "../state/view.ts";

/**
 * A change to the catalog: it reads and changes the draft, and returns the caller's answer. If it may read or change many
 * rows, it does so in steps: between two of them others may read the state.
 *
 * It throws LanceError to refuse, and then none of its changes counts. It may run several times, on different states,
 * and must decide consistently: random names are drawn outside of it.
 */
export type Mutation<T> = (draft: Draft) => T | Steps<T>;

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
 * Decides mutations in their order, in steps: each sees the changes of the earlier ones, and a refused one changes
 * nothing.
 *
 * @param kept ids of rows that must not be rewritten; a mutation that rewrites any of them is refused
 * @param limits a mutation that makes properties larger than these is refused
 */
export function* decide(
  state: CatalogView & Pick<CatalogState, "propertiesBytes">,
  mutations: readonly Mutation<unknown>[],
  kept: ReadonlySet<string>,
  limits: PropertyLimits,
): Steps<Decision> {
  const draft = createDraft(state);
  let properties = state.propertiesBytes;
  function* checked<T>(mutation: Mutation<T>, inner: Draft): Steps<T> {
    const answer = yield* stepsOf(mutation(inner));
    if (kept.size > 0 && rewrittenIds(draft, inner.changes).some((id) => kept.has(id))) {
      throw new LanceError(
        "Unsupported",
        "another program keeps values with this object that this version cannot keep when it is changed",
      );
    }
    properties += yield* checkGrowth(draft, inner.changes, properties, limits);
    return answer;
  }
  const outcomes: Outcome[] = [];
  for (const mutation of mutations) {
    try {
      const answer = yield* allOrNothing(draft, (inner) => checked(mutation, inner));
      outcomes.push({ answer });
    } catch (error) {
      outcomes.push({ error });
    }
  }
  return { outcomes, changes: draft.changes, recorded: draft.recorded };
}

/** Runs work on a draft of its own and adopts the changes and verdicts, unless the work throws. */
export function* allOrNothing<T>(draft: Draft, work: Mutation<T>): Steps<T> {
  const inner = createDraft(draft);
  const answer = yield* stepsOf(work(inner));
  let count = 0;
  for (const [objectId, row] of inner.changes) {
    if (row === undefined) draft.delete(objectId);
    else draft.put(row);
    if (++count % ITEMS_PER_STEP === 0) yield;
  }
  for (const [changeId, verdict] of inner.recorded) draft.record(changeId, verdict);
  return answer;
}
