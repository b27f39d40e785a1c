import { create } from "@bufbuild/protobuf";
import { ListNamespacesResponseSchema } from "../../../gen/lance/namespace/v1/namespace_pb.ts";
import {
  ListAllTablesResponseSchema,
  ListTablesResponseSchema,
} from "../../../gen/lance/namespace/v1/table_pb.ts";
import type { Identifier } from "../../../namespace/identifier.ts";
import type { LanceNamespace } from "../../../namespace/port.ts";
import type { CatalogState } from "../catalog/state.ts";
import type { DirContext } from "./context.ts";
import { isNamespace, namespaceNotFound, objectIdOf } from "./lookup.ts";
import { pageSize } from "./paging.ts";

/** The operations that list children, page by page. */
export function createListOperations(
  context: DirContext,
): Pick<LanceNamespace, "listNamespaces" | "listTables" | "listAllTables"> {
  const { catalog } = context;

  /** The state, once it is known to have the namespace, or children of one that another writer left out. */
  async function stateWith(id: Identifier): Promise<CatalogState> {
    const state = await catalog.read();
    if (isNamespace(state, id) || state.hasChildren(objectIdOf(id))) return state;
    throw namespaceNotFound(id);
  }

  async function pageOfTables(id: Identifier, request: PageRequest): Promise<Page> {
    const state = await stateWith(id);
    const unlisted = id.length === 0 ? await unlistedTables(context, state) : [];
    const source = (after: string, limit: number) =>
      merge(
        state.children(objectIdOf(id), "table", after, limit),
        unlisted.filter((name) => name > after),
        limit,
      );
    const limit = pageSize(context, request.limit);
    if (request.includeDeclared ?? true) return pageOf(source, request.pageToken, limit);
    return pageOfWritten(context, state, id, source, request.pageToken, limit);
  }

  return {
    async listNamespaces({ pageToken, limit }, { id }) {
      const state = await stateWith(id);
      const source: Source = (after, count) => state.children(objectIdOf(id), "namespace", after, count);
      const { names, ...page } = pageOf(source, pageToken, pageSize(context, limit));
      return create(ListNamespacesResponseSchema, { namespaces: names, ...page });
    },
    async listTables(request, { id }) {
      const { names, ...page } = await pageOfTables(id, request);
      return create(ListTablesResponseSchema, { tables: names, ...page });
    },
    async listAllTables(request) {
      // Bare names of root tables are the one form that every client reads.
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
   * The last name of the page, where the next one goes on; absent on the last page. LanceDB's `table_names`
   * takes such a name from its caller, so a token is the plain name.
   */
  readonly pageToken?: string;
}

/** Up to `limit` names after a given one, in order. */
type Source = (after: string, limit: number) => string[];

function pageOf(source: Source, token = "", limit: number): Page {
  const names = source(token, limit + 1);
  if (names.length <= limit) return { names };
  const page = names.slice(0, limit);
  return { names: page, pageToken: page.at(-1) ?? "" };
}

/** How many tables are looked at together. */
const PROBES = 64;

/** A page of tables that have data, which is asked of the storage. */
async function pageOfWritten(
  { layout }: DirContext,
  state: CatalogState,
  id: Identifier,
  source: Source,
  token = "",
  limit: number,
): Promise<Page> {
  const names: string[] = [];
  for (let after = token; ; ) {
    const batch = source(after, PROBES);
    const written = await Promise.all(
      batch.map((name) => layout.hasData(state.get(objectIdOf([...id, name]))?.location ?? `${name}.lance`)),
    );
    names.push(...batch.filter((_, i) => written[i]));
    const last = batch.at(-1);
    if (names.length > limit) {
      const page = names.slice(0, limit);
      return { names: page, pageToken: page.at(-1) ?? "" };
    }
    if (last === undefined || batch.length < PROBES) return { names };
    after = last;
  }
}

/** The names of root tables that only their directories tell of, in order. */
async function unlistedTables({ layout }: DirContext, state: CatalogState): Promise<string[]> {
  const directories = (await layout.tableDirectories()).filter(
    (name) => state.ownerOf(name) === undefined && state.get(name.slice(0, -".lance".length)) === undefined,
  );
  const real = await Promise.all(directories.map((name) => layout.isUnlistedTable(name)));
  return directories
    .filter((_, i) => real[i])
    .map((name) => name.slice(0, -".lance".length))
    .sort();
}

/** The first names of two ordered lists without a name in common. */
function merge(a: readonly string[], b: readonly string[], limit: number): string[] {
  if (b.length === 0) return a.slice(0, limit);
  const names: string[] = [];
  for (let [i, j] = [0, 0]; names.length < limit && (i < a.length || j < b.length); ) {
    const [left, right] = [a[i], b[j]];
    if (right === undefined || (left !== undefined && left < right)) {
      names.push(left as string);
      i++;
    } else {
      names.push(right);
      j++;
    }
  }
  return names;
}
