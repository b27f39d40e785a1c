import { setImmediate as turn } from "node:timers/promises";
import type { Access, Authorizer, Siblings } from "../../namespace/authorizer.ts";
import type { Call } from "../../namespace/call/call.ts";
import type { Principal } from "../../namespace/call/principal.ts";
import { OPERATIONS } from "../../namespace/operations/operations.ts";
import type { ObjectKind, Touch } from "../../namespace/operations/touch.ts";
import { type Databases, nameOfUnnamed } from "../call/databases.ts";
import { createPropertyLookup } from "./property-lookup.ts";

/** Decides about the objects of calls. */
export interface Permissions {
  /** Whether the caller of a call may do something; the answer is synchronous if the authorizer's is. */
  allow(call: Call, touch: Touch): boolean | Promise<boolean>;
  /**
   * Whether the caller of a call may do each of several things. The answer about a few is synchronous if the authorizer's are. Long work
   * yields the event loop.
   *
   * @throws the reason for which the call was aborted.
   */
  allowEach(call: Call, touches: readonly Touch[]): readonly boolean[] | Promise<readonly boolean[]>;
  /** Decides about the objects in the object of the call at once; undefined if each has to be asked about. */
  allowSiblings(call: Call, operation: Touch["operation"], kind: ObjectKind): Siblings | undefined;
  /** Name of the database of a call, as permissions know it. */
  databaseOf(call: Call): string | undefined;
}

/** Time for decisions before other calls get a turn, in milliseconds. */
const TURN_MS = 10;

/** Decisions that are made at a time; properties may have to be looked up for each. */
const AT_ONCE = 16;

/** Creates the decisions about the calls to databases. */
export function createPermissions(authorizer: Authorizer, databases: Databases): Permissions {
  const unnamed = nameOfUnnamed(databases);
  const propertiesOf = createPropertyLookup(databases);

  function databaseOf({ database }: Call): string | undefined {
    return database ?? unnamed;
  }

  /** Returns the object of a touch; an entry of the list of databases is the database itself. */
  function objectOf(call: Call, { kind, id, database = databaseOf(call) }: Touch): Access["object"] {
    const [name] = id;
    return database === "" && name !== undefined && name !== ""
      ? { kind: "Database", database: name, id: id.slice(1) }
      : { kind, database, id };
  }

  function accessOf(call: Call, touch: Touch): Access {
    const { method, action } = OPERATIONS[touch.operation];
    return {
      operation: method.name,
      action,
      object: objectOf(call, touch),
      properties: () => propertiesOf(call, touch),
    };
  }

  function decideAtOnce(
    principal: Principal,
    accesses: readonly Access[],
  ): readonly boolean[] | Promise<readonly boolean[]> {
    const made = accesses.map((access) => authorizer.allows(principal, access));
    return made.every(isMade) ? made : Promise.all(made);
  }

  async function decideInTurns(call: Call, principal: Principal, accesses: readonly Access[]) {
    const decisions: boolean[] = [];
    let began = performance.now();
    for (let at = 0; at < accesses.length; at += AT_ONCE) {
      decisions.push(...(await decideAtOnce(principal, accesses.slice(at, at + AT_ONCE))));
      if (performance.now() - began < TURN_MS) continue;
      await turn();
      call.signal.throwIfAborted();
      began = performance.now();
    }
    return decisions;
  }

  return {
    databaseOf,
    allow(call, touch) {
      return call.principal !== undefined && authorizer.allows(call.principal, accessOf(call, touch));
    },
    allowSiblings(call, operation, kind) {
      if (call.principal === undefined) return undefined;
      return authorizer.allowsSiblings?.(
        call.principal,
        accessOf(call, { operation, kind, id: [...call.id, ""] }),
      );
    },
    allowEach(call, touches) {
      const { principal } = call;
      if (principal === undefined) return touches.map(() => false);
      const accesses = touches.map((touch) => accessOf(call, touch));
      if (authorizer.allowsEach !== undefined) return authorizer.allowsEach(principal, accesses);
      return accesses.length <= AT_ONCE
        ? decideAtOnce(principal, accesses)
        : decideInTurns(call, principal, accesses);
    },
  };
}

function isMade(answer: boolean | Promise<boolean>): answer is boolean {
  return typeof answer === "boolean";
}
