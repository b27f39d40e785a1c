import { LanceDbService } from "../../gen/lance/gateway/v1/lancedb_pb.ts";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import { actionOf } from "../../namespace/actions.ts";
import type { Access, Authorizer } from "../../namespace/authorizer.ts";
import type { Call } from "../../namespace/call.ts";
import type { Touch } from "../../namespace/objects.ts";
import type { Databases } from "../databases.ts";

/** Decides about the objects of calls. */
export interface Permissions {
  /** Whether the caller of a call may do something; the answer is synchronous if the authorizer's is. */
  allow(call: Call, touch: Touch): boolean | Promise<boolean>;
  /** Name of the database of a call, as permissions know it. */
  databaseOf(call: Call): string | undefined;
}

/** The methods of the contract and of LanceDB's own routes, by operation. */
export const METHODS = { ...LanceNamespaceService.method, ...LanceDbService.method };

/** Creates the decisions about the calls to databases. */
export function createPermissions(authorizer: Authorizer, databases: Databases): Permissions {
  const unnamed = nameOfUnnamed(databases);

  function databaseOf({ database }: Call): string | undefined {
    return database ?? unnamed;
  }

  return {
    databaseOf,
    allow(call, { operation, kind, id }) {
      if (call.principal === undefined) return false;
      const method = METHODS[operation];
      const object = { kind, database: databaseOf(call), id };
      const access: Access = { operation: method.name, action: actionOf(method), object };
      return authorizer.allows(call.principal, access);
    },
  };
}

/** Returns the name of the database of calls that name none, which may have a name all the same. */
function nameOfUnnamed(databases: Databases): string | undefined {
  const names = [...databases.keys()].filter((name) => name !== undefined);
  if (names.length === 0) return undefined;
  const database = databases.get(undefined);
  return names.find((name) => databases.get(name) === database) ?? "";
}
