import { create } from "@bufbuild/protobuf";
import { ListNamespacesResponseSchema } from "../../../../gen/lance/namespace/v1/namespace_pb.ts";
import {
  ListAllTablesResponseSchema,
  ListTablesResponseSchema,
} from "../../../../gen/lance/namespace/v1/table_pb.ts";
import { concernsDatabases } from "../../../../namespace/call/database-context.ts";
import type { Identifier } from "../../../../namespace/identifier.ts";
import type { LanceNamespace } from "../../../../namespace/lance-namespace.ts";
import { createSharedCheck } from "../../../../runtime/promises.ts";
import type { Layout } from "../../catalog/base/layout.ts";
import { rootLocation, rootName } from "../../catalog/base/location-names.ts";
import type { CatalogContext, TableContext } from "../../catalog/catalog-context.ts";
import { compareNames, firstAfter, mergeNames } from "../../catalog/state/row.ts";
import type { CatalogState } from "../../catalog/state/state.ts";
import { PROBES, unlistedAmong } from "../../catalog/walk.ts";
import { allowStaleness, type Staleness } from "../../concurrency/shared-checks.ts";
import { createStampMemory } from "../../format/directory-stamp.ts";
import type { ObjectStore } from "../../format/storage.ts";
import type { DirContext, PageContext } from "../context.ts";
import { pageSize } from "../paging.ts";
import { objectIdOf, requireListed } from "../tables/naming/object-names.ts";
import { isDatabaseIn } from "./databases.ts";

/** The operations that list children, page by page. */
export function createListOperations(
  context: TableContext & PageContext & Pick<DirContext, "staleness">,
): Pick<LanceNamespace, "listNamespaces" | "listTables" | "listAllTables"> {
  const { catalog, store, layout, staleness } = context;
  const directories = createBaseListing(store, layout, staleness);

  /** @throws LanceError as {@link requireListed} */
  async function stateWith(id: Identifier): Promise<CatalogState> {
    const state = await catalog.read();
    requireListed(state, id);
    return state;
  }

  async function pageOfTables(id: Identifier, request: PageRequest): Promise<Page> {
    const state = await stateWith(id);
    const source: Source = async (after, count) => {
      const listed = state.children(objectIdOf(id), "table", after, count);
      if (id.length > 0) return listed;
      // A full page needs no look beyond its end.
      const end = listed.length === count ? listed.at(-1) : undefined;
      const range = { after, end, limit: count };
      return mergeNames(listed, await unlistedTables(context, state, await directories(), range), count);
    };
    const place = { after: request.pageToken ?? "", limit: pageSize(context, request.limit) };
    if (request.includeDeclared ?? true) return pageOf(source, place);
    return pageOfSome(source, place, async (name) => {
      const row = state.get(objectIdOf([...id, name]));
      const location = row === undefined ? rootLocation([name]) : row.location;
      return location !== undefined && layout.hasData(location);
    });
  }

  return {
    async listNamespaces({ pageToken: after = "", limit, context: facts }, { id }) {
      const state = await stateWith(id);
      const source: Source = async (from, count) => state.children(objectIdOf(id), "namespace", from, count);
      const place = { after, limit: pageSize(context, limit) };
      const { names, ...page } = await (id.length === 0 && concernsDatabases(facts)
        ? pageOfSome(source, place, async (name) => isDatabaseIn(state, name))
        : pageOf(source, place));
      return create(ListNamespacesResponseSchema, { namespaces: names, ...page });
    },
    async listTables(request, { id }) {
      const { names, ...page } = await pageOfTables(id, request);
      return create(ListTablesResponseSchema, { tables: names, ...page });
    },
    async listAllTables(request) {
      // Bare names of root tables are the only form that every client reads.
      const { names, ...page } = await pageOfTables([], request);
      return create(ListAllTablesResponseSchema, { tables: names, ...page });
    },
  };
}

interface PageRequest {
  readonly pageToken?: string | undefined;
  readonly limit?: number | undefined;
  readonly includeDeclared?: boolean | undefined;
}

interface Page {
  readonly names: string[];
  /**
   * The last name of the page, after which the next page begins; absent on the last page. LanceDB's `table_names` lets
   * its caller give such a name, so a token is the plain name.
   */
  readonly pageToken?: string;
}

/** Returns up to `limit` names after a given name, in order. */
type Source = (after: string, limit: number) => Promise<string[]>;

/** Where a page begins, and its length. */
interface Place {
  /** The last name before it. */
  readonly after: string;
  readonly limit: number;
}

async function pageOf(source: Source, { after, limit }: Place): Promise<Page> {
  return cut(await source(after, limit + 1), limit);
}

/** Returns a page of the names that meet a condition which only the storage knows. */
async function pageOfSome(
  source: Source,
  { after: start, limit }: Place,
  isMeant: (name: string) => Promise<boolean>,
): Promise<Page> {
  const names: string[] = [];
  for (let after = start; ; ) {
    const batch = await source(after, PROBES);
    const meant = await Promise.all(batch.map(isMeant));
    names.push(...batch.filter((_, i) => meant[i]));
    const last = batch.at(-1);
    if (names.length > limit || last === undefined || batch.length < PROBES) return cut(names, limit);
    after = last;
  }
}

/** Returns a page of names, of which any beyond its length shows that another page follows. */
function cut(names: string[], limit: number): Page {
  if (names.length <= limit) return { names };
  const page = names.slice(0, limit);
  return { names: page, pageToken: page.at(-1) ?? "" };
}

/**
 * Returns up to `limit` names of root tables that have a directory but no row, in order.
 *
 * @param names the names of all directories, in order
 * @param range `after` leaves out the names up to this one, and `end` those past this one; undefined leaves out none
 */
async function unlistedTables(
  context: CatalogContext,
  state: CatalogState,
  names: readonly string[],
  { after, end, limit }: Place & { readonly end: string | undefined },
): Promise<string[]> {
  const found: string[] = [];
  let waiting: string[] = [];
  for (let i = firstAfter(names, after); found.length < limit; i++) {
    const name = names[i];
    const isPast = name === undefined || (end !== undefined && compareNames(name, end) > 0);
    if (!isPast && state.ownerOf(rootLocation([name])) === undefined && state.get(name) === undefined) {
      waiting.push(rootLocation([name]));
    }
    if (!isPast && waiting.length < PROBES) continue;
    found.push(...(await unlistedAmong(context, waiting)).map(rootName));
    waiting = [];
    if (isPast) break;
  }
  return found.slice(0, limit);
}

/**
 * Creates a listing of the tables that directories in the base may represent: the names of the `*.lance` directories
 * without that ending, in the order of {@link compareNames}, including every directory that was created before the
 * call.
 *
 * On a disk it reads the base again only if its stamp has changed, or was too young to prove anything.
 */
export function createBaseListing(
  store: ObjectStore,
  layout: Pick<Layout, "baseKey" | "tableDirectories">,
  staleness: Staleness,
): () => Promise<readonly string[]> {
  let names: readonly string[] = [];
  const stamps = createStampMemory();

  const look = createSharedCheck(async () => {
    const before = performance.now();
    const seen = store.files?.directoryStamp(layout.baseKey);
    if (seen !== undefined && stamps.isUnchanged(seen)) return;
    const directories = await layout.tableDirectories();
    names = directories.map(rootName).sort(compareNames);
    if (seen === undefined) stamps.forget();
    else stamps.note(seen, before);
  });
  const lenient = allowStaleness(look, staleness);
  return async () => {
    await lenient();
    return names;
  };
}
