import { hash } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import {
  DescribeTableRequestSchema,
  type DescribeTableResponse,
} from "../../gen/lance/namespace/v1/table_pb.ts";
import { type Call, copyCall } from "../../namespace/call/call.ts";
import { type Flight, startFlight } from "../../namespace/call/flight.ts";
import { demandsFreshness, endsHere, FRESHNESS_HEADERS } from "../../namespace/call/headers.ts";
import { expiryOf } from "../../namespace/credential-options.ts";
import { isLanceError, LanceError } from "../../namespace/errors.ts";
import { type Identifier, joinIdentifier } from "../../namespace/identifier.ts";
import type { Backend } from "../../namespace/lance-namespace.ts";
import { METHODS } from "../../namespace/operations/operations.ts";
import { putNewest } from "../../runtime/collections.ts";
import type { StorageOptions } from "../dir/stores/storage-options.ts";
import { createSharedRequests } from "./shared-requests.ts";

/** A table as the upstream catalog describes it to a caller. */
export interface DescribedTable {
  readonly id: Identifier;
  readonly location: string;
  readonly storageOptions: StorageOptions;
  readonly properties: Readonly<Record<string, string>>;
  /** Whether versions are committed by the upstream. */
  readonly isManaged: boolean;
  /** The whole answer. */
  readonly response: DescribeTableResponse;
}

/** Descriptions of tables, each for the caller who asked. */
export interface DescribedTables {
  /**
   * Describes a table for the caller of a call. Calls of the same caller share a request to the upstream if it is sent after each of them has come,
   * or within the allowed staleness.
   *
   * @param isNew whether a cached description does not do. Default: false
   * @throws LanceError the errors of the upstream
   */
  describe(call: Call, id: Identifier, isNew?: boolean): Promise<DescribedTable>;
  /** Forgets all descriptions of a table, or of the tables in a namespace, because a call changes it. */
  forget(id: Identifier): void;
}

/** A description of a table to a caller. */
interface Kept {
  readonly key: string;
  /** Name of the table. */
  readonly name: string;
  /** Default: it is on its way. */
  table: DescribedTable | undefined;
  /** When the request that it answers was sent, by the process's monotonic clock. */
  sentAt: number;
  /** When it is not used any more, by the same clock. */
  until: number;
  /** A request on its way, which calls without a usable description join. Default: there is none. */
  joinable: Sent | undefined;
}

/** A request that was sent, and when, by the process's monotonic clock. */
interface Sent {
  readonly flight: Flight<DescribedTable>;
  readonly sentAt: number;
}

/** Headers that upstreams get of one message or one attempt, and on which a description does not depend. */
const OF_MESSAGE: ReadonlySet<string> = new Set([
  "idempotency-key",
  "if-match",
  "if-none-match",
  "prefer",
  "traceparent",
  "tracestate",
  ...FRESHNESS_HEADERS,
]);

/** Time before the end of credentials from which on a description is not used any more, in milliseconds. */
const RENEW_BEFORE_MS = 60_000;

/** Maximum number of descriptions that are kept. */
const MAX_KEPT = 10_000;

