import { create } from "@bufbuild/protobuf";
import type { Logger } from "pino";
import { ListNamespacesRequestSchema } from "../../../gen/lance/namespace/v1/namespace_pb.ts";
import { ListTablesRequestSchema } from "../../../gen/lance/namespace/v1/table_pb.ts";
import { isLanceError, LanceError } from "../../../namespace/errors.ts";
import { type Identifier, joinIdentifier } from "../../../namespace/identifier.ts";
import type { Backend } from "../../../namespace/lance-namespace.ts";
import { whileWaiting } from "../../../runtime/time/while-waiting.ts";
import { callOfUpkeep } from "./own-call.ts";

/** Options of {@link walkCatalog}. */
export interface WalkOptions {
  readonly log: Logger;
  /** Waited for before each request. */
  readonly turn: () => Promise<void>;
  /** Ends the walk, and the request that runs. */
  readonly signal: AbortSignal;
}

/** Number of names that a page should have. */
const PAGE_SIZE = 1_000;

/** Most pages of a listing, and most names of a namespace; a catalog that has more may have no end. */
const MAX_PAGES = 10_000;
const MAX_DEPTH = 32;

/** Errors of a namespace that the gateway may not see, or that has just been dropped. */
const PASSED = ["NamespaceNotFound", "PermissionDenied"] as const;

/** Number of listings in succession whose failure ends a walk: the upstream is failing, not a namespace. */
const MAX_FAILURES = 5;

/**
 * Yields the tables that an upstream lists to the gateway itself, page by page. Namespaces that are denied to it are left out, and so are those
 * that it cannot list, which the log names.
 *
 * @throws LanceError Unsupported if the upstream has no listings; its errors for the root, and for several namespaces in succession; the reason
 *   of the signal
 */
export function walkCatalog(
  catalog: Pick<Backend, "operations">,
  options: WalkOptions,
): AsyncGenerator<Identifier, void> {
  return walkFrom(catalog, { ...options, failed: 0 }, []);
}

/** A walk; `failed` counts the namespaces in succession that could not be listed. */
interface Walk extends WalkOptions {
  failed: number;
}

async function* walkFrom(
  catalog: Pick<Backend, "operations">,
  walk: Walk,
  id: Identifier,
): AsyncGenerator<Identifier, void> {
  const { listTables, listNamespaces } = catalog.operations;
  const { log, signal } = walk;
  if (listTables === undefined || listNamespaces === undefined)
    throw new LanceError("Unsupported", "the upstream catalog does not list its tables");
  const tables = (pageToken: string | undefined) =>
    listTables(
      create(ListTablesRequestSchema, { id: [...id], limit: PAGE_SIZE, ...tokenOf(pageToken) }),
      callOfUpkeep("listTables", id, log, signal),
    ).then(({ tables: names, pageToken: next }) => ({ names, next }));
  const namespaces = (pageToken: string | undefined) =>
    listNamespaces(
      create(ListNamespacesRequestSchema, { id: [...id], limit: PAGE_SIZE, ...tokenOf(pageToken) }),
      callOfUpkeep("listNamespaces", id, log, signal),
    ).then(({ namespaces: names, pageToken: next }) => ({ names, next }));
  try {
    for await (const name of namesOf(tables, id, walk)) yield [...id, name];
    if (id.length >= MAX_DEPTH) return;
    for await (const name of namesOf(namespaces, id, walk)) yield* walkFrom(catalog, walk, [...id, name]);
  } catch (error) {
    if (id.length === 0 || !(error instanceof LanceError) || signal.aborted) throw error;
    if (PASSED.some((kind) => isLanceError(error, kind))) return;
    walk.failed += 1;
    if (walk.failed >= MAX_FAILURES) throw error;
    log.warn(
      { namespace: joinIdentifier(id), err: error },
      "the upstream does not list a namespace; its tables are not looked after now",
    );
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
  walk: Walk,
): AsyncGenerator<string, void> {
  const { turn, log, signal } = walk;
  let token: string | undefined;
  for (let pages = 1; ; pages++) {
    await turn();
    signal.throwIfAborted();
    const { names, next = "" } = await whileWaiting(list(token), signal);
    walk.failed = 0;
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
