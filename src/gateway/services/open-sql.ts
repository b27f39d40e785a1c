import { clone, type Message } from "@bufbuild/protobuf";
import { END_OF_STREAM } from "../../arrow/ipc/stream.ts";
import type { ServeOptions } from "../../config/options/groups.ts";
import {
  type CreateViewRequest,
  type CreateViewResponse,
  type DescribeViewResponse,
  ViewService,
} from "../../gen/lance/gateway/v1/sql_view_pb.ts";
import { type Call, copyCall } from "../../namespace/call/call.ts";
import { isLanceError } from "../../namespace/errors.ts";
import { defaultNamespaceOf } from "../../namespace/plan-view.ts";
import type { Service } from "../../namespace/service.ts";
import { resolveRequest } from "../../pipeline/call/resolve.ts";
import { packageVersion } from "../../runtime/package-files.ts";
import { once } from "../../runtime/promises.ts";
import type { WritableNamespace } from "../../sql/namespace-writes.ts";
import type { ReadableNamespace } from "../../sql/readable-namespace.ts";
import type { SqlCall, SqlEngine } from "../../sql/sql-engine.ts";
import { beginPipelineCalls } from "../../wires/flight/pipeline-calls.ts";
import type { FlightSqlOptions } from "../../wires/flight/sql/flight-sql.ts";
import { catalogOf, type SqlCaller, type SqlRunner, sqlCallerOf } from "../../wires/flight/sql/statements.ts";
import type { Statement } from "../../wires/flight/tickets.ts";

/** SQL of a gateway. */
export interface OpenSql extends FlightSqlOptions {
  /**
   * Returns what runs the statements of a caller, by its key, over the tables of a namespace.
   *
   * @param writes whether statements may change tables
   */
  runAs(
    caller: string,
    writes: boolean,
  ): (
    statement: string,
    namespace: ReadableNamespace & WritableNamespace,
    signal: AbortSignal,
  ) => AsyncIterable<Uint8Array>;
  /** Ends the running statements. */
  close(): Promise<void>;
}

/** Options of {@link openSql}; the bounds are those of the start. */
export type OpenSqlOptions = Partial<
  Pick<
    ServeOptions,
    | "readOnly"
    | "sqlMemoryBytes"
    | "sqlKeptBytes"
    | "sqlThreads"
    | "sqlTimeoutMs"
    | "sqlMaxRows"
    | "sqlMaxStatements"
  >
>;

/**
 * Returns what runs statements in SQL. The engine is loaded by the first one.
 *
 * @param options returns the options that hold now
 */
export function openSql(options: () => OpenSqlOptions): OpenSql {
  const { sqlMemoryBytes, sqlKeptBytes, sqlThreads, sqlTimeoutMs, sqlMaxRows, sqlMaxStatements } = options();
  let engine: SqlEngine | undefined;
  const load = once(async () => {
    const [{ createSqlEngine }, { createKnownTables, tablesOfNamespace }, { writesToNamespace }] =
      await Promise.all([
        import("../../sql/create-engine.ts"),
        import("../../sql/namespace-tables.ts"),
        import("../../sql/namespace-writes.ts"),
      ]);
    engine = createSqlEngine({
      memoryMib: sqlMemoryBytes && Math.max(1, Math.floor(sqlMemoryBytes / 2 ** 20)),
      keptMib: sqlKeptBytes && Math.floor(sqlKeptBytes / 2 ** 20),
      threads: sqlThreads,
      timeoutMs: sqlTimeoutMs,
      maxRows: sqlMaxRows,
      maxRunning: sqlMaxStatements,
    });
    const knownBy = createKnownTables();
    const tablesOf = ({ tables, database, key }: SqlCaller) =>
      tablesOfNamespace(tables, database, knownBy(key, database));
    const writesOf = ({ writes, database, idempotencyKey }: SqlCaller) =>
      writesToNamespace(writes, { database, idempotencyKey });
    const callOf = ({ namespacePath }: Statement, caller: SqlCaller): SqlCall => ({
      ...{ tables: tablesOf(caller), writes: writesOf(caller) },
      ...{ namespacePath, caller: caller.key, signal: caller.signal },
    });
    return { engine, callOf, tablesOf, knownBy, writesOf, tablesOfNamespace, writesToNamespace };
  });
  return {
    facts: () => ({ version: packageVersion(), isReadOnly: options().readOnly === true }),
    runner: {
      async describe(statement, caller) {
        const { engine, callOf, tablesOf, writesOf } = await load();
        const { run, explain, ...facts } = await engine.prepare(statement.text, callOf(statement, caller));
        await passWithoutTables(facts, caller.tables, caller.signal);
        return {
          ...facts,
          async *run(reader, parameters) {
            await passWithoutTables(facts, reader.tables, reader.signal);
            yield* run(parameters, reader.signal, tablesOf(reader), writesOf(reader));
          },
          explain: (reader) => explain(reader.signal),
        };
      },
      async planView(view, { key: caller, signal, tables }) {
        const { engine, tablesOfNamespace } = await load();
        return engine.planView(view, { tables: tablesOfNamespace(tables), caller, signal });
      },
    },
    runAs: (caller, writes) =>
      async function* (statement, namespace, signal) {
        const { engine, knownBy, tablesOfNamespace, writesToNamespace } = await load();
        const prepared = await engine.prepare(statement, {
          tables: tablesOfNamespace(namespace, undefined, knownBy(caller)),
          ...(writes && { writes: writesToNamespace(namespace) }),
          caller,
          signal,
        });
        await passWithoutTables(prepared, namespace, signal);
        yield* prepared.run(undefined, signal);
        yield END_OF_STREAM;
      },
    async close() {
      await engine?.close();
    },
  };
}

