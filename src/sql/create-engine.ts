import { createRequire } from "node:module";
import type { ArrowField } from "../arrow/schema.ts";
import { explainMissing } from "../backends/load-library.ts";
import { LanceError } from "../namespace/errors.ts";
import { type CheckedStatement, checkText, createCheckedStatements } from "./checked-statements.ts";
import { columnOf, fieldsOf } from "./column-types.ts";
import { type Conversation, createConversation, type ScanPlace } from "./conversation.ts";
import type { EngineProcess } from "./engine-process.ts";
import { boundsOf, type SqlOptions } from "./options.ts";
import type { ScannedTable } from "./process/messages.ts";
import { createProcessPool } from "./process-pool.ts";
import type { SqlCall, SqlEngine, SqlStatement, SqlTable, SqlTables } from "./sql-engine.ts";
import { type Pushed, pushedInto } from "./tree/pushdown.ts";
import { parseWrite } from "./writes/parse-write.ts";
import { prepareWrite } from "./writes/prepare-write.ts";

/** The package of DuckDB, which is installed only where SQL is used. */
const PACKAGE = "@duckdb/node-bindings";

/** Number of statements that a process keeps bound. */
const BOUND = 16;

/** A statement that processes bind under an id. It fits every call whose tables have these columns. */
interface Plan extends Omit<CheckedStatement, "tree"> {
  readonly id: number;
  /** Schemas of its tables. */
  readonly schemas: readonly Uint8Array[];
  readonly scanned: readonly ScannedTable[];
  readonly pushed: ReadonlyMap<number, Pushed>;
}

/** A plan that a process has bound, with the schemas of its result and of its parameters. */
interface Bound {
  readonly plan: Plan;
  readonly schema: Uint8Array;
  readonly parameters: Uint8Array;
  /** The process that has bound it last. */
  readonly process: EngineProcess;
}

/** Stands before a statement whose plan is wanted. */
const EXPLAIN = Buffer.from("EXPLAIN (FORMAT JSON) ");

