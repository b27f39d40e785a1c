import { randomBytes } from "node:crypto";
import type { Message } from "@bufbuild/protobuf";
import type { Authenticator } from "../auth/authenticator.ts";
import { AccessService } from "../gen/lance/gateway/v1/access_pb.ts";
import type { AccessAdministration, Authorizer } from "../namespace/authorizer.ts";
import { type Call, keepSignal } from "../namespace/call/call.ts";
import { LanceError } from "../namespace/errors.ts";
import { type ByteBudget, createByteBudget } from "../namespace/memory/byte-budget.ts";
import type { Service } from "../namespace/service.ts";
import type { Tracing } from "../runtime/tracing.ts";
import { authorize, authorizeObjects, hideExisting, readOnly } from "./access/authorize-objects.ts";
import { filterListings } from "./access/filter-listings.ts";
import { keepOwners, keepToScope, ownersOnly } from "./access/keep-to-scope.ts";
import { createPermissions, tellPermissions } from "./access/permissions.ts";
import { createTokenSeal } from "./access/token-seal.ts";
import { withholdCredentials } from "./access/withhold-credentials.ts";
import { callBackend, type Databases } from "./call/databases.ts";
import { enterDatabase } from "./call/enter-database.ts";
import { boundNames, refuseUnfitFields } from "./call/field-checks.ts";
import { createReceive, identify, refuseUnread } from "./call/identify.ts";
import {
  compose,
  exceptOwnKeys,
  type Interceptor,
  type Next,
  type OperationRequest,
  type Step,
} from "./call/interceptor.ts";
import { fitResponse } from "./call/negotiate.ts";
import { resolve } from "./call/resolve.ts";
import { chooseDatabase, type Route } from "./call/route.ts";
import { keepAnswers } from "./idempotency.ts";
import {
  type CallerCounters,
  type CallerLimits,
  callerBytes,
  limitAddresses,
  limitKnownCallers,
} from "./limits/caller-limits.ts";
import { limitConcurrency } from "./limits/concurrency.ts";
import { limitQueryRows } from "./limits/query-rows.ts";
import { admitUploads } from "./limits/uploads.ts";
import { type Announcements, announceChanges } from "./records/announce-changes.ts";
import { type AuditTrail, audit } from "./records/audit.ts";
import { type CallMetrics, observe } from "./records/observe.ts";
import { traceBackend, traceCalls } from "./records/trace.ts";

/** Options of {@link createService}. */
export interface ServiceOptions extends CallerLimits, CallerCounters {
  readonly databases: Databases;
  /** How calls name their database. Default: there is a single one, under the key `undefined`. */
  readonly routes?: readonly Route[] | undefined;
  /** Receives counts of the calls. Default: calls are not counted. */
  readonly metrics?: CallMetrics | undefined;
  /** Traces the calls. Default: calls are not traced. */
  readonly tracing?: Tracing | undefined;
  /** Receives a line about each call. Default: lines are not written. */
  readonly trail?: AuditTrail | undefined;
  /** Memory for the Arrow bodies of calls. Default: no bound. */
  readonly budget?: ByteBudget | undefined;
  /** Proves who calls; roles decide then what they may do. Default: everyone may do everything. */
  readonly authenticator?: Authenticator | undefined;
  /** Decides about single objects instead of roles. It needs an authenticator. Default: roles decide. */
  readonly authorizer?: Authorizer | undefined;
  /** Secret of the page tokens of filtered listings, which all gateways of a catalog share. Default: a random one. */
  readonly pageTokenSecret?: string | undefined;
  /** Answers operations on keys, roles and policies. Default: they are Unsupported. */
  readonly administration?: AccessAdministration | undefined;
  /** Whether everything that writes is refused. Default: false. */
  readonly readOnly?: boolean | undefined;
  /** Version of the gateway, for callers that ask. Default: it is not told. */
  readonly version?: string | undefined;
  /** Steps between the gateway's own ones and the backend, in order. Default: none. */
  readonly interceptors?: readonly Interceptor[] | undefined;
  /** Receives the changes that calls make. Default: nobody does. */
  readonly announcements?: Announcements | undefined;
}

