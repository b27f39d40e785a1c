import type { Call } from "./call/call.ts";
import { LanceError } from "./errors.ts";

/**
 * Checks the query of the view that a call creates, with the rights of its caller, and returns the columns of its result: one encapsulated IPC
 * message, a schema.
 *
 * @throws LanceError Unsupported where nothing can check it, and those of the query
 */
export function planView({ planView: plan }: Pick<Call, "planView">): Promise<Uint8Array> {
  if (plan !== undefined) return plan();
  throw new LanceError("Unsupported", "views are created by servers with SQL and by statements in SQL");
}
