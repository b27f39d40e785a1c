import { randomUUID } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import type { Logger } from "pino";
import { ListNamespacesRequestSchema } from "../../../gen/lance/namespace/v1/namespace_pb.ts";
import { ListTablesRequestSchema } from "../../../gen/lance/namespace/v1/table_pb.ts";
import { type Call, createCall } from "../../../namespace/call/call.ts";
import { isLanceError, LanceError } from "../../../namespace/errors.ts";
import { type Identifier, joinIdentifier } from "../../../namespace/identifier.ts";
import type { Backend } from "../../../namespace/lance-namespace.ts";
import { METHODS } from "../../../namespace/operations/operations.ts";
import { pagesOf } from "../../../namespace/page-progress.ts";
import { whileWaiting } from "../../../runtime/promises.ts";

const NO_SIGNAL = new AbortController().signal;

/**
 * Creates a call that no client has sent: the upstream sees the gateway's own credentials, if it has any.
 *
 * @param signal ends it. Default: it has no end
 */
export function callOfUpkeep(
  method: keyof typeof METHODS,
  id: Identifier,
  log: Logger,
  signal: AbortSignal = NO_SIGNAL,
): Call {
  const call = createCall({
    method: METHODS[method],
    protocol: "rest",
    requestId: randomUUID(),
    headers: Object.create(null),
    signal,
    deadline: undefined,
    accept: undefined,
    log,
  });
  call.id = id;
  return call;
}

/** Options of {@link walkCatalog}. */
export interface WalkOptions {
  readonly log: Logger;
  /** Waited for before each request. */
  readonly turn: () => Promise<void>;
  /** Ends the walk, and the request that runs. */
  readonly signal: AbortSignal;
  /** Number of tables that are left out, because earlier walks have yielded them. Default: none. */
  readonly after?: number | undefined;
}

/** Number of names that a page should have. */
const PAGE_SIZE = 1_000;

/** Maximum number of requests and tables of a walk, which takes a day; a catalog that has more may have no end. */
const MAX_STEPS = 100_000;

/** Maximum number of names of a namespace. */
const MAX_DEPTH = 32;

/** Errors of a namespace that the gateway may not see, or that has just been dropped. */
const PASSED = ["NamespaceNotFound", "PermissionDenied"] as const;

/** Number of listings in succession whose failure ends a walk: the upstream is failing, not a namespace. */
const MAX_FAILURES = 5;

/**
 * Yields the tables that an upstream lists to the gateway itself, page by page. Namespaces that are denied to it are left out, and so are those
 * that it cannot list, which the log names. A walk has at most 100,000 requests and tables; the log names the namespace where it ends before.
 *
 * @returns the number of tables that the next walk leaves out: 0 if this one came to the end, or no further than the one before
 * @throws LanceError Unsupported if the upstream has no listings; its errors for the root, and for several namespaces in succession; the reason
 *   of the signal
 */
export async function* walkCatalog(
  catalog: Pick<Backend, "operations">,
  options: WalkOptions,
): AsyncGenerator<Identifier, number> {
  const { after = 0 } = options;
  const walk = { ...options, after, passed: 0, failed: 0, left: MAX_STEPS };
  try {
    yield* walkFrom(catalog, walk, []);
  } catch (error) {
    if (error !== END) throw error;
    if (walk.passed > after) return walk.passed;
  }
  return 0;
}

/** Ends a walk that takes too long. */
const END = new Error("the walk has its maximum number of steps");

/**
 * A walk; `passed` counts the tables that were listed, `failed` the namespaces in succession that could not be, and `left` the steps that it
 * may still take.
 */
interface Walk extends WalkOptions {
  readonly after: number;
  passed: number;
  failed: number;
  left: number;
}

/** Counts a request or a table. */
function step(walk: Walk, id: Identifier): void {
  walk.left -= 1;
  if (walk.left >= 0) return;
  const rest =
    walk.passed > walk.after
      ? "the next walk goes on there"
      : "tables after this namespace are not looked after";
  walk.log.warn(
    { namespace: joinIdentifier(id), steps: MAX_STEPS },
    `the upstream catalog lists more than upkeep looks at in a walk; ${rest}`,
  );
  throw END;
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
    ).then(({ tables: names, pageToken: next }) => ({ names, pageToken: next }));
  const namespaces = (pageToken: string | undefined) =>
    listNamespaces(
      create(ListNamespacesRequestSchema, { id: [...id], limit: PAGE_SIZE, ...tokenOf(pageToken) }),
      callOfUpkeep("listNamespaces", id, log, signal),
    ).then(({ namespaces: names, pageToken: next }) => ({ names, pageToken: next }));
  try {
    for await (const name of namesOf(tables, id, walk)) {
      if (walk.passed >= walk.after) {
        step(walk, id);
        yield [...id, name];
      }
      walk.passed += 1;
    }
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

/** A page of a listing. */
interface Page {
  readonly names: readonly string[];
  readonly pageToken?: string | undefined;
}

async function* namesOf(
  list: (pageToken: string | undefined) => Promise<Page>,
  id: Identifier,
  walk: Walk,
): AsyncGenerator<string, void> {
  const { turn, log, signal } = walk;
  const read = async (pageToken: string | undefined) => {
    step(walk, id);
    await turn();
    signal.throwIfAborted();
    return whileWaiting(list(pageToken), signal);
  };
  const onRepeated = () =>
    log.warn(
      { namespace: joinIdentifier(id) },
      "a listing of the upstream catalog repeats its page token; tables of later pages are not looked after",
    );
  for await (const { names } of pagesOf(read, onRepeated)) {
    walk.failed = 0;
    yield* names;
  }
}
