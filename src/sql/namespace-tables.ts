import { formatFieldPath } from "../arrow/field-path.ts";
import { END_OF_STREAM } from "../arrow/ipc/stream.ts";
import { isLanceError, LanceError } from "../namespace/errors.ts";
import { pagesOf } from "../namespace/page-progress.ts";
import { putNewest } from "../runtime/collections.ts";
import type {
  ListedPage,
  ReadableNamespace,
  ReadOptions,
  TableQuery,
  TableState,
  VersionFacts,
  ViewPage,
} from "./readable-namespace.ts";
import type { SqlScan, SqlSearch, SqlTable, SqlTableName, SqlTables, SqlView } from "./sql-engine.ts";

/** Tables that the statements of a caller have opened. A statement that opens one again asks only whether it is as it was. */
export interface KnownTables {
  find(name: SqlTableName): KnownTable | undefined;
  note(name: SqlTableName, known: KnownTable): void;
}

/** A table, and the state of its version; see {@link SqlTables.stateOf}. */
interface KnownTable {
  readonly table: SqlTable;
  readonly state: string;
}

/** Maximum number of tables that are known, of all callers, and size of the schema of each, in bytes. */
const [MOST_KNOWN, MOST_SCHEMA_BYTES] = [512, 65_536];

/**
 * Returns a function that returns the known tables of a caller, by its key and its database. What one caller was told is not told to
 * another.
 */
export function createKnownTables(): (caller: string, database?: string) => KnownTables {
  const tables = new Map<string, KnownTable>();
  return (caller, database) => {
    const keyOf = ({ path, version, branch }: SqlTableName) =>
      JSON.stringify([caller, database, path, String(version), branch]);
    return {
      find: (name) => tables.get(keyOf(name)),
      note(name, known) {
        if (known.table.schema.byteLength <= MOST_SCHEMA_BYTES)
          putNewest(tables, keyOf(name), known, MOST_KNOWN);
      },
    };
  };
}

/** Names on a page of a listing. */
const PAGE_NAMES = 1_000;

/**
 * Returns the tables of a namespace. Each is read by queries of it, as its caller may make them, at the version that it has when a statement names it.
 *
 * @param database name of the database that the namespace is of. Default: names of tables have no database.
 * @param known tables that the caller's statements have opened. Default: each is described anew.
 */
export function tablesOfNamespace(
  namespace: ReadableNamespace,
  database?: string,
  known?: KnownTables,
): SqlTables {
  const { describeMaterializedView, listMaterializedViews } = namespace;
  return {
    ...(namespace.listTables && {
      listTables: (id: readonly string[], signal: AbortSignal) => namesIn(namespace, id, signal),
    }),
    ...(describeMaterializedView && {
      describeMaterializedView: (path, signal) => describeMaterializedView({ id: [...path] }, { signal }),
    }),
    ...(listMaterializedViews && {
      listMaterializedViews: (id, signal) => viewNames(listMaterializedViews, id, signal),
    }),
    async open(name, signal) {
      if (name.database !== undefined && name.database !== database)
        throw new LanceError("Unsupported", `the database "${name.database}" cannot be named here`);
      try {
        return (
          (await openKnown(namespace, name, signal, known)) ??
          (await openTable(namespace, name, signal, known))
        );
      } catch (thrown) {
        const isMissing = isLanceError(thrown, "TableNotFound");
        const view = isMissing ? await viewOf(namespace, name, signal) : undefined;
        if (view !== undefined) return view;
        throw thrown;
      }
    },
    scan: ({ path, version, branch, search }, scan, signal) => {
      const state = { id: [...path], version, branch };
      const query = search === undefined ? queryOf(scan) : searchQueryOf(search, scan);
      return namespace.queryTable({ ...state, ...query }, { signal }).bytes();
    },
    stateOf: (table, signal) => stateOf(namespace, table, signal),
  };
}

type QueryOf = Omit<TableQuery, keyof TableState>;

