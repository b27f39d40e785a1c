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
  const kept = new Map<string, { readonly table: DescribedTable; readonly until: number }>();
  const keysOf = new Map<string, Set<string>>();
  /** Descriptions on their way by the names of their tables; those that `forget` takes out are not kept. */
  const underWay = new Map<string, Set<object>>();

  function forgetKey(key: string, name: string): void {
    kept.delete(key);
    const keys = keysOf.get(name);
    keys?.delete(key);
    if (keys?.size === 0) keysOf.delete(name);
  }
  function keep(key: string, table: DescribedTable, asked: number): void {
    const expires = expiryOf(table.storageOptions);
    const left = expires === undefined ? maxStalenessMs : expires - RENEW_BEFORE_MS - Date.now();
    const until = asked + Math.min(maxStalenessMs, left);
    const name = joinIdentifier(table.id);
    const [oldest] = kept;
    if (kept.size >= MAX_KEPT && oldest !== undefined)
      forgetKey(oldest[0], joinIdentifier(oldest[1].table.id));
    kept.set(key, { table, until });
    keysOf.set(name, (keysOf.get(name) ?? new Set()).add(key));
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
      if (!isNew && found !== undefined && asked < found.until && !demandsFreshness(call.headers))
        return found.table;
      forgetKey(key, name);
      const asking = {};
      const others = underWay.get(name) ?? new Set();
      underWay.set(name, others.add(asking));
      try {
        const table = await ask(call, id);
        if (underWay.get(name)?.has(asking)) keep(key, table, asked);
        return table;
      } finally {
        others.delete(asking);
        if (others.size === 0 && underWay.get(name) === others) underWay.delete(name);
      }
    },
    forget(id) {
      const name = joinIdentifier(id);
      for (const key of keysOf.get(name) ?? []) kept.delete(key);
      keysOf.delete(name);
      underWay.delete(name);
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
