import { create, type DescMethodUnary, type Message, type MessageShape } from "@bufbuild/protobuf";
import { LanceDbService } from "../../gen/lance/gateway/v1/lancedb_pb.ts";
import { ViewService } from "../../gen/lance/gateway/v1/sql_view_pb.ts";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import { type Call, copyCall } from "../../namespace/call/call.ts";
import { type ErrorName, isLanceError, LanceError } from "../../namespace/errors.ts";
import { type Identifier, MAX_IDENTIFIER_DEPTH, parseIdentifier } from "../../namespace/identifier.ts";
import type { Backend } from "../../namespace/lance-namespace.ts";
import type { Lookups, Touch } from "../../namespace/operations/touch.ts";
import { pagesOf } from "../../namespace/page-progress.ts";
import { type Databases, databaseOf } from "../call/databases.ts";
import type { OperationRequest, Others } from "../call/interceptor.ts";
import type { Permissions } from "./permissions.ts";

/** Entries that a lookup takes at a time. */
const PAGE = 1_000;

/** Maximum number of jobs whose tables are remembered. */
const MAX_JOBS = 10_000;

/** How long the name of a job's table is remembered, in milliseconds: the table may get another one, to which others have a right. */
const JOB_MS = 10_000;

/** Creates what finds the objects that requests do not name, by calls that only the gateway sees. */
export function createLookups(
  permissions: Permissions,
  databases: Databases,
): (call: Call, others: Others) => Lookups {
  const tablesOfJobs = new Map<string, { readonly table: Identifier; readonly until: number }>();

  /** Returns the table of a job, also if the caller may not see it. */
  async function findJob(call: Call, others: Others, jobId: string): Promise<Identifier | undefined> {
    const { backend } = databaseOf(databases, call);
    const own = await backend.tableOfJob?.(jobId);
    const isKnown = backend.tableOfJob !== undefined && backend.forwardsJobs !== true;
    if (own !== undefined || isKnown) return own;
    const key = JSON.stringify([permissions.databaseOf(call), jobId]);
    const known = tablesOfJobs.get(key);
    if (known !== undefined && performance.now() < known.until) return known.table;
    if (await isUnknownJob(call, others, jobId)) return undefined;
    for await (const { jobs } of listed(call, others, LanceDbService.method.listJobs, [])) {
      const job = jobs.find((each) => each.jobId === jobId);
      if (job === undefined) continue;
      const table = parseIdentifier(job.table);
      if (tablesOfJobs.size >= MAX_JOBS) tablesOfJobs.clear();
      tablesOfJobs.set(key, { table, until: performance.now() + JOB_MS });
      return table;
    }
    return undefined;
  }

  return (call, others) => ({
    async tableOfJob(jobId) {
      const id = await findJob(call, others, jobId);
      if (id === undefined) return undefined;
      const isVisible = await permissions.allow(call, { operation: "describeTable", kind: "Table", id });
      return isVisible ? id : undefined;
    },

    contentsOf: (namespace) => contentsOf(call, others, namespace),

    sourcesOf(view) {
      const { backend } = databaseOf(databases, call);
      if (backend.sourcesOf !== undefined) return backend.sourcesOf(view);
      throw cannotTell(call, backend, "which tables a query reads");
    },

    rootTableAt: (location) => databaseOf(databases, call).backend.rootTableAt?.(location),

    async tableAt(place) {
      const { backend } = databaseOf(databases, call);
      if (backend.tableAt !== undefined) return backend.tableAt(place);
      throw cannotTell(call, backend, "which table has a location");
    },
  });
}

function cannotTell({ method }: Call, { name }: Backend, what: string): LanceError {
  const text = `${method.name} is not allowed: the ${name} backend cannot tell ${what}`;
  return new LanceError("PermissionDenied", text);
}

/** Whether a backend says that it has no such job: anyone can think up any number of ids, and a list of all jobs for each would be long. */
async function isUnknownJob(call: Call, others: Others, jobId: string): Promise<boolean> {
  const method = LanceDbService.method.describeJob;
  try {
    await ask(call, others, method, create(method.input, { jobId }));
    return false;
  } catch (error) {
    // An upstream that cannot describe jobs may list them.
    if (isLanceError(error, "Unsupported")) return false;
    if (error instanceof LanceError && error.entry.httpStatus === 404) return true;
    throw error;
  }
}

/**
 * Returns everything below a namespace, with the operations that remove it. Where one of its lists says that the namespace is missing, what the other
 * lists have stays: another call may make the namespace again, and an upstream says the same about a list that it does not know.
 */
async function contentsOf(call: Call, others: Others, namespace: Identifier): Promise<Touch[]> {
  // An upstream that lists the same for every namespace would have no end.
  if (namespace.length > MAX_IDENTIFIER_DEPTH)
    throw new LanceError("ServiceUnavailable", "namespaces exceed the maximum nesting depth");
  const { listTables, listNamespaces } = LanceNamespaceService.method;
  const found: Touch[] = [];
  for await (const { tables } of unlessMissing(listed(call, others, listTables, namespace))) {
    for (const name of tables) {
      found.push({ operation: "dropTable", kind: "Table", id: [...namespace, name], unnamed: true });
    }
  }
  // A backend without views has none to remove.
  const views = listed(call, others, ViewService.method.listViews, namespace);
  for await (const { views: names } of unlessMissing(views, "Unsupported")) {
    for (const name of names)
      found.push({ operation: "dropView", kind: "Table", id: [...namespace, name], unnamed: true });
  }
  for await (const { namespaces } of unlessMissing(listed(call, others, listNamespaces, namespace))) {
    for (const name of namespaces) {
      const id = [...namespace, name];
      found.push({ operation: "dropNamespace", kind: "Namespace", id, unnamed: true });
      // Each on its own, because a call takes about 120,000 arguments at most.
      for (const touch of await contentsOf(call, others, id)) found.push(touch);
    }
  }
  return found;
}

/** Yields the pages of a list; none further where it fails with NamespaceNotFound or another of the given errors. */
async function* unlessMissing<P>(pages: AsyncIterable<P>, ...more: readonly ErrorName[]): AsyncGenerator<P> {
  try {
    yield* pages;
  } catch (error) {
    if (!["NamespaceNotFound" as const, ...more].some((name) => isLanceError(error, name))) throw error;
  }
}

/** Makes a call of the gateway's own. */
async function ask<M extends DescMethodUnary>(
  call: Call,
  others: Others,
  method: M,
  message: Message,
  id: Identifier = [],
): Promise<MessageShape<M["output"]>> {
  const own = copyCall(call, { method, id, takes: undefined, responseHeaders: {} });
  const request = { kind: "unary", operation: method.localName, message } as unknown as OperationRequest;
  return (await others(request.operation)(own, request)) as unknown as MessageShape<M["output"]>;
}

/** Calls a list for all of its pages. */
function listed<M extends DescMethodUnary>(call: Call, others: Others, method: M, id: Identifier) {
  return pagesOf(async (pageToken) => {
    const message = create(method.input, { id: [...id], limit: PAGE, pageToken } as never);
    const page = await ask(call, others, method, message, id);
    return page as MessageShape<M["output"]> & { readonly pageToken?: string };
  });
}