function queryOf({ columns, filter, limit }: SqlScan): QueryOf {
  return {
    columns: { columnNames: columns.map((column) => formatFieldPath([column])) },
    ...(filter !== undefined && { filter }),
    ...(limit !== undefined && { k: BigInt(limit) }),
  };
}

function searchQueryOf(
  { score, rows, isPrefilter, vector, words, ...search }: SqlSearch,
  scan: SqlScan,
): QueryOf {
  // The engine adds the score in any case, and warns if it is not asked for.
  const columns = [...new Set([...scan.columns, score])];
  const filter = [search.filter, scan.filter].filter((each) => each !== undefined).map((each) => `(${each})`);
  return {
    ...queryOf({ columns, filter: filter.length === 0 ? undefined : filter.join(" AND "), limit: rows }),
    prefilter: isPrefilter,
    ...(vector && {
      vector: { singleVector: [...vector.values] },
      vectorColumn: formatFieldPath([vector.column]),
      bypassVectorIndex: !vector.usesIndex,
      ...{ nprobes: vector.probes, refineFactor: vector.refineFactor, distanceType: vector.distanceType },
    }),
    ...(words && {
      fullTextQuery: { stringQuery: { columns: [formatFieldPath([words.column])], query: words.query } },
    }),
  };
}

/** Yields the names of tables with data, and of views, in the order that both listings have. */
async function* namesIn(
  namespace: ReadableNamespace,
  id: readonly string[],
  signal: AbortSignal,
): AsyncIterable<string> {
  const [tables, views] = [tablesIn(namespace, id, signal), viewsIn(namespace, id, signal)];
  let table = await tables.next();
  let view = await views.next();
  while (!(table.done && view.done)) {
    if (view.done || (!table.done && table.value <= view.value)) {
      yield table.value as string;
      table = await tables.next();
    } else {
      yield view.value;
      view = await views.next();
    }
  }
}

async function* tablesIn(
  { listTables }: ReadableNamespace,
  namespace: readonly string[],
  signal: AbortSignal,
): AsyncGenerator<string, void> {
  if (listTables === undefined) return;
  const list = async (request: ListedPage) => {
    const { tables, pageToken } = await listTables({ ...request, includeDeclared: false }, { signal });
    return { names: tables, pageToken };
  };
  yield* namesOf(list, namespace);
}

async function* viewsIn(
  { listViews }: ReadableNamespace,
  namespace: readonly string[],
  signal: AbortSignal,
): AsyncGenerator<string, void> {
  if (listViews === undefined) return;
  try {
    yield* viewNames(listViews, namespace, signal);
  } catch (thrown) {
    // Few catalogs have views.
    if (!isLanceError(thrown, "Unsupported")) throw thrown;
  }
}

/** Yields the names of the views that a listing has. */
function viewNames(
  listViews: (request: ListedPage, options: ReadOptions) => Promise<ViewPage>,
  namespace: readonly string[],
  signal: AbortSignal,
): AsyncIterable<string> {
  const list = async (request: ListedPage) => {
    const { views, pageToken } = await listViews(request, { signal });
    return { names: views, pageToken };
  };
  return namesOf(list, namespace);
}

/** Yields the names on the pages of a listing. */
async function* namesOf(
  list: (request: ListedPage) => Promise<{ names: readonly string[]; pageToken: string | undefined }>,
  namespace: readonly string[],
): AsyncIterable<string> {
  const page = (pageToken: string | undefined) => list({ id: [...namespace], limit: PAGE_NAMES, pageToken });
  for await (const { names } of pagesOf(page)) yield* names;
}

/** Returns what tells a version of a table from that of a later one of its name, for a caller who may query it. */
async function stateOf(
  namespace: ReadableNamespace,
  { path, version, branch }: SqlTable,
  signal: AbortSignal,
): Promise<string | undefined> {
  if (version === undefined) return undefined;
  const state = { id: [...path], version, branch };
  const [facts] = await Promise.all([
    versionFacts(namespace, state, signal),
    readNothing(namespace, state, signal),
  ]);
  return stateText(facts);
}

