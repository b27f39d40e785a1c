import { createRequire } from "node:module";
import { decodeSchema } from "../arrow/schema.ts";
import { explainMissing } from "../backends/load-library.ts";
import { LanceError } from "../namespace/errors.ts";
import { columnOf } from "./column-types.ts";
import { type Conversation, createConversation } from "./conversation.ts";
import { boundsOf, type SqlOptions } from "./options.ts";
import type { ScannedTable } from "./process/messages.ts";
import { createProcessPool } from "./process-pool.ts";
import type { SqlCall, SqlEngine, SqlStatement, SqlTable } from "./sql-engine.ts";
import { checkTree } from "./tree/check.ts";
import { type NamedTable, replaceTables } from "./tree/tables.ts";
import { readTree, writeTree } from "./tree/tree.ts";

/** The package of DuckDB, which is installed only where SQL is used. */
const PACKAGE = "@duckdb/node-bindings";

/** Longest statement, in bytes. */
const MAX_STATEMENT_BYTES = 256 * 1024;

/** A statement that a process has bound. */
interface Bound {
  readonly conversation: Conversation;
  readonly schema: Uint8Array;
  readonly parameters: Uint8Array;
}

/** Creates the engine. Its processes start with the first statement. */
export function createSqlEngine(options: SqlOptions = {}): SqlEngine {
  const bounds = boundsOf(options);
  const pool = createProcessPool(bounds);

  /** Binds a statement, and passes on what the work with it yields. */
  async function* withBound<T>(
    statement: string,
    { tables, namespacePath = [], caller = "" }: SqlCall,
    outer: AbortSignal,
    work: (bound: Bound) => AsyncIterable<T>,
  ): AsyncIterable<T> {
    checkInstalled();
    if (Buffer.byteLength(statement) > MAX_STATEMENT_BYTES)
      throw new LanceError("InvalidInput", `the statement has more than ${MAX_STATEMENT_BYTES} bytes`);
    // DuckDB would read the statement up to there.
    if (statement.includes("\0")) throw new LanceError("InvalidInput", "the statement has a null character");
    const timeout = AbortSignal.timeout(bounds.timeoutMs);
    const signal = AbortSignal.any([outer, timeout]);
    const lease = await endedBy(timeout, () => pool.take(caller, signal));
    const kill = () => lease.process.kill();
    signal.addEventListener("abort", kill);
    const opened: SqlTable[] = [];
    const reading = new AbortController();
    const conversation = createConversation(
      lease.process,
      (number) => opened[number] as SqlTable,
      AbortSignal.any([signal, reading.signal]),
      bounds.memoryMib,
    );
    try {
      const { body } = await conversation.ask({ kind: "parse" }, Buffer.from(statement));
      const tree = readTree(body);
      const named = replaceTables(tree, namespacePath);
      opened.push(...(await Promise.all(named.map((table) => tables.open(table, signal)))));
      const written = await conversation.ask({ kind: "write" }, writeTree(tree));
      checkTree(readTree(written.body));
      const scanned = named.map((table, i) => scannedTable(table, opened[i] as SqlTable));
      const bound = await conversation.ask({ kind: "bind", tables: scanned });
      const schema = bound.body.subarray(0, bound.schemaBytes);
      yield* work({ conversation, schema, parameters: bound.body.subarray(bound.schemaBytes) });
    } catch (thrown) {
      throw signal.aborted ? reasonOf(timeout, signal, bounds.timeoutMs) : thrown;
    } finally {
      signal.removeEventListener("abort", kill);
      reading.abort();
      lease.end(conversation.isIdle && !signal.aborted);
      await conversation.end();
    }
  }

  async function endedBy<T>(timeout: AbortSignal, wait: () => Promise<T>): Promise<T> {
    try {
      return await wait();
    } catch (thrown) {
      throw timeout.aborted ? timedOut(bounds.timeoutMs) : thrown;
    }
  }

  const run = (
    statement: string,
    call: SqlCall,
    parameters: Uint8Array = new Uint8Array(),
    signal = call.signal,
  ): AsyncIterable<Uint8Array> =>
    withBound(statement, call, signal, ({ conversation }) =>
      conversation.run({ kind: "run", maxRows: bounds.maxRows }, parameters),
    );

  return {
    run,
    async prepare(statement, call): Promise<SqlStatement> {
      async function* describe({ schema, parameters }: Bound) {
        yield { schema, parameters };
      }
      for await (const found of withBound(statement, call, call.signal, describe))
        return {
          ...found,
          run: (parameters, signal) => run(statement, call, parameters, signal),
        };
      throw new LanceError("Internal", "the statement was not bound");
    },
    async close() {
      pool.close();
    },
  };
}

function scannedTable({ text: name }: NamedTable, { schema, rows }: SqlTable): ScannedTable {
  const { fields } = decodeSchema(metadataOf(schema));
  const names = new Set<string>();
  for (const field of fields) {
    const key = field.name.toLowerCase();
    if (names.has(key))
      throw new LanceError(
        "Unsupported",
        `the columns "${field.name}" of table "${name}" differ only in case, which SQL does not tell apart`,
      );
    names.add(key);
  }
  if (fields.length === 0) throw new LanceError("Unsupported", `table "${name}" has no columns`);
  return { name, columns: fields.map(columnOf), rows };
}

/** Returns the metadata of the first message of an IPC stream. */
function metadataOf(stream: Uint8Array): Uint8Array {
  const view = new DataView(stream.buffer, stream.byteOffset);
  return stream.subarray(8, 8 + view.getUint32(4, true));
}

function reasonOf(timeout: AbortSignal, signal: AbortSignal, timeoutMs: number): unknown {
  if (timeout.aborted) return timedOut(timeoutMs);
  const { reason } = signal;
  if (reason instanceof LanceError) return reason;
  return new LanceError("Cancelled", "the statement was cancelled", { cause: reason });
}

function timedOut(timeoutMs: number): LanceError {
  return new LanceError("DeadlineExceeded", `the statement took more than ${timeoutMs} ms`);
}

function checkInstalled(): void {
  try {
    createRequire(import.meta.url).resolve(PACKAGE);
  } catch (thrown) {
    const { message } = explainMissing("SQL", PACKAGE, thrown) as Error;
    throw new LanceError("Unsupported", message, { cause: thrown });
  }
}
