import { useEffect, useRef } from "preact/hooks";
import { EMPTY_FORM, paramsOf as formParams, vectorText } from "../query/query-form.ts";
import { QueryPage } from "../query/query-page.tsx";
import { Preview } from "../rows/preview.tsx";
import type { Connection } from "../session/connection.ts";
import { permissionsOf, supports, TELL_PERMISSIONS } from "../session/told-facts.ts";
import { formatBytes, formatCount } from "../shell/format.ts";
import { Crumbs } from "../shell/header.tsx";
import { useCall } from "../shell/hooks.ts";
import { ErrorNote, late, Waiting } from "../shell/notes.tsx";
import { hrefOf, openRoute, type Params, type TableView } from "../shell/route.ts";
import { Indices } from "./indices.tsx";
import { Refs } from "./refs.tsx";
import { Schema } from "./schema.tsx";
import { TableActions } from "./table-actions.tsx";
import type { Moment, TableContext } from "./table-context.ts";
import { Versions } from "./versions.tsx";

const LateMap = late(async () => (await import("../map/map-page.tsx")).MapPage);

interface TablePageProps {
  readonly connection: Connection;
  readonly id: readonly string[];
  readonly view: TableView;
  /** What the address says of the view. */
  readonly params: Params;
  /** Called when the table has another name, or is gone. */
  onMoved(to: readonly string[] | undefined): void;
}

/** A table: its figures, and one of its views. */
export function TablePage({ connection, id, view, params, onMoved }: TablePageProps) {
  const at = momentOf(params);
  const { namespace } = connection;
  const table = useCall(
    (signal) =>
      namespace.describeTable(
        { id, ...at, loadDetailedMetadata: true, checkDeclared: true, vendCredentials: false },
        { ...TELL_PERMISSIONS, signal },
      ),
    [namespace, id.join("/"), at.version, at.branch],
  );
  // Others change tables, too.
  useEffect(() => {
    const look = () => document.visibilityState === "visible" && table.reload();
    document.addEventListener("visibilitychange", look);
    return () => document.removeEventListener("visibilitychange", look);
  }, [table.reload]);
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
  const context: TableContext = {
    ...{ connection, id, at, params },
    current: description.version,
    permissions: permissionsOf(description),
    supports: (operation) => supports(description, operation),
    onParams: (change) => openRoute({ page: "table", id, view, params: changed(params, change) }),
  };
  const show = (moment: Moment, next: TableView) =>
    openRoute({ page: "table", id, view: next, params: paramsOf(moment) });
  const open = (moment: Moment) => show(moment, "rows");
  const search = (vectorColumn: string, values: ArrayLike<number>) => {
    const form = { ...EMPTY_FORM, vector: vectorText(values), vectorColumn };
    const query = changed(paramsOf(at), formParams(form));
    openRoute({ page: "table", id, view: "query", params: query });
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
          <button type="button" onClick={() => show({}, view)}>
            Back to the newest
          </button>
        </p>
      )}
      {!isEmpty && (
        <>
          <Views id={id} current={view} params={paramsOf(at)} />
          {view === "rows" && <Preview table={context} onLike={search} onChanged={table.reload} />}
          {view === "schema" && <Schema table={context} description={description} onChanged={table.reload} />}
          {view === "query" && <QueryPage table={context} schema={description.schema} />}
          {view === "map" && <LateMap table={context} schema={description.schema} />}
          {view === "versions" && (
            <Versions table={context} current={description.version} onOpen={open} onChanged={table.reload} />
          )}
          {view === "refs" && (
            <Refs
              table={context}
              current={description.version}
              onOpen={open}
              onBranchDropped={(branch) => branch === at.branch && show({}, view)}
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

/** Reads the version and the branch from an address. */
function momentOf({ version, branch }: Params): Moment {
  return {
    version: version !== undefined && /^\d{1,18}$/.test(version) ? BigInt(version) : undefined,
    branch: branch || undefined,
  };
}

/** Writes a version and a branch for an address. */
function paramsOf({ version, branch }: Moment): Params {
  return { ...(version !== undefined && { version: String(version) }), ...(branch && { branch }) };
}

function changed(params: Params, change: Readonly<Record<string, string | undefined>>): Params {
  const entries = Object.entries({ ...params, ...change });
  return Object.fromEntries(entries.flatMap(([name, text]) => (text === undefined ? [] : [[name, text]])));
}

interface FiguresProps {
  readonly context: TableContext;
  readonly version: bigint | undefined;
}

function Figures({ context: { connection, id, at }, version }: FiguresProps) {
  const { namespace } = connection;
  // A gateway without a cache on disk refuses it.
  const cache = useCall(
    async (signal) => (await import("./describe-cache.ts")).describeCache(connection, id, signal),
    [connection, id.join("/"), version],
  );
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
    ...(cache.value === undefined ? [] : ([["Cached", cache.value]] as const)),
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

const VIEWS: Readonly<Record<TableView, string>> = {
  rows: "Rows",
  schema: "Schema",
  query: "Query",
  map: "Map",
  versions: "Versions",
  refs: "Branches and tags",
  indices: "Indices and jobs",
};

interface ViewsProps {
  readonly id: readonly string[];
  readonly current: TableView;
  /** The version and the branch that are shown. */
  readonly params: Params;
}

/** Links to the views of a table. A phone shows a part of them, the current one included. */
function Views({ id, current, params }: ViewsProps) {
  const shown = useRef<HTMLAnchorElement>(null);
  useEffect(() => shown.current?.scrollIntoView({ block: "nearest", inline: "nearest" }), [current]);
  return (
    <nav class="views" aria-label={`Views of ${id.at(-1) ?? ""}`}>
      {Object.entries(VIEWS).map(([each, title]) => (
        <a
          key={each}
          ref={each === current ? shown : null}
          href={hrefOf({ page: "table", id, view: each as TableView, params })}
          aria-current={each === current ? "page" : undefined}
        >
          {title}
        </a>
      ))}
    </nav>
  );
}
