import { useState } from "preact/hooks";
import { QueryPage } from "../query/query-page.tsx";
import { Preview } from "../rows/preview.tsx";
import type { Connection } from "../session/connection.ts";
import { permissionsOf, TELL_PERMISSIONS } from "../session/permissions.ts";
import { Crumbs } from "../shell/crumbs.tsx";
import { formatBytes, formatCount } from "../shell/format.ts";
import { useCall } from "../shell/hooks.ts";
import { ErrorNote, Waiting } from "../shell/notes.tsx";
import { hrefOf, type TableView } from "../shell/route.ts";
import { Indices } from "./indices.tsx";
import { Refs } from "./refs.tsx";
import { Schema } from "./schema.tsx";
import { TableActions } from "./table-actions.tsx";
import type { Like, Moment, TableContext } from "./table-context.ts";
import { Versions } from "./versions.tsx";
import { Views } from "./views.tsx";

interface TablePageProps {
  readonly connection: Connection;
  readonly id: readonly string[];
  readonly view: TableView;
  /** Called when the table has another name, or is gone. */
  onMoved(to: readonly string[] | undefined): void;
}

/** A table: its figures, and one of its views. */
export function TablePage({ connection, id, view, onMoved }: TablePageProps) {
  const [at, setAt] = useState<Moment>({});
  const [like, setLike] = useState<Like>();
  const { namespace } = connection;
  const table = useCall(
    (signal) =>
      namespace.describeTable(
        { id, ...at, loadDetailedMetadata: true, checkDeclared: true, vendCredentials: false },
        { ...TELL_PERMISSIONS, signal },
      ),
    [namespace, id.join("/"), at.version, at.branch],
  );
  const name = id.at(-1) ?? "";
  const head = (
    <header class="page-head">
      <Crumbs id={id} />
      <h1 title={name}>{name}</h1>
    </header>
  );
  if (table.error !== undefined) {
    return (
      <>
        {head}
        <ErrorNote error={table.error} retry={table.reload} />
      </>
    );
  }
  if (table.value === undefined) {
    return (
      <>
        {head}
        <Waiting what="Reading the table…" />
      </>
    );
  }
  const description = table.value;
  const isEmpty = description.isOnlyDeclared === true;
  const context = { connection, id, at, permissions: permissionsOf(description) };
  const open = (moment: Moment) => {
    setAt(moment);
    location.hash = hrefOf({ page: "table", id, view: "rows" });
  };
  const search = (column: string, values: ArrayLike<number>) => {
    setLike({ column, values });
    location.hash = hrefOf({ page: "table", id, view: "query" });
  };
  return (
    <>
      <header class="page-head">
        <Crumbs id={id} />
        <h1 title={name}>{name}</h1>
        <TableActions table={context} isEmpty={isEmpty} onMoved={onMoved} onChanged={table.reload} />
        {isEmpty ? (
          <p class="note">The table is declared, and has no data yet.</p>
        ) : (
          <Figures context={context} version={description.version} />
        )}
      </header>
      {(at.version !== undefined || at.branch !== undefined) && (
        <p class="note note-moment">
          This is {at.branch === undefined ? "" : `branch ${at.branch}`}
          {at.version === undefined ? "" : ` version ${at.version}`}.{" "}
          <button type="button" onClick={() => setAt({})}>
            Back to the newest
          </button>
        </p>
      )}
      {!isEmpty && (
        <>
          <Views id={id} current={view} />
          {view === "rows" && <Preview table={context} onLike={search} />}
          {view === "schema" && <Schema description={description} />}
          {view === "query" && <QueryPage table={context} schema={description.schema} like={like} />}
          {view === "versions" && (
            <Versions table={context} current={description.version} onOpen={open} onChanged={table.reload} />
          )}
          {view === "refs" && (
            <Refs
              table={context}
              current={description.version}
              onOpen={open}
              onBranchDropped={(branch) => branch === at.branch && setAt({})}
            />
          )}
          {view === "indices" && (
            <Indices table={context} schema={description.schema} onChanged={table.reload} />
          )}
        </>
      )}
    </>
  );
}

interface FiguresProps {
  readonly context: TableContext;
  readonly version: bigint | undefined;
}

function Figures({ context: { connection, id, at }, version }: FiguresProps) {
  const { namespace } = connection;
  const stats = useCall(
    (signal) => namespace.getTableStats({ id, branch: at.branch }, { signal }),
    [namespace, id.join("/"), at.branch, version],
  );
  const figures: readonly (readonly [name: string, value: string | undefined])[] = [
    ["Version", version?.toString()],
    ["Rows", stats.value && formatCount(stats.value.numRows)],
    ["Size", stats.value && formatBytes(stats.value.totalBytes)],
    ["Fragments", stats.value?.fragmentStats && formatCount(stats.value.fragmentStats.numFragments)],
    ["Indices", stats.value && formatCount(stats.value.numIndices)],
  ];
  return (
    <dl class="figures">
      {figures.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value ?? "–"}</dd>
        </div>
      ))}
    </dl>
  );
}
