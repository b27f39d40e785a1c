import { type Access, ONLY_DATABASE } from "../../namespace/authorizer.ts";
import type { Principal } from "../../namespace/call/principal.ts";
import { keyOf, lineOf, userOf } from "../cedar/entities.ts";

/** Returns the input of a question: a caller, and everything that it wants to do. The names are those of Cedar's entities. */
export function inputOf(principal: Principal, accesses: readonly Access[]): object {
  const { by, name, role, groups, claims } = principal;
  return {
    principal: { id: userOf(principal).id, by, name, role, groups, claims },
    accesses: accesses.map(accessOf),
  };
}

function accessOf({ operation, action, object }: Access): object {
  const line = lineOf(object);
  const database = object.database ?? ONLY_DATABASE;
  return {
    action: { id: operation, kind: action },
    resource: {
      ...line[0],
      name: object.id.at(-1) ?? database,
      path: object.id,
      database,
      // As with Cedar's `in`, an object is within itself.
      within: line.map(keyOf),
    },
  };
}

/**
 * Returns whether each access of a question is allowed: the result names the positions of those that are. No result at all allows
 * nothing.
 *
 * @throws Error for a result that names anything else.
 */
export function decisionsIn(result: unknown, count: number): boolean[] {
  const decisions = new Array<boolean>(count).fill(false);
  if (result === undefined) return decisions;
  if (!Array.isArray(result)) throw new Error("the result is not a list of positions");
  for (const position of result) {
    if (!Number.isInteger(position) || position < 0 || position >= count)
      throw new Error(
        `the result has ${JSON.stringify(position)}, which is not a position of input.accesses`,
      );
    decisions[position] = true;
  }
  return decisions;
}