function stateText(facts: VersionFacts | undefined): string | undefined {
  if (facts?.timestampMillis === undefined) return undefined;
  const { version, manifestPath, manifestSize, timestampMillis, eTag } = facts;
  return [version, manifestPath, manifestSize, timestampMillis, eTag].join("\n");
}

/** @param state default: the newest version */
async function versionFacts(
  namespace: ReadableNamespace,
  state: TableState,
  signal: AbortSignal,
): Promise<VersionFacts | undefined> {
  try {
    return (await namespace.describeTableVersion(state, { signal })).version;
  } catch (thrown) {
    if (isLanceError(thrown, "Unsupported") || isLanceError(thrown, "PermissionDenied")) return undefined;
    throw thrown;
  }
}

/** Returns a table that is as it was when the caller has opened it before, if the caller may still read it. */
async function openKnown(
  namespace: ReadableNamespace,
  name: SqlTableName,
  signal: AbortSignal,
  known: KnownTables | undefined,
): Promise<SqlTable | undefined> {
  const before = known?.find(name);
  if (before === undefined) return undefined;
  const { version: asked, branch } = name;
  const id = [...name.path];
  const { version, rows, schema } = before.table;
  // A failure is told by the description that follows.
  const facts = versionFacts(namespace, { id, version: asked, branch }, signal).catch(() => undefined);
  // It authorizes the read. Nobody waits for it if the table has changed.
  const count = namespace.countTableRows({ id, version, branch }, { signal });
  count.catch(() => {});
  if (stateText(await facts) !== before.state) return undefined;
  return Number((await count).count) === rows ? { ...name, version, rows, schema } : undefined;
}

async function openTable(
  namespace: ReadableNamespace,
  name: SqlTableName,
  signal: AbortSignal,
  known: KnownTables | undefined,
): Promise<SqlTable> {
  const { version: asked, branch } = name;
  const id = [...name.path];
  // Without the details, a description needs no version.
  const request = { id, version: asked, branch, loadDetailedMetadata: true };
  const described = await namespace.describeTable(request, { signal });
  const version = asked ?? described.version;
  const state = { id, version, branch };
  const isKept = known !== undefined && version !== undefined;
  const [schema, rows, facts] = await Promise.all([
    readNothing(namespace, state, signal),
    namespace.countTableRows(state, { signal }),
    isKept ? versionFacts(namespace, state, signal).catch(() => undefined) : undefined,
  ]);
  const table = {
    ...{ ...name, version },
    ...{ schema: Buffer.concat([schema, END_OF_STREAM]), rows: Number(rows.count) },
  };
  const text = stateText(facts);
  if (text !== undefined) known?.note(name, { table, state: text });
  return table;
}

/** Returns the view of a name; undefined if there is none, the caller may not describe it, or the catalog has no views. */
async function viewOf(
  { describeView }: ReadableNamespace,
  name: SqlTableName,
  signal: AbortSignal,
): Promise<SqlView | undefined> {
  const view = await describeView?.({ id: [...name.path] }, { signal }).catch((thrown) => {
    if (thrown instanceof LanceError && !PASSED_ON.has(thrown.kind)) return undefined;
    throw thrown;
  });
  if (view === undefined) return undefined;
  if (name.version !== undefined || name.branch !== undefined)
    throw new LanceError("InvalidInput", `"${name.path.join(".")}" is a view, which has no versions`);
  return { ...name, query: view.query, namespacePath: view.defaultNamespace };
}

/** Errors that do not say that there is no view. An upstream without views may answer anything else. */
const PASSED_ON: ReadonlySet<string> = new Set([
  ...["Cancelled", "DeadlineExceeded", "Internal", "ServiceUnavailable", "Throttling"],
]);

/** Queries a table for none of its rows, and returns the stream. */
function readNothing(namespace: ReadableNamespace, state: TableState, signal: AbortSignal) {
  return allOf(namespace.queryTable({ ...state, filter: "false", k: 1n }, { signal }).bytes());
}

async function allOf(pieces: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const all: Uint8Array[] = [];
  for await (const piece of pieces) all.push(piece);
  return Buffer.concat(all);
}
