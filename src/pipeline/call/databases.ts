import type { DescMethod } from "@bufbuild/protobuf";
import type { Call } from "../../namespace/call/call.ts";
import { LanceError } from "../../namespace/errors.ts";
import type { Backend } from "../../namespace/lance-namespace.ts";
import type { SharedQuantity } from "../../runtime/threads/sharing.ts";
import type { Next, OperationResponse } from "./interceptor.ts";

/** Bounds on the calls of a database. */
export interface DatabaseLimits {
  /** Largest Arrow body of a call, in bytes after decompression of the transfer. */
  readonly maxUploadBytes: number;
  /** Maximum number of concurrent calls. Default: no bound. */
  readonly maxConcurrentCalls?: number | undefined;
}

/** A database behind the pipeline. */
export interface Database {
  readonly backend: Backend;
  readonly limits: DatabaseLimits;
  /** Running calls of all workers of the process. Default: there is a single worker. */
  readonly calls?: SharedQuantity | undefined;
}

/** Databases by name. The key `undefined` has the database of calls that name none. */
export type Databases = ReadonlyMap<string | undefined, Database>;

/**
 * Returns the database of a call.
 *
 * @throws LanceError NamespaceNotFound for a name without a database.
 */
export function databaseOf(databases: Databases, { database }: Pick<Call, "database">): Database {
  const found = databases.get(database);
  if (found !== undefined) return found;
  throw new LanceError("NamespaceNotFound", `there is no database ${JSON.stringify(database)}`);
}

/**
 * Returns the name of the database of calls that name none, by which it has to be the same database: undefined for an only
 * database without a name, and an empty name for the list of databases.
 */
export function nameOfUnnamed(databases: Databases): string | undefined {
  const names = [...databases.keys()].filter((name) => name !== undefined);
  if (names.length === 0) return undefined;
  const database = databases.get(undefined);
  return names.find((name) => databases.get(name) === database) ?? "";
}

type Handler = (...request: unknown[]) => Promise<OperationResponse>;

/** Creates the end of the chain, which hands a call to the backend of its database. */
export function callBackend(databases: Databases): Next {
  const handlers = new Map<Database, Readonly<Record<string, unknown>>>();
  for (const database of databases.values()) {
    const { operations, extensions } = database.backend;
    handlers.set(database, { ...operations, ...extensions });
  }

  function handlerOf(database: Database, { name, localName }: DescMethod): Handler {
    const handler = handlers.get(database)?.[localName];
    if (handler !== undefined) return handler as Handler;
    const { name: backend, missing } = database.backend;
    const text = `${name} is not supported by the ${backend} backend`;
    throw new LanceError("Unsupported", missing === undefined ? text : `${text}: ${missing}`);
  }

  return (call, request) => {
    const database = databaseOf(databases, call);
    call.admitted = true;
    const handler = handlerOf(database, call.method);
    return request.kind === "upload"
      ? handler(request.message, request.data, call)
      : handler(request.message, call);
  };
}
