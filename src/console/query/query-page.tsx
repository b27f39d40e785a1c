import type { Table } from "apache-arrow";
import { useEffect, useRef, useState } from "preact/hooks";
import type { JsonArrowSchema } from "../../gen/lance/namespace/v1/schema_pb.ts";
import type { LanceError } from "../../namespace/errors.ts";
import { Grid, type OnLike } from "../rows/grid.tsx";
import { formatCount, formatSeconds } from "../shell/format.ts";
import { errorOf } from "../shell/hooks.ts";
import { EmptyNote, ErrorNote, Waiting } from "../shell/notes.tsx";
import { SnippetDialog } from "../snippets/snippet-dialog.tsx";
import type { TableContext } from "../table/table-context.ts";
import { parsePlan } from "./plan.ts";
import { PlanTree } from "./plan-tree.tsx";
import { QueryFields } from "./query-fields.tsx";
import { EMPTY_FORM, formOf, paramsOf, type QueryForm, requestOf, vectorText } from "./query-form.ts";

type Result =
  | { readonly kind: "nothing" | "waiting" }
  | { readonly kind: "error"; readonly error: LanceError }
  | ({ readonly kind: "rows" } & Found)
  | { readonly kind: "plan"; readonly text: string };

/** A page of the rows that match. */
interface Found {
  readonly rows: Table;
  readonly seconds: number;
  readonly offset: number;
  /** Most rows of a page. */
  readonly limit: number;
  /** Whether rows follow, which the limit has cut. */
  readonly hasMore: boolean;
  /** Reads a number of rows from the first one that matches. */
  readAll(limit: number): AsyncIterable<Uint8Array>;
}

interface QueryPageProps {
  readonly table: TableContext;
  readonly schema: JsonArrowSchema | undefined;
}

/** A form for a query, its rows, and its plan. The address has the query, so that it can be shared and opened again. */
export function QueryPage({ table, schema }: QueryPageProps) {
  const { connection, id, at, params, onParams } = table;
  const [form, setForm] = useState<QueryForm>(EMPTY_FORM);
  const [result, setResult] = useState<Result>({ kind: "nothing" });
  const [isSnippet, setSnippet] = useState(false);
  const round = useRef(0);
  const { namespace } = connection;
  async function show(run: () => Promise<Result>): Promise<void> {
    // A later query replaces an earlier one.
    round.current += 1;
    const mine = round.current;
    setResult({ kind: "waiting" });
    const next = await run().catch((thrown): Result => ({ kind: "error", error: errorOf(thrown) }));
    if (mine === round.current) setResult(next);
  }
  const search = (asked: QueryForm, offset: number) =>
    show(async () => {
      const started = performance.now();
      const { k, ...request } = requestOf(asked);
      const query = { id, ...at, ...request };
      // One row more tells whether rows follow.
      const found = await namespace.queryTable({ ...query, offset, k: k + 1 }).toTable();
      const seconds = (performance.now() - started) / 1000;
      return {
        kind: "rows",
        rows: found.slice(0, k),
        seconds,
        offset,
        limit: k,
        hasMore: found.numRows > k,
        readAll: (limit) => namespace.queryTable({ ...query, k: limit }).bytes(),
      };
    });
  const explain = () =>
    show(async () => {
      const query = { version: at.version, ...requestOf(form) };
      const { plan } = await namespace.explainTableQueryPlan({
        id,
        branch: at.branch,
        query,
        verbose: false,
      });
      return { kind: "plan", text: plan };
    });
  const asked = JSON.stringify([params, id, String(at.version), at.branch]);
  const offset = Math.max(0, Number.parseInt(params["offset"] ?? "0", 10) || 0);
  useEffect(() => {
    const found = formOf(params);
    setForm(found ?? EMPTY_FORM);
    if (found !== undefined) void search(found, offset);
    else void show(async () => ({ kind: "nothing" }));
  }, [asked]);
  /** The address has the query, which is run again if it is the same. */
  const ask = (next: QueryForm) => {
    const change = { ...paramsOf(next), offset: undefined };
    const isSame = Object.entries(change).every(([name, text]) => params[name] === text);
    if (isSame) void search(next, 0);
    else onParams(change);
  };
  const searchLike = (column: string, values: ArrayLike<number>) =>
    ask({ ...form, vector: vectorText(values), vectorColumn: column });
  return (
    <>
      <form
        class="query"
        onSubmit={(event) => {
          event.preventDefault();
          ask(form);
        }}
      >
        <QueryFields form={form} schema={schema} onChange={(change) => setForm({ ...form, ...change })} />
        <div class="buttons">
          <button type="submit" class="primary">
            Search
          </button>
          <button type="button" onClick={() => void explain()}>
            Show the plan
          </button>
          <button type="button" onClick={() => setSnippet(true)}>
            Copy as…
          </button>
          <button type="button" class="quiet" onClick={() => setForm(EMPTY_FORM)}>
            Clear
          </button>
        </div>
      </form>
      {isSnippet && <SnippetDialog table={table} form={form} onClose={() => setSnippet(false)} />}
      <div class="stack" aria-live="polite">
        <Shown
          result={result}
          name={id.at(-1) ?? ""}
          onLike={searchLike}
          onOpen={(next) => onParams({ offset: next > 0 ? String(next) : undefined })}
        />
      </div>
    </>
  );
}

interface FoundRowsProps extends Omit<ShownProps, "result"> {
  readonly found: Found;
}

function FoundRows({ found, name, onLike, onOpen }: FoundRowsProps) {
  const { rows, seconds, offset, limit, hasMore, readAll } = found;
  const end = offset + rows.numRows;
  return (
    <>
      <p class="muted">
        {formatCount(rows.numRows)} {rows.numRows === 1 ? "row" : "rows"} in {formatSeconds(seconds)}
        {hasMore && "; the limit cut more that match"}
      </p>
      <Grid
        rows={rows}
        offset={offset}
        caption={`Rows of ${name} that match`}
        onLike={onLike}
        source={{ name, readAll }}
      />
      {(hasMore || offset > 0) && (
        <nav class="pager" aria-label="Pages of rows">
          <button type="button" disabled={offset === 0} onClick={() => onOpen(Math.max(0, offset - limit))}>
            Previous
          </button>
          <span role="status">
            {formatCount(offset + 1)} to {formatCount(end)}
          </span>
          <button type="button" disabled={!hasMore} onClick={() => onOpen(end)}>
            Next
          </button>
        </nav>
      )}
    </>
  );
}

interface ShownProps {
  readonly result: Result;
  readonly name: string;
  onLike: OnLike;
  /** Opens the page that begins with a row. */
  onOpen(offset: number): void;
}

function Shown({ result, name, onLike, onOpen }: ShownProps) {
  switch (result.kind) {
    case "nothing":
      return <EmptyNote>Search by a vector, by words, by a filter, or by any of them together.</EmptyNote>;
    case "waiting":
      return <Waiting what="Searching…" />;
    case "error":
      return <ErrorNote error={result.error} />;
    case "plan":
      return <PlanTree steps={parsePlan(result.text)} />;
    case "rows":
      if (result.rows.numRows === 0) return <EmptyNote>No row matches.</EmptyNote>;
      return <FoundRows found={result} {...{ name, onLike, onOpen }} />;
  }
}
