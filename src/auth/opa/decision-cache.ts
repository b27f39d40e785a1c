import { hash } from "node:crypto";
import type { Access } from "../../namespace/authorizer.ts";
import type { Principal } from "../../namespace/call/principal.ts";
import { keyOf, lineOf } from "../cedar/entities.ts";

/** Decisions of the last moments. */
export interface DecisionCache {
  /** Returns the decision about an access; undefined if there is none, or it is too old. */
  find(principal: Principal, access: Access): boolean | undefined;
  remember(principal: Principal, access: Access, allowed: boolean): void;
}

/** Maximum number of decisions that are remembered. */
const MAX_REMEMBERED = 100_000;

/** Creates an empty cache. @param maxAgeMs 0 remembers nothing. */
export function createDecisionCache(maxAgeMs: number): DecisionCache {
  const decisions = new Map<string, { readonly allowed: boolean; readonly until: number }>();
  const callers = new WeakMap<Principal, string>();

  /** Two principals with the same facts are the same caller. Each decision keeps the hash, and claims may be long. */
  function callerOf(principal: Principal): string {
    const known = callers.get(principal);
    if (known !== undefined) return known;
    const { by, name, role, groups, claims } = principal;
    const caller = hash("sha256", JSON.stringify([by, name, role, groups, claims]), "base64");
    callers.set(principal, caller);
    return caller;
  }

  function placeOf(principal: Principal, { operation, object }: Access): string {
    const [own] = lineOf(object);
    // A database may have the name of a namespace, and callers may ask about names with any character.
    return JSON.stringify([callerOf(principal), operation, object.database ?? "", own && keyOf(own)]);
  }

  return {
    find(principal, access) {
      if (maxAgeMs === 0) return undefined;
      const found = decisions.get(placeOf(principal, access));
      return found !== undefined && performance.now() < found.until ? found.allowed : undefined;
    },
    remember(principal, access, allowed) {
      if (maxAgeMs === 0) return;
      if (decisions.size >= MAX_REMEMBERED) decisions.clear();
      decisions.set(placeOf(principal, access), { allowed, until: performance.now() + maxAgeMs });
    },
  };
}
