import { hash } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import {
  DescribeTableRequestSchema,
  type DescribeTableResponse,
} from "../../gen/lance/namespace/v1/table_pb.ts";
import { type Call, copyCall } from "../../namespace/call/call.ts";
import { demandsFreshness } from "../../namespace/call/freshness-headers.ts";
import { expiryOf } from "../../namespace/credential-options.ts";
import { LanceError } from "../../namespace/errors.ts";
import { type Identifier, joinIdentifier } from "../../namespace/identifier.ts";
import type { Backend } from "../../namespace/lance-namespace.ts";
import { METHODS } from "../../namespace/operations/operations.ts";
import { putNewest } from "../../runtime/put-newest.ts";
import type { StorageOptions } from "../dir/stores/storage-options.ts";

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
   * Describes a table for the caller of a call.
   *
   * @param isNew whether a cached description does not do. Default: false
   * @throws LanceError the errors of the upstream
   */
  describe(call: Call, id: Identifier, isNew?: boolean): Promise<DescribedTable>;
  /** Forgets all descriptions of a table, because a call changes it. */
  forget(id: Identifier): void;
}

/** A description of a table to a caller. */
interface Kept {
  readonly key: string;
  /** Name of the table. */
  readonly name: string;
  /** Default: it is on its way. */
  table: DescribedTable | undefined;
  /** When it is not used any more, by the process's monotonic clock. */
  until: number;
}

/** Headers that belong to one message or one attempt, and on which a description does not depend. */
const OF_MESSAGE: ReadonlySet<string> = new Set([
  "accept",
  "accept-encoding",
  "content-encoding",
  "content-length",
  "content-type",
  "grpc-timeout",
  "idempotency-key",
  "if-match",
  "if-none-match",
  "prefer",
  "traceparent",
  "tracestate",
  "x-request-id",
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

  function drop({ key, name }: Kept): void {
    kept.delete(key);
    const keys = keysOf.get(name);
    keys?.delete(key);
    if (keys?.size === 0) keysOf.delete(name);
  }
  /** Keeps a description that is on its way. `forget` takes it out, too, and it is never found then. */
  function begin(key: string, name: string): Kept {
    const entry: Kept = { key, name, table: undefined, until: 0 };
    const oldest = putNewest(kept, key, entry, MAX_KEPT);
    keysOf.set(name, (keysOf.get(name) ?? new Set()).add(key));
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
  return {
    async describe(call, id, isNew = false) {
      if (maxStalenessMs <= 0) return ask(call, id);
      const name = joinIdentifier(id);
      const key = keyOf(call, name);
      const asked = performance.now();
      const found = kept.get(key);
      if (!isNew && found?.table !== undefined && asked < found.until && !demandsFreshness(call.headers))
        return found.table;
      // Calls that come while a description is on its way share its entry, so that the first answer is found.
      const entry = found !== undefined && found.table === undefined ? found : begin(key, name);
      try {
        entry.table = await ask(call, id);
        entry.until = asked + useOf(entry.table);
        return entry.table;
      } catch (error) {
        if (entry.table === undefined && kept.get(key) === entry) drop(entry);
        throw error;
      }
    },
    forget(id) {
      const name = joinIdentifier(id);
      for (const key of keysOf.get(name) ?? []) kept.delete(key);
      keysOf.delete(name);
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
export function callerOf({ headers, identity, principal, peer }: Call): string {
  const pairs = Object.entries(headers).filter(([name]) => !OF_MESSAGE.has(name));
  const who = principal === undefined ? [peer] : [principal.by, principal.name];
  return hash("sha256", JSON.stringify([who, identity.apiKey, identity.authToken, pairs.sort()]), "base64");
}

function keyOf(call: Call, name: string): string {
  return `${callerOf(call)} ${name}`;
}
