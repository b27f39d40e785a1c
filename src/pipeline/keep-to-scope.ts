import type { Message } from "@bufbuild/protobuf";
import { actionOf } from "../namespace/actions.ts";
import type { Call } from "../namespace/call.ts";
import type { Identifier } from "../namespace/identifier.ts";
import { isConfined } from "../namespace/objects.ts";
import { refusal } from "./authorize.ts";
import type { Interceptor } from "./interceptor.ts";

/**
 * Refuses the calls of a restricted credential that reach any object outside of its scope. An operation that may reach others than
 * its request names is refused as a whole.
 */
export const keepToScope: Interceptor = (call, request, next) => {
  const { principal, method, id } = call;
  if (principal?.scope !== undefined && !isWithin(principal.scope, call, request.operation, request.message))
    throw refusal(call, method.name, actionOf(method), id);
  return next(call, request);
};

interface Reaching {
  readonly newNamespaceId?: readonly string[];
  readonly newTableName?: string;
  readonly location?: string;
}

function isWithin(scope: readonly Identifier[], call: Call, operation: string, message: Message): boolean {
  const { newNamespaceId = [], newTableName, location = "" } = message as Message & Reaching;
  // A location may be that of another table.
  if (!isConfined(operation) || location !== "") return false;
  const root = call.database === undefined ? [] : [call.database];
  const covers = (object: Identifier) => scope.some((prefix) => startsWith([...root, ...object], prefix));
  if (!covers(call.id)) return false;
  if (operation !== "renameTable") return true;
  const parent = newNamespaceId.length > 0 ? newNamespaceId : call.id.slice(0, -1);
  return covers([...parent, newTableName ?? ""]);
}

function startsWith(object: Identifier, prefix: Identifier): boolean {
  return prefix.every((name, at) => object[at] === name);
}
