import { useEffect, useState } from "preact/hooks";
import type { Namespace } from "../../client/namespace.ts";
import type { Connection } from "../session/connection.ts";
import { formatAge, formatBytes, formatCount, formatTime } from "../shell/format.ts";
import { useCall } from "../shell/hooks.ts";
import { EmptyNote, ErrorNote, Waiting } from "../shell/notes.tsx";
import { hrefOf } from "../shell/route.ts";
import { allTables, firstTables, type Id } from "./list-tables.ts";

/** Tables on a page, about each of which the gateway is asked. */
const PAGE_TABLES = 20;

interface TableListProps {
  readonly connection: Connection;
  readonly id: Id;
  /** Called with the first tables, once they are known. */
  onFound(tables: readonly Id[]): void;
}

/** The tables of a namespace with their rows and sizes; at the root, a search finds those of all namespaces. */
export function TableList({ connection: { namespace }, id, onFound }: TableListProps) {
  const [text, setText] = useState("");
  const [page, setPage] = useState(0);
  const isSearch = text.trim() !== "";
  const found = useCall(
    async (signal) =>
      isSearch ? await allTables(namespace, id, signal) : await firstTables(namespace, id, signal),
    [namespace, id.join("/"), isSearch],
  );
  useEffect(() => {
    if (found.value !== undefined && !isSearch) onFound(found.value.tables);
  }, [found.value, isSearch]);
  useEffect(() => setPage(0), [text]);
  const wanted = text.trim().toLowerCase();
  const matching =
    found.value?.tables.filter((table) => table.join("/").toLowerCase().includes(wanted)) ?? [];
  const start = page * PAGE_TABLES;
  const shown = matching.slice(start, start + PAGE_TABLES);
  return (
    <section class="stack" aria-label="Tables">
      <div class="section-head">
        <h2>Tables</h2>
        <label>
          <span class="visually-hidden">Tables with this in their name</span>
          <input
            type="search"
            placeholder="Part of a name…"
            value={text}
            onInput={({ currentTarget }) => setText(currentTarget.value)}
          />
        </label>
      </div>
      {found.error && <ErrorNote error={found.error} retry={found.reload} />}
      {found.isRunning && <Waiting what="Listing tables…" />}
      {found.value && matching.length === 0 && !found.isRunning && (
        <EmptyNote>{isSearch ? "No table has this in its name." : "There is no table here yet."}</EmptyNote>
      )}
      {shown.length > 0 && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls it
        <section class="scroll" aria-label="Tables and their facts" tabIndex={0}>
          <table class="tables">
            <thead>
              <tr>
                <th scope="col">Name</th>
                <th scope="col">Rows</th>
                <th scope="col">Size</th>
                <th scope="col">Changed</th>
              </tr>
            </thead>
            <tbody>
              {shown.map((table) => (
                <TableLine key={table.join("/")} namespace={namespace} id={table} depth={id.length} />
              ))}
            </tbody>
          </table>
        </section>
      )}
      {(matching.length > PAGE_TABLES || found.value?.hasMore) && (
        <nav class="pager" aria-label="Pages of tables">
          <button type="button" disabled={page === 0} onClick={() => setPage(page - 1)}>
            Previous
          </button>
          <span role="status">
            {formatCount(start + 1)} to {formatCount(start + shown.length)} of {formatCount(matching.length)}
            {found.value?.hasMore && " or more"}
          </span>
          <button
            type="button"
            disabled={start + PAGE_TABLES >= matching.length}
            onClick={() => setPage(page + 1)}
          >
            Next
          </button>
        </nav>
      )}
    </section>
  );
}

interface TableLineProps {
  readonly namespace: Namespace;
  readonly id: Id;
  /** Names that all tables of the list have in common. */
  readonly depth: number;
}

function TableLine({ namespace, id, depth }: TableLineProps) {
  const stats = useCall((signal) => namespace.getTableStats({ id }, { signal }), [namespace, id.join("/")]);
  const newest = useCall(
    async (signal) => {
      const request = { id, descending: true, limit: 1 };
      return (await namespace.listTableVersions(request, { signal })).versions[0]?.timestampMillis;
    },
    [namespace, id.join("/")],
  );
  const changed = newest.value === undefined ? undefined : Number(newest.value);
  return (
    <tr>
      <th scope="row">
        <a href={hrefOf({ page: "table", id, view: "rows" })}>{id.slice(depth).join(" / ")}</a>
      </th>
      <td class="amount">{stats.value ? formatCount(stats.value.numRows) : "–"}</td>
      <td class="amount">{stats.value ? formatBytes(stats.value.totalBytes) : "–"}</td>
      <td>
        {changed === undefined ? (
          "–"
        ) : (
          <time dateTime={new Date(changed).toISOString()} title={formatTime(changed)}>
            {formatAge(changed, Date.now())}
          </time>
        )}
      </td>
    </tr>
  );
}

/** Most namespaces that are shown; the tree has all. */
const MOST_FOLDERS = 60;

interface FoldersProps {
  readonly connection: Connection;
  readonly id: readonly string[];
}

/** Links to the namespaces in a namespace. */
export function Folders({ connection: { namespace }, id }: FoldersProps) {
  const { value } = useCall(
    async (signal) => await namespace.listNamespaces({ id, limit: MOST_FOLDERS }, { signal }),
    [namespace, id.join("/")],
  );
  if (value === undefined || value.namespaces.length === 0) return null;
  return (
    <nav class="stack" aria-label="Namespaces">
      <h2>Namespaces</h2>
      <ul class="folders">
        {value.namespaces.map((name) => (
          <li key={name}>
            <a href={hrefOf({ page: "namespace", id: [...id, name] })}>{name}</a>
          </li>
        ))}
        {value.pageToken && <li class="muted">and others, in the tree</li>}
      </ul>
    </nav>
  );
}
