import { END_OF_STREAM } from "../../../arrow/ipc/stream.ts";
import type { OptionTable } from "../../../config/option-spec.ts";
import { SERVER_OPTIONS } from "../../../config/options/server.ts";
import { packageVersion } from "../../../runtime/package-files.ts";
import { createSqlEngine } from "../../../sql/create-engine.ts";
import { tablesOfNamespace } from "../../../sql/namespace-tables.ts";
import { writesToNamespace } from "../../../sql/namespace-writes.ts";
import type { RunSql } from "../../../wires/mcp/tool.ts";
import { catalogCommand } from "../catalog-command.ts";

const OPTIONS = { writes: SERVER_OPTIONS.mcpWrites } as const satisfies OptionTable;

/** `lance-gateway mcp`: serves a catalog to an agent, by the Model Context Protocol over standard input and output. */
export const mcp = catalogCommand({
  options: OPTIONS,
  access: ({ writes }) => (writes ? "change" : "read"),
  async run({ namespace, options: { writes }, signal }) {
    const { serveMcpStdio } = await import("../../../wires/mcp/stdio.ts");
    const engine = createSqlEngine();
    const sql: RunSql = async function* (statement, tables, stop) {
      const prepared = await engine.prepare(statement, {
        tables: tablesOfNamespace(tables),
        ...(writes && { writes: writesToNamespace(tables) }),
        signal: stop,
      });
      yield* prepared.run(undefined, stop);
      yield END_OF_STREAM;
    };
    const onFault = (fault: unknown, tool: string) => {
      process.stderr.write(`lance-gateway: ${tool} failed: ${String(fault)}\n`);
    };
    try {
      await serveMcpStdio({ namespace, sql, writes, version: packageVersion(), signal, onFault });
    } finally {
      await engine.close();
    }
  },
});
