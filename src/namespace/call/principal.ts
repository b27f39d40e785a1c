import type { Identifier } from "../identifier.ts";
import type { Role } from "./roles.ts";

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
