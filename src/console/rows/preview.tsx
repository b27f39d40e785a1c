import { useEffect, useState } from "preact/hooks";
import { formatCount } from "../shell/format.ts";
import { useCall } from "../shell/hooks.ts";
import { EmptyNote, ErrorNote, Waiting } from "../shell/notes.tsx";
import type { TableContext } from "../table/table-context.ts";
import { Grid } from "./grid.tsx";

/** Rows on a page. */
const PAGE_ROWS = 25;

interface PreviewProps {
  readonly table: TableContext;
  readonly onLike: (column: string, values: ArrayLike<number>) => void;
}

/** Rows of a table, page by page. */
export function Preview({ table: { connection, id, at }, onLike }: PreviewProps) {
  const [offset, setOffset] = useState(0);
  const place = [id.join("/"), at.version, at.branch];
  useEffect(() => setOffset(0), place);
  const { namespace } = connection;
  const count = useCall(
    async (signal) => (await namespace.countTableRows({ id, ...at }, { signal })).count,
    [namespace, ...place],
  );
  const { value, error, isRunning, reload } = useCall(
    (signal) => namespace.queryTable({ id, ...at, k: PAGE_ROWS, offset }, { signal }).toTable(),
    [namespace, ...place, offset],
  );
  if (error !== undefined) return <ErrorNote error={error} retry={reload} />;
  if (value === undefined) return <Waiting what="Reading rows…" />;
  if (value.numRows === 0 && offset === 0) return <EmptyNote>The table has no rows yet.</EmptyNote>;
  const total = count.value === undefined ? undefined : Number(count.value);
  const end = offset + value.numRows;
  return (
    <>
      <Grid rows={value} offset={offset} caption={`Rows of ${id.at(-1)}`} onLike={onLike} />
      <nav class="pager" aria-label="Pages of rows">
        <button
          type="button"
          disabled={offset === 0 || isRunning}
          onClick={() => setOffset(offset - PAGE_ROWS)}
        >
          Previous
        </button>
        <span role="status">
          {formatCount(offset + 1)} to {formatCount(end)}
          {total !== undefined && ` of ${formatCount(total)}`}
        </span>
        <button
          type="button"
          disabled={value.numRows < PAGE_ROWS || end === total || isRunning}
          onClick={() => setOffset(offset + PAGE_ROWS)}
        >
          Next
        </button>
      </nav>
    </>
  );
}
