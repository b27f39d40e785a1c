import { isJsonObject } from "../../runtime/text.ts";
import type { Identifier } from "../identifier.ts";

/** Way in which a caller proves its name. */
export type Proof = "api-key" | "oidc" | "kubernetes" | "mtls";

/** The caller of a call, as far as it has proved who it is. */
export interface Principal {
  readonly by: Proof;
  /** Name of the caller; two ways of proof may give different callers the same name. */
  readonly name: string;
  /** Public id of the credential, for the log. */
  readonly credentialId: string;
  readonly role: Role;
  /** Groups that the credential puts the caller in. */
  readonly groups: readonly string[];
  /** Facts that the credential states, such as the claims of a verified token. */
  readonly claims: Readonly<Record<string, unknown>>;
  /** Objects, with everything below them, that the credential is restricted to. Default: it is not restricted. */
  readonly scope?: readonly Identifier[] | undefined;
}

/** Whether a caller has the role of an owner for the whole gateway. */
export function isOwnerOfAll({ role, scope }: Principal): boolean {
  return role === "owner" && scope === undefined;
}

/** Kinds of operations, by which permissions are given. */
export type Action =
  /** Names of objects. */
  | "list"
  /** Facts about objects, without their rows. */
  | "describe"
  /** Rows, and what is computed from them. */
  | "read"
  /** New tables, and changes of what is in a table: rows, columns, indices, versions, tags and branches. */
  | "write"
  /** Objects that appear, disappear or move as a whole. */
  | "manage"
  /** The service itself. */
  | "admin";

const READS: ReadonlySet<Action> = new Set<Action>(["list", "describe", "read"]);

/** Whether operations of a kind change nothing. */
export function isReadAction(action: Action): boolean {
  return READS.has(action);
}

/** Roles, and the kinds of operations that each allows. */
export const ROLES = {
  owner: ["list", "describe", "read", "write", "manage", "admin"],
  writer: ["list", "describe", "read", "write"],
  reader: ["list", "describe", "read"],
  none: [],
} as const satisfies Readonly<Record<string, readonly Action[]>>;

/** Name of a role. */
export type Role = keyof typeof ROLES;

/** Names of the roles, the mightiest first. */
export const ROLE_NAMES = Object.keys(ROLES) as readonly Role[];

/** Whether a principal's role allows a kind of operation. */
export function allows({ role }: { readonly role: Role }, action: Action): boolean {
  return (ROLES[role] as readonly Action[]).includes(action);
}

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
