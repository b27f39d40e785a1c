import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { LanceError } from "../../namespace/errors.ts";
import { effectOf } from "../../sql/statement-text.ts";
import { allTables, type Id } from "../catalog/list-tables.ts";
import { stepsOf } from "../query/plan.ts";
import { PlanTree } from "../query/plan-tree.tsx";
import { Grid } from "../rows/grid.tsx";
import type { Connection } from "../session/connection.ts";
import { formatCount, formatSeconds } from "../shell/format.ts";
import { errorOf, useCall } from "../shell/hooks.ts";
import { EmptyNote, ErrorNote, Waiting } from "../shell/notes.tsx";
import { hrefOf, type Params } from "../shell/route.ts";
import { Editor } from "./editor.tsx";
import {
  addToHistory,
  clearHistory,
  completionNames,
  type FirstRows,
  firstRows,
  planOf,
  readHistory,
  rowsForFile,
  tablesIn,
} from "./statements.ts";

/** Most rows that are shown of a result. */
const MOST_ROWS = 200;

/** Most tables whose columns are asked for at a time. */
const MOST_DESCRIBED = 8;

type Result =
  | { readonly kind: "nothing" }
  | { readonly kind: "waiting"; cancel(): void }
  /** The statement waits for a decision. */
  | { readonly kind: "question"; readonly statement: string; confirm(): void; cancel(): void }
  | { readonly kind: "error"; readonly error: LanceError }
  | ({ readonly kind: "rows"; readonly seconds: number; readonly statement: string } & FirstRows)
  | { readonly kind: "plan"; readonly json: string };

interface SqlPageProps {
  readonly connection: Connection;
  readonly params: Params;
}

/** An editor for statements in SQL, and their results. One that changes or removes data asks first. The address has the statement, which runs only when someone asks for it here. */
export function SqlPage({ connection, params }: SqlPageProps) {
  const [opened, setOpened] = useState({ text: params["statement"] ?? "" });
  const [text, setText] = useState(opened.text);
  const [result, setResult] = useState<Result>({ kind: "nothing" });
  const [history, setHistory] = useState(() => readHistory(sessionStorage));
  const names = useNames(connection, text);
  const running = useRef<AbortController>(undefined);
  const open = (next: string) => {
    setOpened({ text: next });
    setText(next);
  };
  useEffect(() => {
    const given = params["statement"] ?? "";
    // The address follows the editor when a statement runs.
    if (given !== text) open(given);
  }, [params["statement"]]);
  useEffect(() => () => running.current?.abort(), []);
  const statement = text.trim().replace(/;\s*$/, "");

  /** Replaces what runs, and shows what becomes of it. */
  async function show(work: (signal: AbortSignal) => Promise<Result>): Promise<void> {
    running.current?.abort();
    const controller = new AbortController();
    running.current = controller;
    const { signal } = controller;
    setResult({ kind: "waiting", cancel: () => controller.abort() });
    const next = await work(signal).catch(
      (thrown): Result => (signal.aborted ? { kind: "nothing" } : { kind: "error", error: errorOf(thrown) }),
    );
    if (running.current === controller) setResult(next);
  }

  const run = () => {
    if (statement === "") return;
    setHistory(addToHistory(sessionStorage, text));
    location.hash = hrefOf({ page: "sql", params: { statement: text } });
    const cancel = () => setResult({ kind: "nothing" });
    if (effectOf(statement) === "changes")
      setResult({ kind: "question", statement, confirm: runNow, cancel });
    else runNow();
  };
  const runNow = () => {
    void show(async (signal) => {
      const started = performance.now();
      const found = await firstRows(connection, statement, MOST_ROWS, signal);
      return { kind: "rows", ...found, statement, seconds: (performance.now() - started) / 1000 };
    });
  };
  const explain = () =>
    void show(async (signal) => ({ kind: "plan", json: await planOf(connection, statement, signal) }));

  return (
    <>
      <header class="page-head">
        <h1>SQL</h1>
      </header>
      <Editor opened={opened} label="Statement" names={names} onChange={setText} onRun={run} />
      <div class="buttons">
        <button type="button" class="primary" disabled={statement === ""} onClick={run}>
          Run
        </button>
        <button type="button" disabled={statement === ""} onClick={explain}>
          Show the plan
        </button>
        <span class="muted">Ctrl-Enter runs, Ctrl-Space completes.</span>
      </div>
      <History
        statements={history}
        onOpen={open}
        onClear={() => {
          clearHistory(sessionStorage);
          setHistory([]);
        }}
      />
      <div class="stack sql-result" aria-live="polite">
        <Shown result={result} connection={connection} />
      </div>
    </>
  );
}

