import { setImmediate as turn } from "node:timers/promises";
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
  /**
   * Whether the caller of a call may do each of several things. Long work yields the event loop.
   *
   * @throws the reason for which the call was aborted.
   */
  allowEach(call: Call, touches: readonly Touch[]): Promise<readonly boolean[]>;
  /** Name of the database of a call, as permissions know it. */
  databaseOf(call: Call): string | undefined;
}

/** The methods of the contract and of LanceDB's own routes, by operation. */
export const METHODS = { ...LanceNamespaceService.method, ...LanceDbService.method };

/** Time for decisions before other calls get a turn, in milliseconds. */
const TURN_MS = 10;

/** Creates the decisions about the calls to databases. */
export function createPermissions(authorizer: Authorizer, databases: Databases): Permissions {
  const unnamed = nameOfUnnamed(databases);

  function databaseOf({ database }: Call): string | undefined {
    return database ?? unnamed;
  }

  function accessOf(call: Call, { operation, kind, id }: Touch): Access {
    const method = METHODS[operation];
    const object = { kind, database: databaseOf(call), id };
    return { operation: method.name, action: actionOf(method), object };
  }

  return {
    databaseOf,
    allow(call, touch) {
      return call.principal !== undefined && authorizer.allows(call.principal, accessOf(call, touch));
    },
    async allowEach(call, touches) {
      const { principal } = call;
      if (principal === undefined) return touches.map(() => false);
      const accesses = touches.map((touch) => accessOf(call, touch));
      if (authorizer.allowsEach !== undefined) return authorizer.allowsEach(principal, accesses);
      const decisions: boolean[] = [];
      let began = performance.now();
      for (const access of accesses) {
        const allowed = authorizer.allows(principal, access);
        decisions.push(typeof allowed === "boolean" ? allowed : await allowed);
        if (performance.now() - began < TURN_MS) continue;
        await turn();
        call.signal.throwIfAborted();
        began = performance.now();
      }
      return decisions;
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
