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

/**
 * Returns what runs statements in SQL. The engine is loaded by the first one.
 *
 * @param options returns the options that hold now
 */
export function openSql(options: () => Partial<Pick<ServeOptions, "readOnly">>): OpenSql {
  let engine: SqlEngine | undefined;
  const load = once(async () => {
    const [{ createSqlEngine }, { tablesOfNamespace }] = await Promise.all([
      import("../sql/create-engine.ts"),
      import("../sql/namespace-tables.ts"),
    ]);
    engine = createSqlEngine();
    const callOf = ({ namespacePath }: Statement, { tables, database, key, signal }: SqlCaller): SqlCall => ({
      tables: tablesOfNamespace(tables, database),
      ...{ namespacePath, caller: key, signal },
    });
    return { engine, callOf };
  });
  return {
    facts: () => ({ version: packageVersion(), isReadOnly: options().readOnly === true }),
    runner: {
      async describe(statement, caller) {
        const { engine, callOf } = await load();
        return engine.prepare(statement.text, callOf(statement, caller));
      },
      async *run(statement, caller) {
        const { engine, callOf } = await load();
        yield* engine.run(statement.text, callOf(statement, caller), statement.parameters);
      },
    },
    async close() {
      await engine?.close();
    },
  };
}
