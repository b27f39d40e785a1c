import type { Call } from "../../../../namespace/call/call.ts";
import { isOwnerOfAll } from "../../../../namespace/call/principal.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import type { StoredFunctions } from "../../jobs/functions/open-functions.ts";
import type { EngineContext } from "../context.ts";

/** Why calls about functions are refused where they are off. */
export const FUNCTIONS_OFF =
  "functions are Python, which this server does not run; its operator may have a Ray cluster run them (--functions on)";

/** @throws LanceError Unsupported where functions are off */
export function requireFunctions({ cluster }: Pick<EngineContext, "cluster">): StoredFunctions {
  if (cluster?.functions !== undefined) return cluster.functions;
  throw new LanceError("Unsupported", FUNCTIONS_OFF);
}

/**
 * Refuses a call that has a function run, or shows one, unless its caller has the role owner and no scope, also where policies give others
 * every right to the object: what a function may do does not end with it.
 *
 * @param what what is for owners, in the plural
 * @throws LanceError PermissionDenied
 */
export async function requireOwner({ may, principal }: Call, what = "functions"): Promise<void> {
  const isOwner = principal === undefined || isOwnerOfAll(principal);
  if (isOwner && (may === undefined || (await may("admin")))) return;
  throw new LanceError("PermissionDenied", `${what} are for owners of the whole catalog`);
}
