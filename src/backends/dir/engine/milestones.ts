import { randomInt } from "node:crypto";
import { inSlices, type Steps } from "../../../runtime/pace.ts";
import { COSTLY_STEPS, costSteps, rowsOfSteps, stepsOf } from "./sql/costs.ts";
import { type SqlKnot, withoutBrackets } from "./sql/tree.ts";
import { treeSteps } from "./sql/trees.ts";

/*
 * The engine cannot stop a scan that has begun. It only reads no further if nobody asks for the next batch, and it gives none while no row meets the
 * condition. So a costly condition lets a row pass now and then that does not meet it, a milestone, and the gateway looks milestones up again.
 */

/** A costly condition of a scan with milestones. */
export interface Milestones {
  /** The condition that the rows of the scan and its milestones meet. */
  readonly where: string;
  /** Maximum number of rows that the engine reads at a time. */
  readonly batchRows: number;
  /** Returns whether the row of an id is a milestone, whether or not it meets the condition. */
  has(id: bigint): boolean;
}

/**
 * Returns milestones for a checked condition; undefined if it is not costly.
 *
 * @param steps number of steps of the condition, as {@link costSteps} says
 * @param mostRows number of rows that the engine reads at a time if the condition costs little
 */
export async function milestonesOf(
  where: string,
  steps: number,
  mostRows: number,
): Promise<Milestones | undefined> {
  if (steps < COSTLY_STEPS) return undefined;
  const batchRows = Math.min(mostRows, rowsOfSteps(steps));
  // An odd distance has rows in common with other distances, such as that of the even ids, by which a condition may choose its rows.
  const distance = batchRows | 1;
  // No condition can leave out the milestones of all queries.
  const first = randomInt(distance);
  const { cheap, costly } = await inSlices(partSteps(where));
  const some = `(cast(_rowid as bigint) % ${distance} = ${first} OR (${costly}))`;
  return {
    where: cheap === "" ? some : `${cheap} AND ${some}`,
    batchRows,
    has: (id) => id % BigInt(distance) === BigInt(first),
  };
}

/**
 * Splits a condition at its ANDs into a cheap part, which keeps the indices that answer it, and the rest. The cheap part is empty where no part is.
 */
function* partSteps(where: string): Steps<{ cheap: string; costly: string }> {
  const cheap: string[] = [];
  const costly: string[] = [];
  let [sum, next] = [0, 0];
  const { root, nodes, text, hasGaps } = yield* treeSteps(where);
  const whole = withoutBrackets(root);
  const parts = whole.kind === "operation" && whole.operator === "and" ? whole.operands : [whole];
  for (const { start, end } of parts) {
    const first = next;
    while (next < nodes.length && (nodes[next] as SqlKnot).at < end) next++;
    const steps = yield* stepsOf(nodes.slice(first, next), text);
    const isCheap = sum + steps < COSTLY_STEPS;
    if (isCheap) sum += steps;
    const part = where.slice(start, end);
    // The brackets around the whole have had the engine read it to its end.
    (isCheap ? cheap : costly).push(hasGaps ? `(${part})` : part);
  }
  return { cheap: cheap.join(" AND "), costly: costly.join(" AND ") };
}
