import { randomUUID } from "node:crypto";
import type { Message } from "@bufbuild/protobuf";
import type { Call } from "../../namespace/call/call.ts";
import {
  type ChangeData,
  type ChangeEvent,
  type ChangeType,
  EVENT_PREFIX,
  type EventSink,
} from "../../namespace/change-event.ts";
import type { ErrorName } from "../../namespace/errors.ts";
import { type Identifier, joinIdentifier } from "../../namespace/identifier.ts";
import { OPERATIONS } from "../../namespace/operations/operations.ts";
import { reachOf } from "../../namespace/operations/reach.ts";
import type { AnyOperation, Lookups, ObjectKind } from "../../namespace/operations/touch.ts";
import type { Interceptor, OperationRequest } from "../call/interceptor.ts";
import { nameEntries } from "../call/resolve.ts";
import { failureOf } from "./observe.ts";

/** Where events go, and whose they are. */
export interface Announcements {
  readonly sink: EventSink;
  /** Name of the gateway in events. */
  readonly source: string;
}

/** Failures of a call after which its change may have been made. */
const UNCLEAR: ReadonlySet<ErrorName> = new Set([
  "OutcomeUnknown",
  "DeadlineExceeded",
  "Cancelled",
  "Internal",
  "DataLoss",
]);

/**
 * Announces the changes that calls make, after the backend has made them and before the answer goes out. A call whose
 * outcome is not known announces its changes, too, and says so; other failures have changed nothing.
 */
export function announceChanges({ sink, source }: Announcements): Interceptor {
  return async (call, request, next) => {
    // An interceptor of a user may have changed the operation.
    if (OPERATIONS[request.operation].event === undefined) return next(call, request);
    nameEntries(request);
    const changes = await changesOf(request.operation, request.message, call.id);
    const announce = (outcome: ChangeData["outcome"], response?: Message) =>
      sink.announce(changes.map((change) => eventOf(source, call, request, change, outcome, response)));
    // The answer has the version.
    call.takes = undefined;
    let response: Awaited<ReturnType<typeof next>>;
    try {
      response = await next(call, request);
    } catch (thrown) {
      if (UNCLEAR.has(failureOf(call, thrown).kind)) await announce("unknown");
      throw thrown;
    }
    await announce("done", response as Message);
    return response;
  };
}

function eventOf(
  source: string,
  call: Call,
  { message }: OperationRequest,
  { type, operation, id, to, entry }: Change,
  outcome: ChangeData["outcome"],
  response: Message | undefined,
): ChangeEvent {
  const own = entry === undefined ? message : entryOf(message, entry);
  const object = joinIdentifier(id);
  const isWhole = entry === undefined;
  return {
    specversion: "1.0",
    id: randomUUID(),
    source,
    type: `${EVENT_PREFIX}${type}`,
    subject: object,
    time: new Date().toISOString(),
    datacontenttype: "application/json",
    data: {
      database: call.database,
      object,
      to: to && joinIdentifier(to),
      operation: OPERATIONS[operation].method.name,
      outcome,
      version: versionIn(isWhole ? response : own),
      job: jobIn(response),
      mode: isWhole ? choiceIn(call, message, "mode") : undefined,
      behavior: isWhole ? choiceIn(call, message, "behavior") : undefined,
      request: call.requestId,
    },
  };
}

/** Returns an entry of a request that has several. */
function entryOf(message: Message, index: number): unknown {
  const { entries, operations } = message as Partial<Batch>;
  return entries?.[index] ?? operations?.[index]?.operation.value;
}

interface Batch extends Message {
  readonly entries: readonly unknown[];
  readonly operations: readonly { readonly operation: { readonly value?: unknown } }[];
}

/** Returns the version of a table that a message states: as its field, or as that of a whole version in it. */
function versionIn(message: unknown): number | undefined {
  const { version } = (message ?? {}) as { readonly version?: unknown };
  if (typeof version === "object" && version !== null) return versionIn(version);
  return typeof version === "bigint" ? Number(version) : undefined;
}

function jobIn(response: Message | undefined): string | undefined {
  const { jobId } = (response ?? {}) as { readonly jobId?: unknown };
  return typeof jobId === "string" && jobId !== "" ? jobId : undefined;
}

/** Returns the name of a choice in a request, in lower case; undefined if the request leaves it to the default. */
function choiceIn({ method }: Call, message: Message, name: string): string | undefined {
  const field = method.input.field[name];
  const value = (message as unknown as Readonly<Record<string, unknown>>)[name];
  if (field?.fieldKind !== "enum" || typeof value !== "number" || value === 0) return undefined;
  return field.enum.value[value]?.localName.toLowerCase();
}

/** Change of an object of the catalog. */
interface Change {
  readonly type: ChangeType;
  /** Operation that makes it; for an entry of a commit, the operation that the entry is. */
  readonly operation: AnyOperation;
  readonly kind: ObjectKind;
  readonly id: Identifier;
  /** New name of a renamed table. Default: it keeps its name. */
  readonly to?: Identifier | undefined;
  /** Place in the request of the entry that makes the change. Default: the whole request makes it. */
  readonly entry?: number | undefined;
}

/** No operation with a change needs a lookup for its own objects. */
const NO_LOOKUPS: Lookups = {
  tableOfJob: () => Promise.reject(new Error("a change of a job has no lookup")),
  contentsOf: () => Promise.reject(new Error("a change of a namespace has no lookup")),
  sourcesOf: () => [],
  tableAt: async () => undefined,
  rootTableAt: () => undefined,
};

/**
 * Returns the changes that a request makes if it succeeds, in their order: one for each of its own objects.
 * An entry of a commit is a change of its own.
 */
export async function changesOf(
  operation: AnyOperation,
  request: Message,
  id: Identifier,
): Promise<readonly Change[]> {
  const { own, more } = await reachOf(operation, request, id, NO_LOOKUPS);
  const { kind: kindOfCall, event } = OPERATIONS[operation];
  const isBatch = kindOfCall === "Database";
  const to = event === "table.renamed" ? more()[0]?.id : undefined;
  return own.flatMap(({ operation: each, kind, id: names }, entry) => {
    const type = OPERATIONS[each].event;
    if (type === undefined || kind === "Database") return [];
    return [{ type, operation: each, kind, id: names, to, entry: isBatch ? entry : undefined }];
  });
}
