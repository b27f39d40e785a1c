import { LanceError } from "../../../src/namespace/errors.ts";
import type { Observation } from "./observe.ts";

/** A change of a table's rows beside others. */
export interface RowChange {
  /** Its call, which has begun. */
  readonly call: Promise<unknown>;
  /** Ids of rows that it adds. Default: none. */
  readonly adds?: number;
  /** Ids of rows that it deletes. Default: none. */
  readonly deletes?: number;
}

/** Changes of one step had different outcomes. The cause is the first refusal. */
export class DifferentOutcomes extends Error {
  /** Returns the states that they allow, given the state before them. */
  readonly states: (before: Observation) => readonly Observation[];

  constructor(cause: unknown, states: DifferentOutcomes["states"]) {
    super("some changes were made and some were not", { cause });
    this.states = states;
  }
}

/**
 * Waits for changes of a table that are made at the same time, each acknowledged or refused for itself.
 *
 * @param object the object of the observation
 * @throws LanceError if none was made; {@link DifferentOutcomes} if some were, or may have been
 */
export async function sideBySide(object: string, changes: readonly RowChange[]): Promise<void> {
  const outcomes = await Promise.allSettled(changes.map(({ call }) => call));
  const made = changes.filter((_, i) => outcomes[i]?.status === "fulfilled");
  const refusals = outcomes.filter((outcome) => outcome.status === "rejected").map(({ reason }) => reason);
  if (refusals.length === 0) return;
  const open = changes.filter((_, i) => {
    const outcome = outcomes[i] as PromiseSettledResult<unknown>;
    return outcome.status === "rejected" && isOpen(outcome.reason);
  });
  if (made.length === 0 && open.length === 0) throw refusals[0];
  throw new DifferentOutcomes(refusals[0], (before) =>
    subsetsOf(open).map((also) => ({
      ...before,
      [object]: textAfter(before[object] as string, [...made, ...also]),
    })),
  );
}

function isOpen(reason: unknown): boolean {
  return reason instanceof LanceError && reason.kind === "OutcomeUnknown";
}

function subsetsOf<T>(items: readonly T[]): readonly (readonly T[])[] {
  const count = 2 ** items.length;
  return Array.from({ length: count }, (_, subset) => items.filter((_, i) => (subset >> i) & 1));
}

/** Returns the text of a table's observation after changes, each of which is a version. */
function textAfter(before: string, changes: readonly RowChange[]): string {
  const [, ids = "", properties = "", versions = ""] = /^(\S*) (.*) v(\S*) /.exec(before) ?? [];
  const deleted = new Set(changes.map(({ deletes }) => deletes));
  const added = changes.flatMap(({ adds }) => adds ?? []);
  const left = [...ids.split(",").filter(Boolean).map(Number), ...added].filter((id) => !deleted.has(id));
  const newest = versions.split(",").length;
  const all = Array.from({ length: newest + changes.length }, (_, i) => i + 1);
  return `${left.sort((a, b) => a - b)} ${properties} v${all} `;
}
