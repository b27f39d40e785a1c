import type { ServeOptions } from "../config/options/groups.ts";
import { once } from "../runtime/once.ts";
import type { SqlCall, SqlEngine } from "../sql/sql-engine.ts";
import type { FlightSqlOptions } from "../wires/flight/sql/flight-sql.ts";
import type { SqlCaller } from "../wires/flight/sql/statements.ts";
import type { Statement } from "../wires/flight/tickets.ts";
import { packageVersion } from "./version.ts";

/** SQL of a gateway. */
export interface OpenSql extends FlightSqlOptions {
  /** Ends the running statements. */
  close(): Promise<void>;
}

/** Options of {@link openSql}; the bounds are those of the start. */
export type OpenSqlOptions = Partial<
  Pick<
    ServeOptions,
    "readOnly" | "sqlMemoryBytes" | "sqlThreads" | "sqlTimeoutMs" | "sqlMaxRows" | "sqlMaxStatements"
  >
>;

/**
 * Returns what runs statements in SQL. The engine is loaded by the first one.
 *
 * @param options returns the options that hold now
 */
export function openSql(options: () => OpenSqlOptions): OpenSql {
  const { sqlMemoryBytes, sqlThreads, sqlTimeoutMs, sqlMaxRows, sqlMaxStatements } = options();
  let engine: SqlEngine | undefined;
  const load = once(async () => {
    const [{ createSqlEngine }, { tablesOfNamespace }] = await Promise.all([
      import("../sql/create-engine.ts"),
      import("../sql/namespace-tables.ts"),
    ]);
    engine = createSqlEngine({
      memoryMib: sqlMemoryBytes && Math.max(1, Math.floor(sqlMemoryBytes / 2 ** 20)),
      threads: sqlThreads,
      timeoutMs: sqlTimeoutMs,
      maxRows: sqlMaxRows,
      maxRunning: sqlMaxStatements,
    });
    const tablesOf = ({ tables, database }: SqlCaller) => tablesOfNamespace(tables, database);
    const callOf = ({ namespacePath }: Statement, caller: SqlCaller): SqlCall => ({
      tables: tablesOf(caller),
      ...{ namespacePath, caller: caller.key, signal: caller.signal },
    });
    return { engine, callOf, tablesOf };
  });
  return {
    facts: () => ({ version: packageVersion(), isReadOnly: options().readOnly === true }),
    runner: {
      async describe(statement, caller) {
        const { engine, callOf, tablesOf } = await load();
        const { run, ...schemas } = await engine.prepare(statement.text, callOf(statement, caller));
        return {
          ...schemas,
          run: (reader, parameters) => run(parameters, reader.signal, tablesOf(reader)),
        };
      },
    },
    async close() {
      await engine?.close();
    },
  };
}
