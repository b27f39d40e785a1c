import { END_OF_STREAM } from "../../../arrow/ipc/stream.ts";
import { createCaller } from "../../../client/caller.ts";
import type { Namespace } from "../../../client/namespace.ts";
import { parsePath } from "../../../client/object-path.ts";
import { viewCalls } from "../../../client/view-calls.ts";
import type { OptionTable } from "../../../config/option-spec.ts";
import { parseText } from "../../../config/parsers.ts";
import type { CreateViewRequest } from "../../../gen/lance/gateway/v1/sql_view_pb.ts";
import type { Call } from "../../../namespace/call/call.ts";
import type { Backend } from "../../../namespace/lance-namespace.ts";
import { createSqlEngine } from "../../../sql/create-engine.ts";
import { tablesOfNamespace } from "../../../sql/namespace-tables.ts";
import { type WritableNamespace, writesToNamespace } from "../../../sql/namespace-writes.ts";
import type { ReadableNamespace } from "../../../sql/readable-namespace.ts";
import type { SqlEngine } from "../../../sql/sql-engine.ts";
import { effectOf } from "../../../sql/statement-text.ts";
import { parseWrite } from "../../../sql/writes/parse-write.ts";
import { createLineReader, historyPath, readHistory, writeHistory } from "../../shell/line-reader.ts";
import { runShell } from "../../shell/sql-shell.ts";
import { YES_OPTION } from "../../terminal/confirm.ts";
import { forTerminal } from "../../terminal/terminal-text.ts";
import { catalogCommand, type Work } from "../catalog-command.ts";
import { walk } from "../objects/read-objects.ts";
import { FORCE_OPTION, saveRows } from "./export.ts";
import { OUTPUT_OPTIONS, type Output, printerOf } from "./row-output.ts";

const OPTIONS = {
  ...OUTPUT_OPTIONS,
  file: {
    flag: "output",
    value: "FILE",
    help: "File for the rows; its name says whether they are Arrow, Parquet, CSV, tabs or JSON lines. Default: standard output.",
    common: "File for the rows, such as rows.parquet or rows.csv.",
    parse: parseText,
  },
  force: FORCE_OPTION,
  yes: YES_OPTION,
} as const satisfies OptionTable;

/**
 * `lance-gateway sql`: runs a statement in SQL over tables of the catalog, in this process, and prints the rows. Without a statement it reads
 * statements: from a terminal as a shell, and from other inputs one after the other.
 */
export const sql = catalogCommand({
  operands: "[STATEMENT]",
  // The shell may be asked for a change at any time.
  access: (_options, [statement]) =>
    statement !== undefined && parseWrite(statement) === undefined ? "read" : "change",
  options: OPTIONS,
  question: ({ operands: [statement = ""] }) =>
    effectOf(statement) === "changes" ? `Run ${statement}, which changes or removes data` : undefined,
  async run(work) {
    const { operands, options, signal } = work;
    const engine = createSqlEngine();
    const run = (statement: string, output: Output, stop: AbortSignal) =>
      runStatement({ ...work, signal: stop }, engine, statement, output);
    try {
      const [statement] = operands;
      if (statement !== undefined) await run(statement, options, signal);
      else await readStatements(work, run);
    } finally {
      await engine.close();
    }
  },
});

type SqlWork = Work<typeof OPTIONS>;
type Run = (statement: string, output: Output, stop: AbortSignal) => Promise<void>;

async function runStatement(
  { namespace, backend, signal, options, print: write }: SqlWork,
  engine: SqlEngine,
  statement: string,
  output: Output,
): Promise<void> {
  const views = viewsOf(backend);
  async function* rows(): AsyncIterable<Uint8Array> {
    const prepared = await engine.prepare(statement, {
      tables: tablesOfNamespace({ ...namespace, ...views }),
      writes: writesToNamespace({ ...namespace, ...views }),
      signal,
    });
    yield* prepared.run(undefined, signal);
    yield END_OF_STREAM;
  }
  const { file } = output;
  if (file !== undefined) await saveRows(rows(), { file, force: options.force, label: file });
  else for await (const piece of printerOf(output)(rows())) await write(piece);
}

/** Returns the views of a connection; undefined if it has none. A catalog in this process takes the columns of a view from the statement. */
function viewsOf({ name, extensions = {} }: Backend): Partial<WritableNamespace & ReadableNamespace> {
  const { createView } = extensions;
  if (createView === undefined) return {};
  const calls = (planView?: Call["planView"]) =>
    viewCalls(
      createCaller(name, {
        ...extensions,
        createView: (request: CreateViewRequest, call: Call) =>
          createView(request, Object.assign(call, { planView })),
      } as never),
    );
  return {
    ...calls(),
    createView: (request, options, schema) => calls(async () => schema).createView(request, options),
  };
}

async function readStatements(work: SqlWork, run: Run): Promise<void> {
  const { namespace, options, signal } = work;
  const isTerminal = process.stdin.isTTY === true && process.stderr.isTTY === true;
  const say = (text: string) => void process.stderr.write(`${forTerminal(text)}\n`);
  const path = historyPath(process.env);
  let lines: readonly string[] | undefined;
  const reader = createLineReader({
    ...{ input: process.stdin, output: process.stderr, isTerminal },
    history: isTerminal ? await readHistory(path) : [],
    onHistory(next) {
      lines = next;
    },
  });
  if (isTerminal) say("Statements in SQL, each with a semicolon at its end. \\? lists commands.");
  try {
    await runShell({
      ...{ reader, isTerminal, asks: isTerminal && !options.yes, output: options, run, say, signal },
      tables: (stop) => tablesIn(namespace, stop),
      textOf: (thrown) => `error: ${thrown instanceof Error ? thrown.message : String(thrown)}`,
    });
  } finally {
    reader.close();
    if (isTerminal && lines !== undefined) await writeHistory(path, lines);
  }
}

async function* tablesIn(namespace: Namespace, signal: AbortSignal): AsyncIterable<string> {
  for await (const { kind, path } of walk(namespace, [], true, signal))
    if (kind === "table") yield sqlName(parsePath(path));
}

/** Returns how a statement names a table: the names of its namespaces are one name. */
function sqlName(id: readonly string[]): string {
  const parents = id.slice(0, -1).join("$");
  return [...(parents === "" ? [] : [parents]), id.at(-1) ?? ""].map(quoted).join(".");
}

function quoted(name: string): string {
  return /^[a-z_][a-z0-9_]*$/.test(name) ? name : `"${name.replaceAll('"', '""')}"`;
}