/** Returns the names that the editor completes. Columns are asked for once a statement names their table. */
function useNames(connection: Connection, text: string) {
  const { namespace } = connection;
  const tables = useCall(async (signal) => (await allTables(namespace, [], signal)).tables, [connection]);
  const [columns, setColumns] = useState<ReadonlyMap<string, readonly string[]>>(new Map());
  const asked = useRef(new Set<string>());
  useEffect(() => {
    const wanted = tablesIn(text, tables.value ?? []).filter((id) => !asked.current.has(id.join("/")));
    for (const id of wanted.slice(0, MOST_DESCRIBED)) {
      asked.current.add(id.join("/"));
      void columnsOf(connection, id).then((names) =>
        setColumns((known) => new Map(known).set(id.join("/"), names)),
      );
    }
  }, [text, tables.value]);
  const named = tablesIn(text, tables.value ?? []).map((id) => id.join("/"));
  return useMemo(
    () => ({
      tables: completionNames(tables.value ?? [], columns),
      columns: [...new Set(named.flatMap((path) => columns.get(path) ?? []))],
    }),
    [tables.value, columns, named.join("\n")],
  );
}

/** A table that cannot be described has no columns to complete. */
async function columnsOf({ namespace }: Connection, id: Id): Promise<readonly string[]> {
  try {
    const { schema } = await namespace.describeTable({
      id,
      loadDetailedMetadata: true,
      vendCredentials: false,
    });
    return schema?.fields.map(({ name }) => name) ?? [];
  } catch {
    return [];
  }
}

interface HistoryProps {
  readonly statements: readonly string[];
  onOpen(statement: string): void;
  onClear(): void;
}

function History({ statements, onOpen, onClear }: HistoryProps) {
  if (statements.length === 0) return null;
  return (
    <details class="sql-history">
      <summary>Statements of this tab: {statements.length}</summary>
      <ul class="sql-statements">
        {statements.map((each) => (
          <li key={each}>
            <button type="button" class="quiet" onClick={() => onOpen(each)}>
              <code>{each}</code>
            </button>
          </li>
        ))}
      </ul>
      <button type="button" class="quiet" onClick={onClear}>
        Forget them
      </button>
    </details>
  );
}

function Shown({ result, connection }: { readonly result: Result; readonly connection: Connection }) {
  switch (result.kind) {
    case "nothing":
      return (
        <EmptyNote>
          A table is named by its namespace: team.people, or "team$eu".people in nested ones.
        </EmptyNote>
      );
    case "waiting":
      return (
        <>
          <Waiting what="Running…" />
          <div class="buttons">
            <button type="button" onClick={result.cancel}>
              Cancel
            </button>
          </div>
        </>
      );
    case "question":
      return (
        <div class="stack" role="alert">
          <p>This statement changes or removes data:</p>
          <code>{result.statement}</code>
          <div class="buttons">
            <button type="button" class="danger" onClick={result.confirm}>
              Run it
            </button>
            <button type="button" onClick={result.cancel}>
              Cancel
            </button>
          </div>
        </div>
      );
    case "error":
      return <ErrorNote error={result.error} />;
    case "plan":
      return <PlanTree steps={stepsOf(result.json)} />;
    case "rows": {
      const { rows, hasMore, seconds, statement } = result;
      const readAll = (limit: number) => rowsForFile(connection, statement, limit);
      // An export runs the statement again.
      const source = effectOf(statement) === "reads" ? { name: "result", readAll } : undefined;
      const count = `${formatCount(rows.numRows)} ${rows.numRows === 1 ? "row" : "rows"}`;
      return (
        <>
          <p class="muted">
            {hasMore ? `The first ${count}` : count} in {formatSeconds(seconds)}
            {hasMore && "; the result has more"}
          </p>
          <Grid rows={rows} offset={0} caption="Rows of the result" hasTypes source={source} />
        </>
      );
    }
  }
}
