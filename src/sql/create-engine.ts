import { createRequire } from "node:module";
import { explainMissing } from "../backends/load-library.ts";
import { LanceError } from "../namespace/errors.ts";
import {
  type CheckedStatement,
  checkText,
  createCheckedStatements,
  fits,
  type Plan,
  planOf,
  writeChecked,
} from "./checked-statements.ts";
import { type Conversation, createConversation, type ScanPlace } from "./conversation.ts";
import { createKeptTables } from "./kept-tables.ts";
import { parseExplain, parseLookup, planStatement, prepareLookup } from "./lookups.ts";
import { createOpening } from "./opened-tables.ts";
import type { EngineProcess } from "./process/engine-process.ts";
import { createProcessPool } from "./process/process-pool.ts";
import type {
  PlanFormat,
  SqlCall,
  SqlEngine,
  SqlStatement,
  SqlTable,
  SqlTables,
  SqlView,
  ViewQuery,
} from "./sql-engine.ts";
import { boundsOf, type SqlOptions } from "./sql-engine.ts";
import { statementReading } from "./table-names.ts";
import { withKeptTables } from "./tree/tables.ts";
import { parseWrite } from "./writes/parse-write.ts";
import { prepareWrite } from "./writes/prepare-write.ts";

/** The package of DuckDB, which is installed only where SQL is used. */
const PACKAGE = "@duckdb/node-bindings";

/** Number of statements that a process keeps bound. */
const BOUND = 64;

/** A plan that a process has bound, with the schemas of its result and of its parameters. */
interface Bound {
  readonly plan: Plan;
  readonly schema: Uint8Array;
  readonly parameters: Uint8Array;
  /** The process that has bound it last. */
  readonly process: EngineProcess;
}

/** Reason of reads that end with their statement. Without one, each would get an error with a stack. */
const DONE = new LanceError("Cancelled", "the statement has ended");

