import type { DescMethodUnary, MessageShape } from "@bufbuild/protobuf";
import type { AccessService } from "../gen/lance/gateway/v1/access_pb.ts";
import type { Call } from "./call/call.ts";
import type { Action, Principal } from "./call/principal.ts";
import type { Identifier } from "./identifier.ts";
import type { ObjectKind } from "./operations/touch.ts";

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
  /** Looks up the properties of the object; one that does not exist has none. Default: it has none. */
  readonly properties?: (() => Promise<Properties>) | undefined;
}

/** Properties of a namespace or a table by name. */
export type Properties = Readonly<Record<string, string>>;

/** Decides about single objects. */
export interface Authorizer {
  /**
   * Whether a caller may do something. It depends on whether the object exists at most by the properties of the object. If no
   * decision can be made, the answer is no.
   *
   * @throws LanceError of looking up the properties, and ServiceUnavailable if nobody can be asked now.
   */
  allows(principal: Principal, access: Access): boolean | Promise<boolean>;
  /**
   * Whether a caller may do each of several things, in their order. Default: {@link allows} decides about each.
   *
   * @throws LanceError ServiceUnavailable if nobody can be asked now.
   */
  allowsEach?(principal: Principal, accesses: readonly Access[]): Promise<readonly boolean[]>;
  /**
   * Decides about all objects of a kind in a namespace at once, for long listings. Default: each is asked about.
   *
   * @param access the access to an object of this namespace with an empty name.
   * @returns undefined if each has to be asked about.
   */
  allowsSiblings?(principal: Principal, access: Access): Siblings | undefined;
  /** Makes a decision and says how. Default: it cannot say. */
  explain?(principal: Principal, access: Access): Promise<Decision>;
  /** Returns the rules by which it decides now. Default: it does not know them. */
  rules?(): readonly Rule[];
  close(): void;
}

/** A decision with its reasons. */
export interface Decision {
  readonly allowed: boolean;
  /** Names of the policies that decided; none if nothing allows the access. */
  readonly by: readonly string[];
  /** Failures of policies, each of which makes the answer no. */
  readonly errors: readonly string[];
}

/** A rule of an authorizer. */
export interface Rule {
  readonly name: string;
  readonly text: string;
}

/** The decision about the objects of a namespace. */
export interface Siblings {
  /** Whether the caller may do it to all except {@link exceptions}. */
  readonly allowed: boolean;
  /** Names with decisions of their own, in the order of JavaScript's `<`. */
  readonly exceptions: readonly string[];
  /** Decisions about the exceptions by their places, as far as they are known. The one that asks for another enters it. */
  readonly known: (boolean | undefined)[];
}

/** Name under which permissions know the only database of a gateway. */
export const ONLY_DATABASE = "default";

type Methods = (typeof AccessService)["method"];

/** The operations on keys, roles and policies, which the gateway answers itself. The pipeline has found that the caller is an owner. */
export type AccessAdministration = {
  readonly [K in keyof Methods]: Methods[K] extends DescMethodUnary<infer I, infer O>
    ? (request: MessageShape<I>, call: Call) => Promise<MessageShape<O>>
    : never;
};