/** Creates the descriptions of an upstream's tables. */
export function createDescribedTables(
  { operations: { describeTable } }: Backend,
  maxStalenessMs: number,
): DescribedTables {
  const kept = new Map<string, Kept>();
  const keysOf = new Map<string, Set<string>>();
  /** The number of names in `keysOf` below each namespace, by its name. */
  const below = new Map<string, number>();
  const requests = createSharedRequests<DescribedTable>();

  /** Counts a name below its namespaces. */
  function count(name: string, change: 1 | -1): void {
    const id = JSON.parse(name) as Identifier;
    for (let length = 0; length < id.length; length++) {
      const namespace = nameOf(id.slice(0, length));
      const names = (below.get(namespace) ?? 0) + change;
      if (names === 0) below.delete(namespace);
      else below.set(namespace, names);
    }
  }
  function forgetName(name: string): void {
    const keys = keysOf.get(name);
    if (keys === undefined) return;
    for (const key of keys) kept.delete(key);
    keysOf.delete(name);
    count(name, -1);
  }
  function drop({ key, name }: Kept): void {
    kept.delete(key);
    const keys = keysOf.get(name);
    keys?.delete(key);
    if (keys?.size === 0) forgetName(name);
  }
  /** Keeps a description that is on its way. `forget` takes it out, too, and it is never found then. */
  function begin(key: string, name: string): Kept {
    const never = Number.NEGATIVE_INFINITY;
    const entry: Kept = { key, name, table: undefined, sentAt: never, until: never, joinable: undefined };
    const oldest = putNewest(kept, key, entry, MAX_KEPT);
    const keys = keysOf.get(name);
    if (keys === undefined) count(name, 1);
    keysOf.set(name, (keys ?? new Set()).add(key));
    if (oldest !== undefined) drop(oldest);
    return entry;
  }
  /** Returns how long a description may be used, in milliseconds. */
  function useOf({ storageOptions }: DescribedTable): number {
    const expires = expiryOf(storageOptions);
    return expires === undefined
      ? maxStalenessMs
      : Math.min(maxStalenessMs, expires - RENEW_BEFORE_MS - Date.now());
  }
  async function ask(call: Call, id: Identifier): Promise<DescribedTable> {
    if (describeTable === undefined)
      throw new LanceError("Unsupported", "the upstream catalog does not describe tables");
    const request = create(DescribeTableRequestSchema, { id: [...id], vendCredentials: true });
    const response = await describeTable(request, callOfGateway(call, METHODS.describeTable, id));
    return describedTable(id, response);
  }
  /** Sends a request, whose answer is kept unless the table is forgotten in the meantime. */
  function send(key: string, id: Identifier, call: Call): Flight<DescribedTable> {
    const noteDecision = () => {};
    if (maxStalenessMs <= 0)
      return startFlight(call, (own) => ask(own, id), { onAbandoned() {}, noteDecision });
    const entry = kept.get(key) ?? begin(key, nameOf(id));
    const sentAt = performance.now();
    const endJoining = () => {
      if (entry.joinable?.flight === flight) entry.joinable = undefined;
    };
    async function fetch(own: Call): Promise<DescribedTable> {
      try {
        const table = await ask(own, id);
        // The answer to a later request may have been faster.
        if (sentAt >= entry.sentAt) Object.assign(entry, { table, sentAt, until: sentAt + useOf(table) });
        return table;
      } catch (error) {
        if ((entry.table === undefined || isDenial(error)) && kept.get(key) === entry) drop(entry);
        throw error;
      } finally {
        endJoining();
      }
    }
    // Later calls may join it, whose deadlines are later. It ends with the last of them.
    const open = copyCall(call, { deadline: undefined });
    const flight = startFlight(open, fetch, { onAbandoned: endJoining, noteDecision });
    entry.joinable ??= { flight, sentAt };
    return flight;
  }
  /** Waits for a description on its way, if the allowed staleness lets a call use it. Its failure leaves the call to ask for itself. */
  async function join(flight: Flight<DescribedTable>, call: Call): Promise<void> {
    try {
      await flight.wait(call);
    } catch {
      call.signal.throwIfAborted();
    }
  }
  return {
    async describe(call, id, isNew = false) {
      const key = `${callerOf(call)} ${nameOf(id)}`;
      const isDemanding = demandsFreshness(call.headers);
      if (!isNew && !isDemanding) {
        const came = performance.now();
        const entry = kept.get(key);
        const isUsable = () => entry?.table !== undefined && came < entry.until;
        const { flight, sentAt = 0 } = entry?.joinable ?? {};
        if (flight !== undefined && !isUsable() && came < sentAt + maxStalenessMs) await join(flight, call);
        if (entry?.table !== undefined && isUsable()) return entry.table;
      }
      // The upstream may heed the demand, too.
      const demands = isDemanding ? JSON.stringify(FRESHNESS_HEADERS.map((name) => call.headers[name])) : "";
      return requests.ask(key + demands, call, (own) => send(key, id, own));
    },
    forget(id) {
      const own = nameOf(id);
      forgetName(own);
      if (!below.has(own)) return;
      const start = id.length === 0 ? "[" : `${own.slice(0, -1)},`;
      for (const name of keysOf.keys()) if (name.startsWith(start)) forgetName(name);
    },
  };
}

/** Returns a call of the gateway's own with the identity of a caller. */
export function callOfGateway(call: Call, method: Call["method"], id: Identifier): Call {
  const headers: Record<string, string> = Object.create(null);
  for (const name in call.headers) {
    if (name === "idempotency-key" || name === "prefer" || name.startsWith("if-")) continue;
    headers[name] = call.headers[name] as string;
  }
  return copyCall(call, { method, id, headers, takes: undefined, responseHeaders: {} });
}

const NO_SIGNAL = new AbortController().signal;

/** Returns a call of the gateway's own for a job, with the identity of the caller whose call has started the job. It has no end. */
export function callOfJob(call: Call, id: Identifier): Call {
  const own = callOfGateway(call, METHODS.describeTable, id);
  return copyCall(own, {
    signal: NO_SIGNAL,
    deadline: undefined,
    decisions: [],
    note() {},
    holdBody() {},
    releaseBody() {},
  });
}

/** Reads a table out of an answer. @throws LanceError Internal without a location */
export function describedTable(
  id: Identifier,
  response: Pick<DescribeTableResponse, "location" | "storageOptions" | "properties" | "managedVersioning">,
): DescribedTable {
  const { location, storageOptions, properties, managedVersioning = false } = response;
  if (location === undefined || location === "") {
    throw new LanceError(
      "InvalidTableState",
      `the upstream catalog has no location for ${joinIdentifier(id)}`,
    );
  }
  return {
    id,
    location,
    storageOptions,
    properties,
    isManaged: managedVersioning,
    response: response as DescribeTableResponse,
  };
}

/** Returns a text that is equal for calls of the same caller alone: it depends on everything that the upstream may ask for. */
export function callerOf({ headers, identity, brought, principal, peer }: Call): string {
  const isOwn = endsHere(headers);
  const pairs = Object.entries(headers).filter(([name]) => !OF_MESSAGE.has(name) && !isOwn(name));
  const who = principal === undefined ? [peer] : [principal.by, principal.name];
  // A token that ends at the gateway may be exchanged for one of the upstream.
  const credentials = [identity, brought].map((each) => [each?.apiKey, each?.authToken]);
  return hash("sha256", JSON.stringify([who, credentials, pairs.sort()]), "base64");
}

/** Whether an error says that the upstream does not let the caller have the table any more. */
function isDenial(error: unknown): boolean {
  return (["TableNotFound", "NamespaceNotFound", "PermissionDenied", "Unauthenticated"] as const).some(
    (name) => isLanceError(error, name),
  );
}

/** Unlike the joined names, it is another text for each identifier. */
function nameOf(id: Identifier): string {
  return JSON.stringify(id);
}
