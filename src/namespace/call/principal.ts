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
