import type { Message } from "@bufbuild/protobuf";
import type { Authorizer, CatalogObject } from "../../namespace/authorizer.ts";
import type { Call } from "../../namespace/call/call.ts";
import { ownerKey } from "../../namespace/call/caller-key.ts";
import { isOwnerOfAll } from "../../namespace/call/principal.ts";
import { LanceError } from "../../namespace/errors.ts";
import type { Identifier } from "../../namespace/identifier.ts";
import { actionOf } from "../../namespace/operations/method-facts.ts";
import { OPERATIONS } from "../../namespace/operations/operations.ts";
import { type Databases, nameOfUnnamed } from "../call/databases.ts";
import type { Interceptor, OperationRequest } from "../call/interceptor.ts";
import { refusal } from "./authorize-objects.ts";

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

/**
 * Refuses callers who are not owners of the whole gateway: the role owner without a scope, and, where something else decides than roles, its
 * permission for each database. A caller that creates keys can give itself every role, so that a permission for one database does not suffice.
 */
export function ownersOnly(authorizer: Authorizer | undefined, databases: Databases): Interceptor {
  const objects = objectsOfOwners(databases);
  return async (call, request, next) => {
    const { principal, method } = call;
    const action = actionOf(method);
    if (principal === undefined || !isOwnerOfAll(principal))
      throw refusal({ database: undefined }, method.name, action, []);
    for (const object of objects) {
      if (authorizer === undefined) break;
      if (!(await authorizer.allows(principal, { operation: method.name, action, object })))
        throw refusal(object, method.name, action, []);
    }
    return next(call, request);
  };
}

/** Returns the objects on each of which owners must have a permission, where something else decides than roles: all databases. */
export function objectsOfOwners(databases: Databases): readonly CatalogObject[] {
  const named = [...databases.keys()].filter((name) => name !== undefined && name !== "");
  const names = named.length === 0 ? [undefined] : named;
  return names.map((database) => ({ kind: "Database", database, id: [] }));
}

/** Refuses a call that presents what belongs to another caller, before it learns anything of its object. */
export const keepOwners: Interceptor = (call, request, next) => {
  if (call.heldBy !== undefined && call.heldBy !== ownerKey(call))
    throw new LanceError("PermissionDenied", "the ticket belongs to another caller");
  return next(call, request);
};
