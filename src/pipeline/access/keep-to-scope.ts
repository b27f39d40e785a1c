import type { Message } from "@bufbuild/protobuf";
import type { Call } from "../../namespace/call/call.ts";
import type { Identifier } from "../../namespace/identifier.ts";
import { OPERATIONS } from "../../namespace/operations/operations.ts";
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
    const { principal, id, database = unnamed } = call;
    // The names of the list of databases begin with those of databases.
    const root = database === undefined || database === "" ? [] : [database];
    if (principal?.scope !== undefined && !isWithin(principal.scope, root, call, request))
      throw refusal(call, call.method.name, OPERATIONS[request.operation].action, id);
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
  const { isConfined, event } = OPERATIONS[operation];
  if (!isConfined || location !== "") return false;
  const covers = (object: Identifier) => isInScope(scope, [...root, ...object]);
  if (!covers(call.id)) return false;
  if (event !== "table.renamed") return true;
  const parent = newNamespaceId.length > 0 ? newNamespaceId : call.id.slice(0, -1);
  return covers([...parent, newTableName ?? ""]);
}

/** Whether a scope has an object, whose names begin with that of its database if databases have names. */
export function isInScope(scope: readonly Identifier[], object: Identifier): boolean {
  return scope.some((prefix) => startsWith(object, prefix));
}

function startsWith(object: Identifier, prefix: Identifier): boolean {
  return prefix.every((name, at) => object[at] === name);
}
