import { CreateTableMode } from "../../gen/lance/namespace/v1/data_pb.ts";
import { CreateNamespaceMode } from "../../gen/lance/namespace/v1/namespace_pb.ts";
import type { Call } from "../../namespace/call/call.ts";
import { type Action, allows, isReadAction } from "../../namespace/call/principal.ts";
import { LanceError } from "../../namespace/errors.ts";
import { type Identifier, joinIdentifier } from "../../namespace/identifier.ts";
import { actionOf } from "../../namespace/operations/method-facts.ts";
import { OPERATION_NAMES, OPERATIONS } from "../../namespace/operations/operations.ts";
import { objectsById, reachOf } from "../../namespace/operations/reach.ts";
import type { ObjectKind, Touch } from "../../namespace/operations/touch.ts";
import type { Databases } from "../call/databases.ts";
import { type Interceptor, interceptOperations, onlyFor, type Step } from "../call/interceptor.ts";
import { nameEntries } from "../call/resolve.ts";
import { createLookups } from "./lookups.ts";
import type { Permissions } from "./permissions.ts";

/** Refuses the calls that the caller's role does not allow, before anything looks whether their object exists. */
export const authorize: Interceptor = (call, request, next) => {
  const { principal, method, id } = call;
  const action = actionOf(method);
  if (principal === undefined || !allows(principal, action)) throw refusal(call, method.name, action, id);
  call.may = (other) => allows(principal, other);
  return next(call, request);
};

/** Returns the error of a call that may not do something to an object; it says nothing else. */
export function refusal(
  { database }: Pick<Call, "database">,
  operation: string,
  action: Action,
  id: Identifier,
): LanceError {
  const object = [...(database === undefined ? [] : [database]), ...id];
  const place = object.length === 0 ? "the root" : joinIdentifier(object);
  return new LanceError("PermissionDenied", `${operation} (${action}) on ${place} is not allowed`);
}

/** Refuses every call that changes something, on every backend. */
export const readOnly = onlyFor(
  ({ action }) => !isReadAction(action),
  ({ method }) => {
    throw new LanceError("PermissionDenied", `the gateway is read-only: ${method.name} writes`);
  },
);

/**
 * Refuses the calls that do to one of their objects what the caller may not do. The objects are those of the parsed
 * request that the backend executes, and nothing looks before whether they exist.
 */
export function authorizeObjects(permissions: Permissions, databases: Databases): Step {
  const lookupsOf = createLookups(permissions, databases);

  async function check(call: Call, touches: readonly Touch[], own: readonly Touch[]): Promise<void> {
    const decisions = await permissions.allowEach(call, touches);
    const refused = touches.find((_, index) => decisions[index] !== true);
    if (refused !== undefined)
      throw refusalOf(call, (refused.unnamed === true ? own[0] : refused) ?? refused);
  }

  /** Returns the other objects that a request names; only a caller with a right to its own learns that their names are wrong. */
  async function namedBy(more: () => readonly Touch[], checkOwn: () => Promise<void>) {
    try {
      return more();
    } catch (error) {
      await checkOwn();
      throw error;
    }
  }

  /** Lets a call through. @param only its own object, unless it has several */
  function pass(only: Touch | undefined, ...[call, request, next]: Parameters<Interceptor>) {
    // About each of thousands of tables in a commit, it would be a hundred decisions.
    call.may = (action) => only !== undefined && mayAll(permissions, call, only.id, action);
    return next(call, request);
  }

  const checkAll: Step = async (call, request, next, others) => {
    nameEntries(request);
    const lookups = lookupsOf(call, others);
    const { own, more, find } = await reachOf(request.operation, request.message, call.id, lookups);
    await check(call, [...own, ...(await namedBy(more, () => check(call, own, own)))], own);
    if (find !== undefined) {
      const found = await find();
      await check(call, found, own);
      call.removable = new Set(found.map(({ id }) => joinIdentifier(id.slice(call.id.length))));
    }
    return pass(own.length === 1 ? own[0] : undefined, call, request, next);
  };

  return (call, request, next, others) => {
    const touches = objectsById(request.operation, OPERATIONS[request.operation], call.id);
    if (touches === undefined) return checkAll(call, request, next, others);
    const decide = (decisions: readonly boolean[]) => {
      const refused = touches.find((_, index) => decisions[index] !== true);
      if (refused === undefined) return pass(touches[0], call, request, next);
      throw refusalOf(call, refused);
    };
    const decisions = permissions.allowEach(call, touches);
    return decisions instanceof Promise ? decisions.then(decide) : decide(decisions);
  };
}

function refusalOf(call: Call, { operation, id }: Touch): LanceError {
  const { method, action } = OPERATIONS[operation];
  return refusal(call, method.name, action, id);
}

/**
 * Whether the caller of a call may do every operation of a kind to a table, or to a namespace if tables have none of that kind: only
 * namespaces can be listed. Credentials for the files of a table are for callers who
 * may: the files cannot tell an insert from an update.
 */
export async function mayAll(
  permissions: Permissions,
  call: Call,
  id: Identifier,
  action: Action,
): Promise<boolean> {
  const ofTables = touchesOf("Table", action, id);
  const touches = ofTables.length > 0 ? ofTables : touchesOf("Namespace", action, id);
  return (await permissions.allowEach(call, touches)).every(Boolean);
}

function touchesOf(kind: ObjectKind, action: Action, id: Identifier): Touch[] {
  const operations = OPERATION_NAMES.filter(
    (operation) => OPERATIONS[operation].kind === kind && OPERATIONS[operation].action === action,
  );
  return operations.map((operation) => ({ operation, kind, id }));
}

/**
 * Leaves the properties of an object that existed before out of the answer to a creation with EXIST_OK, unless the caller may
 * describe the object. The answer then has those of the request, whether the object is new or not.
 */
export function hideExisting(permissions: Permissions): Interceptor {
  async function answerTo<A extends object, P>(
    call: Call,
    description: Pick<Touch, "operation" | "kind">,
    properties: P,
    next: () => Promise<A>,
  ): Promise<A> {
    if (call.id.length === 0 || (await permissions.allow(call, { ...description, id: call.id })))
      return next();
    call.takes = undefined;
    return { ...(await next()), properties };
  }
  const hide = interceptOperations({
    createNamespace(call, request, next) {
      const { mode, properties } = request.message;
      const create = () => next(call, request);
      if (mode !== CreateNamespaceMode.EXIST_OK) return create();
      return answerTo(call, { operation: "describeNamespace", kind: "Namespace" }, properties, create);
    },
    createTable(call, request, next) {
      const { mode, properties } = request.message;
      const create = () => next(call, request);
      if (mode !== CreateTableMode.EXIST_OK) return create();
      return answerTo(call, { operation: "describeTable", kind: "Table" }, properties, create);
    },
  });
  return onlyFor(({ event }) => event === "namespace.created" || event === "table.created", hide);
}
