import { END_OF_STREAM } from "../../arrow/ipc/stream.ts";
import type { ServeOptions } from "../../config/options/groups.ts";
import { isLanceError } from "../../namespace/errors.ts";
import { once } from "../../runtime/promises.ts";
import type { ReadableNamespace } from "../../sql/namespace-tables.ts";
import type { WritableNamespace } from "../../sql/namespace-writes.ts";
import type { SqlCall, SqlEngine } from "../../sql/sql-engine.ts";
import type { FlightSqlOptions } from "../../wires/flight/sql/flight-sql.ts";
import type { SqlCaller } from "../../wires/flight/sql/statements.ts";
import type { Statement } from "../../wires/flight/tickets.ts";
import { packageVersion } from "../version.ts";

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
