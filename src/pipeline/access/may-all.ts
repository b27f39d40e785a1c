import type { Call } from "../../namespace/call/call.ts";
import type { Action } from "../../namespace/call/principal.ts";
import type { Identifier } from "../../namespace/identifier.ts";
import { OPERATION_NAMES, OPERATIONS } from "../../namespace/operations/operations.ts";
import type { ObjectKind, Touch } from "../../namespace/operations/touch.ts";
import type { Permissions } from "./permissions.ts";

/**
 * Whether the caller of a call may do every operation of a kind to a table, or to a namespace if tables have none of that kind: only
 * namespaces can be listed. Credentials for the files of a table are for callers who
 * may: the files cannot tell an insert from an update.
 */
export async function mayAll(
  permissions: Permissions,
  call: Call,
  id: Identifier,
  action: Action,
): Promise<boolean> {
  const ofTables = touchesOf("Table", action, id);
  const touches = ofTables.length > 0 ? ofTables : touchesOf("Namespace", action, id);
  return (await permissions.allowEach(call, touches)).every(Boolean);
}

function touchesOf(kind: ObjectKind, action: Action, id: Identifier): Touch[] {
  const operations = OPERATION_NAMES.filter(
    (operation) => OPERATIONS[operation].kind === kind && OPERATIONS[operation].action === action,
  );
  return operations.map((operation) => ({ operation, kind, id }));
}
