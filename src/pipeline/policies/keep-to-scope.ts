import type { Message } from "@bufbuild/protobuf";
import { actionOf } from "../../namespace/actions.ts";
import type { Call } from "../../namespace/call.ts";
import type { Identifier } from "../../namespace/identifier.ts";
import { isConfined } from "../../namespace/reach.ts";
import { type Databases, nameOfUnnamed } from "../call/databases.ts";
import type { Interceptor, OperationRequest } from "../call/interceptor.ts";
import { refusal } from "./authorize.ts";

/**
 * Refuses the calls of a restricted credential that reach any object outside of its scope. An operation that may reach others than
 * its request names is refused as a whole.
 */
export function keepToScope(databases: Databases): Interceptor {
  const unnamed = nameOfUnnamed(databases);
  return (call, request, next) => {
    const { principal, method, id, database = unnamed } = call;
    // The names of the list of databases begin with those of databases.
    const root = database === undefined || database === "" ? [] : [database];
    if (principal?.scope !== undefined && !isWithin(principal.scope, root, call, request))
      throw refusal(call, method.name, actionOf(method), id);
    return next(call, request);
  };
}

interface Reaching {
  readonly newNamespaceId?: readonly string[];
  readonly newTableName?: string;
  readonly location?: string;
}

function isWithin(
  scope: readonly Identifier[],
  root: Identifier,
  call: Call,
  { operation, message }: OperationRequest,
): boolean {
  const { newNamespaceId = [], newTableName, location = "" } = message as Message & Reaching;
  // A location may be that of another table.
  if (!isConfined(operation) || location !== "") return false;
  const covers = (object: Identifier) => scope.some((prefix) => startsWith([...root, ...object], prefix));
  if (!covers(call.id)) return false;
  if (operation !== "renameTable") return true;
  const parent = newNamespaceId.length > 0 ? newNamespaceId : call.id.slice(0, -1);
  return covers([...parent, newTableName ?? ""]);
}

function startsWith(object: Identifier, prefix: Identifier): boolean {
  return prefix.every((name, at) => object[at] === name);
}
