import { create } from "@bufbuild/protobuf";
import type { Logger } from "pino";
import { ListNamespacesRequestSchema } from "../../../gen/lance/namespace/v1/namespace_pb.ts";
import { ListTablesRequestSchema } from "../../../gen/lance/namespace/v1/table_pb.ts";
import { isLanceError, LanceError } from "../../../namespace/errors.ts";
import { type Identifier, joinIdentifier } from "../../../namespace/identifier.ts";
import type { Backend } from "../../../namespace/lance-namespace.ts";
import { callOfUpkeep } from "./own-call.ts";

/** Options of {@link walkCatalog}. */
export interface WalkOptions {
  readonly log: Logger;
  /** Waited for before each request. */
  readonly turn: () => Promise<void>;
}

/** Number of names that a page should have. */
const PAGE_SIZE = 1_000;

/** Most pages of a listing, and most names of a namespace; a catalog that has more may have no end. */
const MAX_PAGES = 10_000;
const MAX_DEPTH = 32;

/** Errors of a namespace that the gateway may not see, or that has just been dropped. */
const PASSED = ["NamespaceNotFound", "PermissionDenied"] as const;

/**
 * Yields the tables that an upstream lists to the gateway itself, page by page. Namespaces that are denied to it are left out.
 *
 * @throws LanceError Unsupported if the upstream has no listings; its other errors
 */
export async function* walkCatalog(
  catalog: Pick<Backend, "operations">,
  options: WalkOptions,
  id: Identifier = [],
): AsyncGenerator<Identifier, void> {
  const { listTables, listNamespaces } = catalog.operations;
  if (listTables === undefined || listNamespaces === undefined)
    throw new LanceError("Unsupported", "the upstream catalog does not list its tables");
  const tables = (pageToken: string | undefined) =>
    listTables(
      create(ListTablesRequestSchema, { id: [...id], limit: PAGE_SIZE, ...tokenOf(pageToken) }),
      callOfUpkeep("listTables", id, options.log),
    ).then(({ tables: names, pageToken: next }) => ({ names, next }));
  const namespaces = (pageToken: string | undefined) =>
    listNamespaces(
      create(ListNamespacesRequestSchema, { id: [...id], limit: PAGE_SIZE, ...tokenOf(pageToken) }),
      callOfUpkeep("listNamespaces", id, options.log),
    ).then(({ namespaces: names, pageToken: next }) => ({ names, next }));
  try {
    for await (const name of namesOf(tables, id, options)) yield [...id, name];
    if (id.length >= MAX_DEPTH) return;
    for await (const name of namesOf(namespaces, id, options))
      yield* walkCatalog(catalog, options, [...id, name]);
  } catch (error) {
    if (id.length === 0 || !PASSED.some((kind) => isLanceError(error, kind))) throw error;
  }
}

const tokenOf = (pageToken: string | undefined) => (pageToken === undefined ? {} : { pageToken });

/** A page of a listing; `next` is the token of the following one. */
interface Page {
  readonly names: readonly string[];
  readonly next?: string | undefined;
}

async function* namesOf(
  list: (pageToken: string | undefined) => Promise<Page>,
  id: Identifier,
  { turn, log }: WalkOptions,
): AsyncGenerator<string, void> {
  let token: string | undefined;
  for (let pages = 1; ; pages++) {
    await turn();
    const { names, next = "" } = await list(token);
    yield* names;
    if (next === "") return;
    if (next === token || pages === MAX_PAGES) {
      log.warn(
        { namespace: joinIdentifier(id), pages },
        "a listing of the upstream catalog does not end; tables of later pages are not looked after",
      );
      return;
    }
    token = next;
  }
}
