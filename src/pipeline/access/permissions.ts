import { setImmediate as turn } from "node:timers/promises";
import { create, type DescMethodUnary, type MessageShape } from "@bufbuild/protobuf";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import type { Access, Authorizer, Properties, Siblings } from "../../namespace/authorizer.ts";
import { type Call, copyCall } from "../../namespace/call/call.ts";
import { type Action, isReadAction, type Principal, ROLES } from "../../namespace/call/principal.ts";
import { isLanceError, LanceError } from "../../namespace/errors.ts";
import type { Backend } from "../../namespace/lance-namespace.ts";
import { OPERATIONS } from "../../namespace/operations/operations.ts";
import type { ObjectKind, Touch } from "../../namespace/operations/touch.ts";
import { callBackend, type Databases, databaseOf, nameOfUnnamed } from "../call/databases.ts";
import type { Interceptor, OperationRequest } from "../call/interceptor.ts";

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

const { describeNamespace, describeTable } = LanceNamespaceService.method;

/**
 * Creates the function that looks up the properties of an object, by a description that only the gateway sees. An object that
 * does not exist has none. Each object is looked up once for a call.
 *
 * @throws LanceError ServiceUnavailable if the backend cannot tell, for whatever reason: its text could say that the object exists.
 */
export function createPropertyLookup(
  databases: Databases,
): (call: Call, touch: Touch) => Promise<Properties> {
  const backend = callBackend(databases);
  const ofCalls = new WeakMap<Call, Map<string, Promise<Properties>>>();

  async function describe<M extends DescMethodUnary>(
    call: Call,
    method: M,
    { id, database = call.database }: Touch,
    options: object = {},
  ): Promise<MessageShape<M["output"]>> {
    const own = copyCall(call, { method, id, database, takes: undefined, responseHeaders: {} });
    const message = create(method.input, { id: [...id], ...options } as never);
    const request = { kind: "unary", operation: method.localName, message };
    return (await backend(own, request as unknown as OperationRequest)) as never;
  }

  async function lookUp(call: Call, touch: Touch): Promise<Properties> {
    try {
      const { properties } =
        touch.kind === "Table"
          ? await describe(call, describeTable, touch, { vendCredentials: false })
          : await describe(call, describeNamespace, touch);
      return properties;
    } catch (error) {
      if (isMissing(error)) return {};
      call.log.warn({ err: error }, "cannot look up an object's properties for the policies");
      throw new LanceError("ServiceUnavailable", "cannot look up an object's properties", {
        cause: error,
      });
    }
  }

  return (call, touch) => {
    const known = ofCalls.get(call) ?? new Map<string, Promise<Properties>>();
    ofCalls.set(call, known);
    const key = JSON.stringify([touch.kind, touch.database, touch.id]);
    const found = known.get(key) ?? lookUp(call, touch);
    known.set(key, found);
    return found;
  };
}

/** Whether an error says that an object, or the namespace around it, does not exist. */
function isMissing(error: unknown): boolean {
  return isLanceError(error, "TableNotFound") || isLanceError(error, "NamespaceNotFound");
}

/** Header of a request that asks what its caller may do to the object of the call; its value is {@link ASKS}. */
const ASKING_HEADER = "x-lance-gateway-tell";
const ASKS = "permissions";

/** Header of the answer: the kinds of operations that the caller may do to the object, separated by commas. */
const PERMISSIONS_HEADER = "x-lance-gateway-permissions";

/** Header of the answer: who the caller is, as policies name it, encoded as a part of an address. */
const PRINCIPAL_HEADER = "x-lance-gateway-principal";

/** Header of the answer: the name of the backend whose database has the object, for example `glue`. */
const BACKEND_HEADER = "x-lance-gateway-backend";

/** Header of the answer: the operations that the backend does not support, separated by commas. */
const UNSUPPORTED_HEADER = "x-lance-gateway-unsupported";

/** Header of the answer on a root that the caller may list: where the backend has the data, encoded as a part of an address. */
const STORAGE_HEADER = "x-lance-gateway-storage";

/** Header of the answer: the version of the gateway. */
const VERSION_HEADER = "x-lance-gateway-version";

/** Header of the answer: the largest Arrow body of an upload to the database, in bytes. */
const UPLOAD_HEADER = "x-lance-gateway-max-upload-bytes";

/**
 * Tells a caller that asks for it what it may do to the object of its call, who it is, what the object's backend cannot do, where
 * it has its data, and how much its database takes in an upload, so that a user interface can leave out the rest. Roles or policies decide; a kind is listed if every operation of it is allowed.
 *
 * @param isReadOnly whether the gateway refuses everything that writes.
 * @param version the gateway's. Default: it is not told.
 */
export function tellPermissions(isReadOnly: boolean, databases: Databases, version?: string): Interceptor {
  const possible = ROLES.owner.filter((action) => !isReadOnly || isReadAction(action));

  async function tell(call: Call): Promise<void> {
    const allowed: Action[] = [];
    for (const action of possible) {
      if (call.may === undefined || (await call.may(action))) allowed.push(action);
    }
    call.responseHeaders[PERMISSIONS_HEADER] = allowed.join(", ");
    const { principal } = call;
    if (principal !== undefined)
      call.responseHeaders[PRINCIPAL_HEADER] = encodeURIComponent(`${principal.by}:${principal.name}`);
    const { backend, limits } = databaseOf(databases, call);
    call.responseHeaders[BACKEND_HEADER] = backend.name;
    call.responseHeaders[UNSUPPORTED_HEADER] = unsupportedBy(backend).join(", ");
    if (backend.place !== undefined && call.id.length === 0 && allowed.includes("list"))
      call.responseHeaders[STORAGE_HEADER] = encodeURIComponent(backend.place);
    if (version !== undefined) call.responseHeaders[VERSION_HEADER] = version;
    call.responseHeaders[UPLOAD_HEADER] = String(limits.maxUploadBytes);
    // The header is also an entry of the message.
    call.takes = undefined;
  }

  return (call, request, next) =>
    call.headers[ASKING_HEADER] === ASKS ? tell(call).then(() => next(call, request)) : next(call, request);
}

function unsupportedBy({ operations }: Backend): string[] {
  return Object.keys(LanceNamespaceService.method).filter((name) => !Object.hasOwn(operations, name));
}
