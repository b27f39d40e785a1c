import type { Authorizer } from "../../namespace/authorizer.ts";
import { actionOf } from "../../namespace/operations/actions.ts";
import type { Databases } from "../call/databases.ts";
import type { Interceptor } from "../call/interceptor.ts";
import { refusal } from "./authorize.ts";

/**
 * Refuses callers who are not owners of the whole gateway: the role owner without a scope, and, where something else decides than roles, its
 * permission for each database. A caller that creates keys can give itself every role, so that a permission for one database does not suffice.
 */
export function ownersOnly(authorizer: Authorizer | undefined, databases: Databases): Interceptor {
  const named = [...databases.keys()].filter((name) => name !== undefined && name !== "");
  const names = named.length === 0 ? [undefined] : named;
  return async (call, request, next) => {
    const { principal, method } = call;
    const action = actionOf(method);
    const isOwner = principal?.role === "owner" && principal.scope === undefined;
    if (!isOwner) throw refusal({ database: undefined }, method.name, action, []);
    for (const database of names) {
      const object = { kind: "Database", database, id: [] } as const;
      if (authorizer === undefined) break;
      if (!(await authorizer.allows(principal, { operation: method.name, action, object })))
        throw refusal({ database }, method.name, action, []);
    }
    return next(call, request);
  };
}
