import type { Call } from "../../namespace/call/call.ts";
import type { Action } from "../../namespace/call/roles.ts";
import type { Identifier } from "../../namespace/identifier.ts";
import { OPERATION_NAMES, OPERATIONS } from "../../namespace/operations/operations.ts";
import type { Touch } from "../../namespace/operations/touch.ts";
import type { Permissions } from "./permissions.ts";

/**
 * Whether the caller of a call may do every operation of a kind to a table. Credentials for the files of a table are for callers who
 * may: the files cannot tell an insert from an update.
 */
export async function mayAll(
  permissions: Permissions,
  call: Call,
  id: Identifier,
  action: Action,
): Promise<boolean> {
  const operations = OF_TABLES.filter((operation) => OPERATIONS[operation].action === action);
  const touches = operations.map((operation): Touch => ({ operation, kind: "Table", id }));
  return (await permissions.allowEach(call, touches)).every(Boolean);
}

const OF_TABLES = OPERATION_NAMES.filter((operation) => OPERATIONS[operation].kind === "Table");