/**
 * Passes the limits and the records of the pipeline for a statement that reads no table, as a listing of the caller.
 *
 * @throws LanceError the refusal of a caller who is not known, or has reached a limit
 */
async function passWithoutTables(
  { readsTables }: { readonly readsTables: boolean },
  namespace: ReadableNamespace,
  signal: AbortSignal,
): Promise<void> {
  if (readsTables) return;
  try {
    await namespace.listNamespaces({ id: [], limit: 1 }, { signal });
  } catch (thrown) {
    // A caller that may not list may compute all the same.
    if (!isLanceError(thrown, "PermissionDenied")) throw thrown;
  }
}

const { createView, describeView } = ViewService.method;

/**
 * Lets the backends of a service have the queries of new views checked, by calls of the same caller that read the tables of the query. Descriptions
 * of views get the database as the caller names it.
 */
export function planViews(service: Service, runner: Pick<SqlRunner, "planView">): Service {
  return {
    ...service,
    async unary(method, request, call) {
      if (method !== createView && method !== describeView) return service.unary(method, request, call);
      call.takes = undefined;
      // The pipeline changes both for the backend. The message may have the credentials, and name the database.
      const sent = clone(method.input, request);
      const outer = copyCall(call, { headers: Object.assign(Object.create(null), call.headers) });
      const resolved = once(async () => {
        resolveRequest(sent, outer);
        return outer;
      });
      if (method === createView)
        call.planView = async () => plan(service, sent as CreateViewRequest, await resolved(), runner);
      const response = await service.unary(method, request, call);
      return withDatabase(response as CreateViewResponse | DescribeViewResponse, await resolved());
    },
  };
}

async function plan(
  service: Service,
  request: CreateViewRequest,
  call: Call,
  { planView }: Pick<SqlRunner, "planView">,
): Promise<Uint8Array> {
  const { id: path, headers, identity } = call;
  const { apiKey, authToken } = identity;
  if (apiKey !== undefined) headers["x-api-key"] = apiKey;
  if (authToken !== undefined) headers["authorization"] = `Bearer ${authToken}`;
  const namespacePath = defaultNamespaceOf(request, path);
  // As calls of Flight, because REST would answer with rows in the file form.
  const caller = await sqlCallerOf(await beginPipelineCalls(service, call));
  return planView({ path, query: request.query, namespacePath }, caller);
}

/** An upstream may have its own name for the database. */
function withDatabase(response: CreateViewResponse | DescribeViewResponse, { headers }: Call): Message {
  response.defaultDatabase ||= catalogOf(headers);
  return response;
}
