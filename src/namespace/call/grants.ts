import { claimAt, textsOf } from "./claims.ts";
import type { Principal } from "./principal.ts";
import { ROLE_NAMES, type Role } from "./roles.ts";

/** A role for the callers that something is true of. */
export interface Grant {
  readonly role: Role;
  readonly to:
    | { readonly kind: "anyone" }
    /** The name, a group, or a scope of a token. */
    | { readonly kind: "name" | "group" | "scope"; readonly value: string }
    /** A claim that is the value, or a list with it. */
    | { readonly kind: "claim"; readonly claim: string; readonly value: string };
}

/** Facts about a caller that grants go by. */
export type Facts = Pick<Principal, "name" | "groups" | "claims">;

/** Returns the mightiest role that grants give to a caller. Default: `none`. */
export function roleOf(grants: readonly Grant[], facts: Facts): Role {
  const given = new Set(grants.filter(({ to }) => applies(to, facts)).map(({ role }) => role));
  return ROLE_NAMES.find((role) => given.has(role)) ?? "none";
}

function applies(to: Grant["to"], { name, groups, claims }: Facts): boolean {
  switch (to.kind) {
    case "anyone":
      return true;
    case "name":
      return name === to.value;
    case "group":
      return groups.includes(to.value);
    case "scope":
      return scopesOf(claims).includes(to.value);
    case "claim":
      return textsOf(claimAt(claims, to.claim)).includes(to.value);
  }
}

/** Returns the scopes of a token, which some issuers write as a list, or into `scp`. */
function scopesOf({ scope, scp }: Facts["claims"]): readonly string[] {
  return [...textsOf(scope), ...textsOf(scp)].flatMap((text) => text.split(" "));
}
