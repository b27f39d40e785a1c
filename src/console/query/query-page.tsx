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
  | { readonly kind: "rows"; readonly rows: Table; readonly seconds: number }
  | { readonly kind: "plan"; readonly text: string };

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
  const search = (asked: QueryForm) =>
    show(async () => {
      const started = performance.now();
      const rows = await namespace.queryTable({ id, ...at, ...requestOf(asked) }).toTable();
      return { kind: "rows", rows, seconds: (performance.now() - started) / 1000 };
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
      return (
        <>
          <p class="muted">
            {formatCount(result.rows.numRows)} rows in {formatSeconds(result.seconds)}
          </p>
          <Grid rows={result.rows} offset={0} caption={`Rows of ${name} that match`} onLike={onLike} />
        </>
      );
  }
}
