import type { Authorizer, CatalogObject } from "../../namespace/authorizer.ts";
import { ownerKey } from "../../namespace/call/caller-key.ts";
import { isOwnerOfAll } from "../../namespace/call/principal.ts";
import { LanceError } from "../../namespace/errors.ts";
import { actionOf } from "../../namespace/operations/actions.ts";
import type { Databases } from "../call/databases.ts";
import type { Interceptor } from "../call/interceptor.ts";
import { refusal } from "./authorize.ts";

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
