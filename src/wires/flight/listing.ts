import { ViewService } from "../../gen/lance/gateway/v1/sql_view_pb.ts";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import type { Call } from "../../namespace/call/call.ts";
import { isLanceError } from "../../namespace/errors.ts";
import type { Identifier } from "../../namespace/identifier.ts";
import { pagesOf } from "../../namespace/page-progress.ts";
import type { PipelineCalls, Presented } from "./pipeline-calls.ts";

const { listNamespaces, listTables } = LanceNamespaceService.method;

/** Names on a page of a listing. */
const PAGE_NAMES = 1_000;

/** Yields a namespace and those below it, as far as the caller may list them, each before its own. */
export async function* visibleNamespaces(
  root: Identifier,
  calls: PipelineCalls,
  presented: Presented = {},
): AsyncIterable<Identifier> {
  const waiting: Identifier[] = [root];
  for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
    const namespace = next;
    yield namespace;
    try {
      for await (const name of namesIn(namespace, calls, presented)) waiting.push([...namespace, name]);
    } catch (thrown) {
      if (namespace === root || !isLeftOut(thrown)) throw thrown;
    }
  }
}

/** Whether an object is left out of a listing: another call may have dropped it, and a caller may know of one that it may not read. */
export function isLeftOut(thrown: unknown): boolean {
  return LEFT_OUT.some((name) => isLanceError(thrown, name));
}

const LEFT_OUT = ["NamespaceNotFound", "TableNotFound", "PermissionDenied"] as const;

/** Yields the tables with data in a namespace, page by page. */
export async function* tablePages(
  namespace: Identifier,
  calls: PipelineCalls,
  presented: Presented = {},
): AsyncIterable<{ readonly tables: readonly string[]; readonly call: Call }> {
  const request = { limit: PAGE_NAMES, includeDeclared: false, id: [...namespace] };
  yield* pagesOf(async (pageToken) => {
    const { response, call } = await calls.unary(listTables, { ...request, pageToken }, presented);
    return { tables: response.tables, call, pageToken: response.pageToken };
  });
}

/** Yields the names of the views in a namespace; none if the catalog has no views. */
export async function* viewNames(
  namespace: Identifier,
  calls: PipelineCalls,
  presented: Presented,
): AsyncIterable<string> {
  const request = { limit: PAGE_NAMES, id: [...namespace] };
  const read = async (pageToken: string | undefined) =>
    (await calls.unary(ViewService.method.listViews, { ...request, pageToken }, presented)).response;
  try {
    for await (const { views } of pagesOf(read)) yield* views;
  } catch (thrown) {
    if (!isLanceError(thrown, "Unsupported")) throw thrown;
  }
}

async function* namesIn(
  namespace: Identifier,
  calls: PipelineCalls,
  presented: Presented,
): AsyncIterable<string> {
  const request = { limit: PAGE_NAMES, id: [...namespace] };
  const read = async (pageToken: string | undefined) =>
    (await calls.unary(listNamespaces, { ...request, pageToken }, presented)).response;
  for await (const { namespaces } of pagesOf(read)) yield* namespaces;
}
