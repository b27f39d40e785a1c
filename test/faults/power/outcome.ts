import { type ErrorName, LanceError } from "../../../src/namespace/errors.ts";
import type { Observation } from "./observe.ts";
import { DifferentOutcomes } from "./side-by-side.ts";
import type { Scenario, World } from "./world.ts";

/** The refusal of a step, or the outcomes of changes that it makes side by side; undefined for an acknowledged step. */
export type Outcome = ErrorName | DifferentOutcomes | undefined;

/** Failures that a storage that reports its faults does not explain. */
const UNEXPECTED: readonly ErrorName[] = ["Internal", "DataLoss"];

/** Runs a step, and returns its outcome. @throws a failure that no fault explains */
export async function outcomeOf(step: Scenario["steps"][number], world: World): Promise<Outcome> {
  try {
    await step(world);
    return undefined;
  } catch (error) {
    if (error instanceof DifferentOutcomes) return error;
    if (error instanceof LanceError && !UNEXPECTED.includes(error.kind)) return error.kind;
    throw error;
  }
}

/**
 * Returns the states that the outcome of a step allows.
 *
 * @param isOpen whether a refusal leaves open what has happened. Default: OutcomeUnknown alone does
 */
export function statesAfter(
  outcome: Outcome,
  { between }: Scenario,
  earlier: Observation,
  later: Observation,
  isOpen = outcome === "OutcomeUnknown",
): readonly Observation[] {
  if (outcome === undefined) return [later];
  if (outcome instanceof DifferentOutcomes) return outcome.states(earlier);
  return isOpen ? [earlier, ...(between?.(earlier, later) ?? []), later] : [earlier];
}