/** Creates the engine. Its processes start with the first statement. */
export function createSqlEngine(options: SqlOptions = {}): SqlEngine {
  const bounds = boundsOf(options);
  const pool = createProcessPool(bounds);
  const statements = createCheckedStatements();
  /** Ids of the statements that each process has bound, the oldest first. */
  const boundBy = new WeakMap<EngineProcess, number[]>();
  /** What was bound last for a statement. */
  const lastBound = new WeakMap<CheckedStatement, Bound>();
  let count = 0;

  /** Leases a process, and passes on what the work with it yields. */
  async function* withProcess<T>(
    caller: string,
    outer: AbortSignal,
    preferred: EngineProcess | undefined,
    scanPlace: ScanPlace,
    work: (conversation: Conversation, process: EngineProcess, signal: AbortSignal) => AsyncIterable<T>,
  ): AsyncIterable<T> {
    const timeout = AbortSignal.timeout(bounds.timeoutMs);
    const signal = AbortSignal.any([outer, timeout]);
    const lease = await endedBy(timeout, () => pool.take(caller, signal, preferred));
    const kill = () => lease.process.kill();
    signal.addEventListener("abort", kill);
    const reading = new AbortController();
    const readSignal = AbortSignal.any([signal, reading.signal]);
    const conversation = createConversation(lease.process, scanPlace, readSignal, bounds.memoryMib);
    try {
      yield* work(conversation, lease.process, signal);
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

  /** Waits for work that needs no process. */
  async function inTime<T>(outer: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const timeout = AbortSignal.timeout(bounds.timeoutMs);
    return endedBy(timeout, () => work(AbortSignal.any([outer, timeout])));
  }

  /** Binds a plan. */
  async function bind(plan: Plan, conversation: Conversation, process: EngineProcess): Promise<Bound> {
    const { id, text, scanned, places } = plan;
    const ids = boundBy.get(process) ?? [];
    const forgotten = ids.length < BOUND ? undefined : ids.shift();
    boundBy.set(process, ids);
    const request = { kind: "bind", id, tables: scanned, places, forgotten } as const;
    const { body, firstBytes } = await conversation.ask(request, text);
    ids.push(id);
    return { plan, process, schema: body.subarray(0, firstBytes), parameters: body.subarray(firstBytes) };
  }

  async function prepare(statement: string, call: SqlCall): Promise<SqlStatement> {
    checkInstalled();
    checkText(statement);
    const write = parseWrite(statement);
    return write === undefined ? prepareQuery(statement, call) : prepareWrite(write, prepareQuery, call);
  }

  async function prepareQuery(statement: string, call: SqlCall): Promise<SqlStatement> {
    const { tables, namespacePath = [], caller = "", signal: outer, reshape } = call;
    const text = { statement, namespacePath, reshape };
    const openAll = (checked: CheckedStatement, signal: AbortSignal) =>
      Promise.all(checked.tables.map((table) => tables.open(table, signal)));
    const known = statements.known(text);
    const opened = known && (await inTime(outer, (signal) => openAll(known, signal)));
    const bound = known && lastBound.get(known);
    if (opened !== undefined && bound !== undefined && fits(bound.plan, opened))
      return statementOf(bound, opened, call);

    async function* describe(conversation: Conversation, process: EngineProcess, signal: AbortSignal) {
      const checked = known ?? (await statements.check(text, conversation));
      const open = opened ?? (await openAll(checked, signal));
      const own = await bind(planOf(checked, open, count++), conversation, process);
      lastBound.set(checked, own);
      yield { own, open };
    }
    for await (const { own, open } of withProcess(caller, outer, undefined, noScan, describe))
      return statementOf(own, open, call);
    throw new LanceError("Internal", "the statement was not bound");
  }

  function statementOf(bound: Bound, open: readonly SqlTable[], call: SqlCall): SqlStatement {
    const { schema, parameters } = bound;
    return {
      ...{ schema, parameters, readsTables: open.length > 0, isUpdate: false },
      run: (row = new Uint8Array(), signal = call.signal, tables = call.tables) =>
        run(bound, open, row, tables, call.caller ?? "", signal),
      explain: (signal) => explain(bound, call.caller ?? "", signal),
    };
  }

  function run(
    { plan, process: preferred }: Bound,
    open: readonly SqlTable[],
    parameters: Uint8Array,
    tables: SqlTables,
    caller: string,
    outer: AbortSignal,
  ): AsyncIterable<Uint8Array> {
    const { id, places, pushed } = plan;
    const scanPlace: ScanPlace = (place, columns, signal) =>
      tables.scan(open[places[place] as number] as SqlTable, { columns, ...pushed.get(place) }, signal);
    return withProcess(caller, outer, preferred, scanPlace, async function* (conversation, process) {
      if (boundBy.get(process)?.includes(id) !== true) await bind(plan, conversation, process);
      yield* conversation.run({ kind: "run", id, maxRows: bounds.maxRows }, parameters);
    });
  }

  /** Binds the plan of a statement as a statement of its own. Its tables are not read. */
  function explain({ plan, process }: Bound, caller: string, outer: AbortSignal): AsyncIterable<Uint8Array> {
    const own = { ...plan, id: count++, text: Buffer.concat([EXPLAIN, plan.text]) };
    return withProcess(caller, outer, process, noScan, async function* (conversation, process) {
      await bind(own, conversation, process);
      yield* conversation.run({ kind: "run", id: own.id, maxRows: bounds.maxRows }, new Uint8Array());
    });
  }

  return {
    prepare,
    async close() {
      pool.close();
    },
  };
}

/** Whether a plan is right for tables: they have the columns that it was made for, and about as many rows. */
function fits({ schemas, scanned }: Plan, open: readonly SqlTable[]): boolean {
  return open.every(({ schema, rows = 0 }, i) => {
    const { rows: planned = 0 } = scanned[i] as ScannedTable;
    const isNear = rows <= 2 * planned && planned <= 2 * rows;
    return isNear && Buffer.compare(schema, schemas[i] as Uint8Array) === 0;
  });
}

function planOf({ tree, ...checked }: CheckedStatement, open: readonly SqlTable[], id: number): Plan {
  const fields = open.map(fieldsOf);
  return {
    ...checked,
    id,
    schemas: open.map(({ schema }) => schema),
    scanned: open.map(({ rows }, i) =>
      scannedTable(checked.tables[i]?.text as string, fields[i] as readonly ArrowField[], rows),
    ),
    pushed: pushedInto(tree, (place) => fields[checked.places[place] as number] ?? []),
  };
}

const noScan: ScanPlace = () => {
  throw new LanceError("Internal", "a statement reads rows before it runs");
};

function scannedTable(name: string, fields: readonly ArrowField[], rows: number | undefined): ScannedTable {
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
