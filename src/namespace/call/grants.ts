import { isJsonObject } from "../../runtime/text.ts";
import { type Principal, ROLE_NAMES, type Role } from "./principal.ts";

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

type Claims = Readonly<Record<string, unknown>>;

/** Returns a claim by its name, or by a path with dots such as `realm_access.roles`; undefined if there is none. */
export function claimAt(claims: Claims, name: string): unknown {
  if (Object.hasOwn(claims, name)) return claims[name];
  return name
    .split(".")
    .reduce<unknown>(
      (value, key) => (isJsonObject(value) && Object.hasOwn(value, key) ? value[key] : undefined),
      claims,
    );
}

/** Returns the texts of a claim, which may be a single value or a list; numbers and booleans count as their text. */
export function textsOf(value: unknown): readonly string[] {
  return [value].flat().flatMap((each) => {
    const isScalar = typeof each === "string" || typeof each === "number" || typeof each === "boolean";
    return isScalar ? [String(each)] : [];
  });
}
