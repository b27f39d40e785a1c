import type { Table } from "apache-arrow";
import { useEffect, useState } from "preact/hooks";
import type { JsonArrowSchema } from "../../gen/lance/namespace/v1/schema_pb.ts";
import type { LanceError } from "../../namespace/errors.ts";
import { Grid } from "../rows/grid.tsx";
import { formatCount, formatSeconds } from "../shell/format.ts";
import { errorOf } from "../shell/hooks.ts";
import { EmptyNote, ErrorNote, Waiting } from "../shell/notes.tsx";
import type { Like, TableContext } from "../table/table-context.ts";
import { PlanTree } from "./plan-tree.tsx";
import { QueryFields } from "./query-fields.tsx";
import { EMPTY_FORM, type QueryForm, requestOf } from "./query-form.ts";

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
  /** Reads the page from a row on. */
  open(offset: number): void;
}

interface QueryPageProps {
  readonly table: TableContext;
  readonly schema: JsonArrowSchema | undefined;
  /** The row whose neighbours are looked for. Default: none. */
  readonly like: Like | undefined;
}

/** A form for a query, its rows, and its plan. */
export function QueryPage({ table: { connection, id, at }, schema, like }: QueryPageProps) {
  const [form, setForm] = useState<QueryForm>(EMPTY_FORM);
  const [result, setResult] = useState<Result>({ kind: "nothing" });
  const { namespace } = connection;

  async function show(run: () => Promise<Result>): Promise<void> {
    setResult({ kind: "waiting" });
    setResult(await run().catch((thrown): Result => ({ kind: "error", error: errorOf(thrown) })));
  }
  const search = (asked: QueryForm, offset = 0) =>
    show(async () => {
      const started = performance.now();
      const { k, ...request } = requestOf(asked);
      // One row more tells whether rows follow.
      const found = await namespace.queryTable({ id, ...at, ...request, offset, k: k + 1 }).toTable();
      const seconds = (performance.now() - started) / 1000;
      const open = (next: number) => void search(asked, Math.max(0, next));
      return {
        kind: "rows",
        rows: found.slice(0, k),
        seconds,
        offset,
        limit: k,
        hasMore: found.numRows > k,
        open,
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
  const searchLike = (column: string, values: ArrayLike<number>) => {
    const next = { ...form, vector: Array.from(values).join(", "), vectorColumn: column };
    setForm(next);
    void search(next);
  };
  useEffect(() => {
    if (like !== undefined) searchLike(like.column, like.values);
  }, [like]);

  return (
    <>
      <form
        class="query"
        onSubmit={(event) => {
          event.preventDefault();
          void search(form);
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
          <button type="button" class="quiet" onClick={() => setForm(EMPTY_FORM)}>
            Clear
          </button>
        </div>
      </form>
      <div aria-live="polite">
        <Shown result={result} name={id.at(-1) ?? ""} onLike={searchLike} />
      </div>
    </>
  );
}

interface FoundRowsProps extends Pick<ShownProps, "name" | "onLike"> {
  readonly found: Found;
}

function FoundRows({ found: { rows, seconds, offset, limit, hasMore, open }, name, onLike }: FoundRowsProps) {
  const end = offset + rows.numRows;
  return (
    <>
      <p class="muted">
        {formatCount(rows.numRows)} {rows.numRows === 1 ? "row" : "rows"} in {formatSeconds(seconds)}
        {hasMore && "; the limit cut more that match"}
      </p>
      <Grid rows={rows} offset={offset} caption={`Rows of ${name} that match`} onLike={onLike} />
      {(hasMore || offset > 0) && (
        <nav class="pager" aria-label="Pages of rows">
          <button type="button" disabled={offset === 0} onClick={() => open(offset - limit)}>
            Previous
          </button>
          <span role="status">
            {formatCount(offset + 1)} to {formatCount(end)}
          </span>
          <button type="button" disabled={!hasMore} onClick={() => open(end)}>
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
  onLike(column: string, values: ArrayLike<number>): void;
}

function Shown({ result, name, onLike }: ShownProps) {
  switch (result.kind) {
    case "nothing":
      return <EmptyNote>Search by a vector, by words, by a filter, or by any of them together.</EmptyNote>;
    case "waiting":
      return <Waiting what="Searching…" />;
    case "error":
      return <ErrorNote error={result.error} />;
    case "plan":
      return <PlanTree text={result.text} />;
    case "rows":
      if (result.rows.numRows === 0) return <EmptyNote>No row matches.</EmptyNote>;
      return <FoundRows found={result} name={name} onLike={onLike} />;
  }
}