/** Creates the pipeline: the chain of interceptors that every call passes, on every wire, and the backends at its end. */
export function createService(options: ServiceOptions): Service {
  const { databases, routes, tracing, authenticator, announcements } = options;
  const { interceptors = [] } = options;
  const { budget = createByteBudget() } = options;
  const arrivals = receiveCalls(options);
  const chain: readonly Step[] = [
    ...arrivals,
    ...(routes === undefined ? [] : [chooseDatabase(databases, routes)]),
    // A header names a database once.
    ...(routes?.some(({ by }) => by === "header") ? [] : [enterDatabase(databases)]),
    ...(authenticator === undefined ? [] : [keepToScope(databases), ...decideBy(options)].map(exceptOwnKeys)),
    ...(authenticator === undefined ? [] : [withholdCredentials(databases)]),
    ...(options.readOnly ? [readOnly] : []),
    tellPermissions(options.readOnly === true, databases, options.version),
    refuseUnfitFields,
    limitConcurrency(databases),
    admitUploads(databases, budget, callerBytes(options)),
    fitResponse(budget),
    keepAnswers(databases),
    ...(options.maxQueryRows === undefined ? [] : [limitQueryRows(options.maxQueryRows)]),
    ...(interceptors.length === 0 ? [] : [needMessages, ...interceptors]),
    // Behind every step that may answer by itself, which changes nothing.
    ...(announcements === undefined ? [] : [announceChanges(announcements)]),
    ...(tracing === undefined ? [] : [traceBackend(tracing, databases)]),
  ];
  const ofCatalogs = compose(chain, callBackend(databases));
  const ofGateway = compose([...arrivals, ...guardAccess(options)], callAdministration(options));
  const service = serviceOf((call, request) =>
    (call.method.parent === AccessService ? ofGateway : ofCatalogs)(call, request),
  );
  return authenticator === undefined ? service : { ...service, receive: createReceive(authenticator) };
}

/** Returns the first steps of every call: they record it, find out who calls, and refuse too many of them. */
function receiveCalls(options: ServiceOptions): readonly Step[] {
  const { databases, tracing, metrics, trail, authenticator } = options;
  return [
    ...(tracing === undefined ? [] : [traceCalls(tracing)]),
    observe(metrics),
    ...(trail === undefined ? [] : [audit(trail, databases)]),
    ...limitAddresses(options),
    boundNames,
    resolve,
    exceptOwnKeys(authenticator === undefined ? refuseUnread : identify(authenticator)),
    keepOwners,
    ...limitKnownCallers(options),
  ];
}

/** Returns the steps that keep keys, roles and policies for the owners of the gateway. They are not for a database. */
function guardAccess({ authenticator, authorizer, databases }: ServiceOptions): readonly Step[] {
  return authenticator === undefined ? [] : [ownersOnly(authorizer, databases)];
}

/** Creates the end of the chain of the operations that the gateway answers itself. */
function callAdministration({ administration }: ServiceOptions): Next {
  const handlers: Readonly<Record<string, unknown>> = { ...administration };
  return (call, { message }) => {
    const handler = handlers[call.method.localName] as Handler | undefined;
    if (handler === undefined)
      throw new LanceError(
        "Unsupported",
        `${call.method.name} is not served: this gateway does not manage access`,
      );
    call.admitted = true;
    return handler(message, call);
  };
}

type Handler = (message: Message, call: Call) => ReturnType<Next>;

/** Returns the steps that refuse what the caller may not do, and hide what it may not see. */
function decideBy({ authorizer, databases, pageTokenSecret }: ServiceOptions): readonly Step[] {
  if (authorizer === undefined) return [authorize];
  const permissions = createPermissions(authorizer, databases);
  const seal = createTokenSeal(pageTokenSecret ?? randomBytes(32).toString("base64url"));
  return [
    filterListings(permissions, databases, seal),
    authorizeObjects(permissions, databases),
    hideExisting(permissions),
  ];
}

/** Makes the backend return messages, which the interceptors after it may read and change, and the call one that they may copy. */
const needMessages: Interceptor = (call, request, next) => {
  call.takes = undefined;
  keepSignal(call);
  return next(call, request);
};

/** Creates the service for the wires from a chain. */
export function serviceOf(chain: Next): Service {
  return {
    unary: ({ localName: operation }, message, call) =>
      chain(call, { kind: "unary", operation, message } as OperationRequest) as Promise<never>,

    upload: ({ localName: operation }, message, data, call) =>
      chain(call, { kind: "upload", operation, message, data } as OperationRequest) as Promise<never>,

    // A stream that was opened is always read, so that interceptors see its end.
    async *download({ localName: operation }, message, call) {
      const response = await chain(call, { kind: "download", operation, message } as OperationRequest);
      yield* response as AsyncIterable<Message>;
    },
  };
}
