import { actionOf } from "../../namespace/actions.ts";
import type { Call } from "../../namespace/call.ts";
import { OBJECTS } from "../../namespace/objects.ts";
import type { Action } from "../../namespace/principal.ts";
import { METHODS, type Permissions } from "./permissions.ts";

/**
 * Whether the caller may do every operation of a kind to the table of the call. Credentials for the files of a table are
 * for callers who may: the files cannot tell an insert from an update.
 */
export async function mayAll(permissions: Permissions, call: Call, action: Action): Promise<boolean> {
  for (const operation of OF_TABLES) {
    if (actionOf(METHODS[operation]) !== action) continue;
    if (!(await permissions.allow(call, { operation, kind: "Table", id: call.id }))) return false;
  }
  return true;
}

const OF_TABLES = (Object.keys(OBJECTS) as (keyof typeof OBJECTS)[]).filter(
  (operation) => OBJECTS[operation].kind === "Table",
);