/** Creates the engine. Its processes start with the first statement. */
export function createSqlEngine(options: SqlOptions = {}): SqlEngine {
  const bounds = boundsOf(options);
  const pool = createProcessPool(bounds);
  const statements = createCheckedStatements();
  const keptTables = createKeptTables(bounds.keptMib * 2 ** 20);
  /** Ids of the statements that each process has bound, the oldest first. */
  const boundBy = new WeakMap<EngineProcess, number[]>();
  /** What was bound last for a statement. */
  const lastBound = new WeakMap<CheckedStatement, Bound>();
  let count = 0;
  /** Whether DuckDB was found, which is looked for until it is. */
  let isInstalled = false;
  function requireDuckDb(): void {
    if (!isInstalled) checkInstalled();
    isInstalled = true;
  }

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
      await keptTables.enter(lease.process, caller, conversation);
      yield* work(conversation, lease.process, signal);
    } catch (thrown) {
      throw signal.aborted ? reasonOf(timeout, signal, bounds.timeoutMs) : thrown;
    } finally {
      signal.removeEventListener("abort", kill);
      reading.abort(DONE);
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
    requireDuckDb();
    checkText(statement);
    const write = parseWrite(statement);
    if (write !== undefined) return prepareWrite(write, { prepareQuery, planView }, call);
    const lookup = parseLookup(statement);
    if (lookup !== undefined) return prepareLookup(lookup, call);
    const explained = parseExplain(statement);
    if (explained === undefined) return prepareQuery(statement, call);
    return planStatement(await prepareQuery(explained.query, call), explained.format);
  }

  async function planView({ path, query, namespacePath }: ViewQuery, call: SqlCall): Promise<Uint8Array> {
    requireDuckDb();
    checkText(query);
    const view = { database: undefined, path, version: undefined, branch: undefined, query, namespacePath };
    return (await prepareQuery(statementReading(path), { ...call, namespacePath: [] }, [view])).schema;
  }

  async function prepareQuery(
    statement: string,
    call: SqlCall,
    known: readonly SqlView[] = [],
  ): Promise<SqlStatement> {
    const { tables, namespacePath = [], caller = "", signal: outer, reshape } = call;
    const opening = createOpening(tables, known);
    // A view that is found among the tables makes another statement of it, whose tables those of the view are.
    for (;;) {
      const views = opening.views();
      const text = { statement, namespacePath, reshape, views };
      const openAll = (checked: CheckedStatement, signal: AbortSignal) =>
        opening.open(checked.tables, signal);
      const checkedBefore = statements.known(text);
      const opened = checkedBefore && (await inTime(outer, (signal) => openAll(checkedBefore, signal)));
      if (opened === "views") continue;
      const bound = checkedBefore && lastBound.get(checkedBefore);
      if (opened !== undefined && bound !== undefined && fits(bound.plan, opened))
        return statementOf(bound, opened, call);

      async function* describe(conversation: Conversation, process: EngineProcess, signal: AbortSignal) {
        const checked = checkedBefore ?? (await statements.check(text, conversation));
        const open = opened ?? (await openAll(checked, signal));
        if (open === "views") return;
        const own = await bind(planOf(checked, open, count++), conversation, process);
        lastBound.set(checked, own);
        yield { own, open };
      }
      for await (const { own, open } of withProcess(caller, outer, undefined, noScan, describe))
        return statementOf(own, open, call);
    }
  }

  function statementOf(bound: Bound, open: readonly SqlTable[], call: SqlCall): SqlStatement {
    const { schema, parameters } = bound;
    return {
      ...{ schema, parameters, readsTables: open.length > 0, isUpdate: false },
      run: (row = new Uint8Array(), signal = call.signal, tables = call.tables) =>
        run(bound, open, row, tables, call.caller ?? "", signal),
      explain: (signal, format = "JSON", row = new Uint8Array()) =>
        explain(bound, row, call.caller ?? "", signal, format),
    };
  }

  async function* run(
    { plan, process: preferred }: Bound,
    open: readonly SqlTable[],
    parameters: Uint8Array,
    tables: SqlTables,
    caller: string,
    outer: AbortSignal,
  ): AsyncIterable<Uint8Array> {
    const { places, pushed, scanned } = plan;
    const states = plan.namesRowId
      ? []
      : await inTime(outer, (signal) => keptTables.statesOf({ caller, tables, open, scanned, signal }));
    let loading: SqlTable | undefined;
    const scanPlace: ScanPlace = (place, columns, signal) => {
      if (loading !== undefined) return keptTables.bounded(tables.scan(loading, { columns }, signal));
      const table = open[places[place] as number] as SqlTable;
      const rows = tables.scan(table, { columns, ...pushed.get(place) }, signal);
      return counted(rows, (bytes) => keptTables.count(caller, table, bytes));
    };
    const whileLoading = async (table: SqlTable, load: () => Promise<number>) => {
      loading = table;
      try {
        return await load();
      } finally {
        loading = undefined;
      }
    };
    yield* withProcess(caller, outer, preferred, scanPlace, async function* (conversation, process) {
      const reads = { caller, open, scanned };
      const names = await keptTables.use(process, conversation, reads, states, whileLoading);
      const own = names.size === 0 ? plan : await planWithKept(plan, names, conversation);
      if (boundBy.get(process)?.includes(own.id) !== true) await bind(own, conversation, process);
      yield* conversation.run({ kind: "run", id: own.id, maxRows: bounds.maxRows }, parameters);
    });
  }

  /** Returns the plan that reads kept tables. */
  async function planWithKept(
    plan: Plan,
    names: ReadonlyMap<number, string>,
    conversation: Conversation,
  ): Promise<Plan> {
    const key = JSON.stringify([...names]);
    if (plan.kept?.names === key) return plan.kept.plan;
    const tree = withKeptTables(plan.tree, (place) => names.get(plan.places[place] as number));
    const text = await writeChecked(tree, conversation, new Set(names.values()));
    plan.kept = { names: key, plan: { ...plan, id: count++, text } };
    return plan.kept.plan;
  }

  /** Binds the plan of a statement as a statement of its own. Its tables are not read. */
  function explain(
    { plan, process }: Bound,
    parameters: Uint8Array,
    caller: string,
    outer: AbortSignal,
    format: PlanFormat,
  ): AsyncIterable<Uint8Array> {
    const head = Buffer.from(`EXPLAIN (FORMAT ${format}) `);
    const own: Plan = { ...plan, id: count++, text: Buffer.concat([head, plan.text]) };
    return withProcess(caller, outer, process, noScan, async function* (conversation, process) {
      await bind(own, conversation, process);
      yield* conversation.run({ kind: "run", id: own.id, maxRows: bounds.maxRows }, parameters);
    });
  }

  return {
    prepare,
    planView,
    async close() {
      pool.close();
    },
  };
}

/** Passes on pieces of rows, and reports their sizes. */
async function* counted(
  rows: AsyncIterable<Uint8Array>,
  note: (bytes: number) => void,
): AsyncIterable<Uint8Array> {
  for await (const piece of rows) {
    note(piece.byteLength);
    yield piece;
  }
}

const noScan: ScanPlace = () => {
  throw new LanceError("Internal", "a statement reads rows before it runs");
};

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
