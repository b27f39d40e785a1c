import type { CreateViewRequest } from "../gen/lance/gateway/v1/sql_view_pb.ts";
import type { Call } from "./call/call.ts";
import { LanceError } from "./errors.ts";
import type { Identifier } from "./identifier.ts";

/** Returns the namespace of tables that the query of a new view names without one. It is checked there, and read there later. */
export function defaultNamespaceOf(
  { defaultNamespace, defaultRoot }: Pick<CreateViewRequest, "defaultNamespace" | "defaultRoot">,
  view: Identifier,
): Identifier {
  if (defaultRoot === true) return [];
  return defaultNamespace.length > 0 ? defaultNamespace : view.slice(0, -1);
}

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
