import type { AccessService } from "../../gen/lance/gateway/v1/access_pb.ts";
import type { DriverService } from "../../gen/lance/gateway/v1/driver_pb.ts";
import type { LanceDbService } from "../../gen/lance/gateway/v1/lancedb_pb.ts";
import type { ViewService } from "../../gen/lance/gateway/v1/sql_view_pb.ts";
import type { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import type { CreateMaterializedViewRequest } from "../../gen/lance/namespace/v1/view_pb.ts";
import { checkIdentifier, type Identifier } from "../identifier.ts";

/** Kind of an object. A view is a table. */
export type ObjectKind = "Database" | "Namespace" | "Table";

export type Methods = (typeof LanceNamespaceService)["method"] &
  (typeof LanceDbService)["method"] &
  (typeof ViewService)["method"] &
  (typeof DriverService)["method"] &
  (typeof AccessService)["method"];
/** Name of an operation of the contract, of LanceDB's own routes of the drivers of jobs or of the gateway itself, for example `describeTable`. */
export type AnyOperation = keyof Methods;

/** An operation on an object, as far as the database of the call determines it. */
export interface Touch {
  readonly operation: AnyOperation;
  readonly kind: ObjectKind;
  readonly id: Identifier;
  /** Name of its database. Default: that of the call. */
  readonly database?: string;
  /** Whether the request does not name the object, so that a refusal must not either. Default: false. */
  readonly unnamed?: boolean;
}

export type Touches = readonly Touch[];

/** Facts that the request of a call does not contain. */
export interface Lookups {
  /** Returns the table of a job; undefined for a missing one, and for one that the caller may not see. */
  tableOfJob(jobId: string): Promise<Identifier | undefined>;
  /** Returns everything below a namespace with the operations that remove it; nothing for one that does not exist. */
  contentsOf(namespace: Identifier): Promise<Touches>;
  /**
   * Returns the tables that a new view reads.
   *
   * @throws LanceError PermissionDenied if the backend cannot tell, and that of a view that it refuses.
   */
  sourcesOf(view: CreateMaterializedViewRequest): readonly Identifier[];
  /**
   * Returns the table that is the source of a clone; undefined if there is none.
   *
   * @throws LanceError PermissionDenied if the backend cannot tell
   */
  tableAt(place: string): Promise<Identifier | undefined>;
  /** Returns the table of the root to which a location belongs by its name, whether there is one or not; undefined for others. */
  rootTableAt(location: string): Identifier | undefined;
}

/** Returns an operation on an object; without a name, that is the database. */
export function objectOf(operation: AnyOperation, kind: ObjectKind, id: Identifier): Touch {
  return kind === "Database" || id.length === 0
    ? { kind: "Database", operation, id: [] }
    : { kind, operation, id };
}

/** @throws LanceError InvalidInput for a name that no table can have. */
export function table(operation: AnyOperation, id: Identifier): Touch {
  // A name with a delimiter would mean another object to another server.
  checkIdentifier(id);
  return objectOf(operation, "Table", id);
}

export function namespace(operation: AnyOperation, id: Identifier): Touch {
  return objectOf(operation, "Namespace", id);
}
