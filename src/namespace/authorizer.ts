import type { Identifier } from "./identifier.ts";
import type { ObjectKind } from "./objects.ts";
import type { Action, Principal } from "./principal.ts";

/** An object of a catalog, as permissions name it. */
export interface CatalogObject {
  readonly kind: ObjectKind;
  /** Name of its database; undefined for the only one of a gateway, and empty for the list of databases. */
  readonly database: string | undefined;
  /** Names from the root of the database downwards. */
  readonly id: Identifier;
}

/** An operation that a caller wants to do to an object. */
export interface Access {
  /** Name of the operation in the contract, for example `QueryTable`. */
  readonly operation: string;
  /** Kind of the operation. */
  readonly action: Action;
  readonly object: CatalogObject;
}

/** Decides about single objects. */
export interface Authorizer {
  /**
   * Whether a caller may do something. It does not depend on whether the object exists. If no decision can be made, the answer is
   * no.
   *
   * @throws LanceError ServiceUnavailable if nobody can be asked now.
   */
  allows(principal: Principal, access: Access): boolean | Promise<boolean>;
  /**
   * Whether a caller may do each of several things, in their order. Default: {@link allows} decides about each.
   *
   * @throws LanceError ServiceUnavailable if nobody can be asked now.
   */
  allowsEach?(principal: Principal, accesses: readonly Access[]): Promise<readonly boolean[]>;
  close(): void;
}

/** Name under which permissions know the only database of a gateway. */
export const ONLY_DATABASE = "default";
