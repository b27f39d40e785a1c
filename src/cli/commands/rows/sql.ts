import { END_OF_STREAM } from "../../../arrow/ipc/stream.ts";
import { createSqlEngine } from "../../../sql/create-engine.ts";
import { tablesOfNamespace } from "../../../sql/namespace-tables.ts";
import type { SqlStatement } from "../../../sql/sql-engine.ts";
import { catalogCommand } from "../catalog-command.ts";
import { OUTPUT_OPTIONS, printerOf } from "./row-output.ts";

/** `lance-gateway sql`: runs a query in SQL over tables of the catalog, in this process, and prints the rows. */
export const sql = catalogCommand({
  operands: "<STATEMENT>",
  access: "read",
  options: OUTPUT_OPTIONS,
  async run({ namespace, operands: [statement = ""], options, signal, print: write }) {
    const print = printerOf(options);
    const engine = createSqlEngine();
    try {
      const prepared = await engine.prepare(statement, { tables: tablesOfNamespace(namespace), signal });
      for await (const piece of print(rowsOf(prepared, signal))) await write(piece);
    } finally {
      await engine.close();
    }
  },
});

async function* rowsOf(statement: SqlStatement, signal: AbortSignal): AsyncIterable<Uint8Array> {
  yield* statement.run(undefined, signal);
  yield END_OF_STREAM;
}
