import { create, type Message } from "@bufbuild/protobuf";
import type { ListJobsResponse } from "../../gen/lance/gateway/v1/job_pb.ts";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import { type Call, copyCall } from "../../namespace/call/call.ts";
import {
  concernsDatabases,
  databaseOfRegion,
  type RootDatabases,
} from "../../namespace/call/database-context.ts";
import { DATABASE_HEADERS } from "../../namespace/call/headers.ts";
import { isReadAction } from "../../namespace/call/principal.ts";
import { LanceError } from "../../namespace/errors.ts";
import { DEFAULT_DELIMITER } from "../../namespace/identifier.ts";
import type { Backend } from "../../namespace/lance-namespace.ts";
import { OPERATIONS, type OperationFacts } from "../../namespace/operations/operations.ts";
import type { Databases } from "./databases.ts";
import {
  type Interceptor,
  isStream,
  type OperationInterceptors,
  type OperationName,
  type Others,
  type Step,
} from "./interceptor.ts";
import { createScopes } from "./scope.ts";

/**
 * Lets calls that name a database of the root enter it: the object of the call becomes the one below the database's namespace,
 * about which everything later decides and which the backend executes. The client sees the names without the database. A
 * name that no database of the root has is ignored, as by a server with a single database.
 */
export function enterDatabase(databases: Databases): Step {
  const scopeOf = createScopes();

  // Calls without a name, which are most of them, pass without another promise.
  return (call, request, next, others) => {
    const backend = databases.get(call.database)?.backend;
    const texts = backend?.rootDatabases;
    if (backend === undefined || texts === undefined) return next(call, request);
    const name = databaseNamed(call);
    // A name with the delimiter would be that of a namespace further down.
    if (name === undefined || name.includes(DEFAULT_DELIMITER)) return next(call, request);
    return enter({ name, backend, texts }, call, request, next, others);
  };

  async function enter(
    database: Entered,
    ...[call, request, next, others]: Parameters<Step>
  ): ReturnType<Step> {
    const { name, texts } = database;
    if (!(await texts.has(name, call))) return next(call, request);
    refuseNested(call);
    // An upstream must not enter it again.
    for (const header of DATABASE_HEADERS) {
      delete call.headers[header];
      delete call.headers[`${header}-prefix`];
    }
    call.takes = undefined;
    const scope = scopeOf(call.method);
    if (call.id.length > 0 || hasRoot(OPERATIONS[request.operation])) call.id = [name, ...call.id];
    scope.enter(request.message, name, call.id);
    const own = interceptorIn(database, request.operation, others);
    const response = await (own === undefined ? next(call, request) : own(call, request, next));
    if (!isStream(response)) scope.leave(response, name);
    return response;
  }
}

/** Whether the root of the database is an object of the operation, which only reads it. */
function hasRoot({ kind, action }: OperationFacts): boolean {
  return kind === "Namespace" && isReadAction(action);
}

/** @throws LanceError Unsupported for a database that would be in another one */
function refuseNested({ id, context = {} }: Call): void {
  if (id.length !== 1 || !concernsDatabases(context)) return;
  throw new LanceError("Unsupported", "databases cannot be nested");
}

/** A database that a call names. */
interface Entered {
  readonly name: string;
  readonly backend: Backend;
  readonly texts: RootDatabases;
}

/** Returns the step of an operation whose requests or answers name objects in another way than by lists of names. */
function interceptorIn(
  { name, backend, texts }: Entered,
  operation: OperationName,
  others: Others,
): Interceptor | undefined {
  const prefix = `${name}${DEFAULT_DELIMITER}`;

  const unsupported = (what: string) =>
    new LanceError("Unsupported", `the ${backend.name} backend has no ${what} in databases of the root`);

  const ownJob: Interceptor = async (call, request, next) => {
    const { jobId } = request.message as Message & { readonly jobId: string };
    if (backend.tableOfJob === undefined) throw unsupported("jobs");
    const table = await backend.tableOfJob(jobId);
    if (table?.[0] === name && table.length > 1) return next(call, request);
    throw new LanceError("TransactionNotFound", `there is no job ${JSON.stringify(jobId)}`);
  };

  const interceptors: OperationInterceptors = {
    async listAllTables(call, { message }) {
      const { pageToken, limit, includeDeclared } = message;
      const { listTables } = LanceNamespaceService.method;
      call.id = [name];
      const own = copyCall(call, { method: listTables });
      const asked = create(listTables.input, { id: [name], pageToken, limit, includeDeclared });
      const list = others("listTables");
      try {
        const page = await list(own, { kind: "unary", operation: "listTables", message: asked });
        return create(call.method.output, { ...page }) as never;
      } finally {
        call.admitted = own.admitted === true;
      }
    },
    async listJobs(call, request, next) {
      const answer = (await next(call, request)) as ListJobsResponse;
      answer.jobs = answer.jobs.filter(({ table }) => table.startsWith(prefix));
      for (const job of answer.jobs) job.table = job.table.slice(prefix.length);
      return answer;
    },
    async cloneTable(call, request, next) {
      const { message } = request;
      // A location leads to the same table from everywhere.
      if (!message.sourceLocation.includes("/")) message.sourceLocation = prefix + message.sourceLocation;
      return next(call, request);
    },
    async createMaterializedView(call, request, next) {
      const { message } = request;
      if (texts.enterQuery === undefined) throw unsupported("views");
      message.sourceQuery = texts.enterQuery(message.sourceQuery, name);
      return next(call, request);
    },
    async createView(call, request, next) {
      const { message } = request;
      // To the backend, its root would be that of all databases.
      if (message.defaultRoot === true)
        Object.assign(message, { defaultRoot: undefined, defaultNamespace: [name] });
      return next(call, request);
    },
    async describeMaterializedView(call, request, next) {
      const answer = await next(call, request);
      answer.query = texts.leaveQuery?.(answer.query, name) ?? answer.query;
      return answer;
    },
  };
  return OPERATIONS[operation].by === "job" ? ownJob : (interceptors[operation] as Interceptor | undefined);
}

/** The header whose value the host repeats where the region is `local`. */
const OF_REGION = "x-lancedb-database";

/**
 * Returns the name of the database for which a client sends a call: the value of `x-service-database` or of `x-lancedb-database`, or the
 * name before `.local.api.lancedb.com` in the requested host. With a `…-prefix` header, it is `NAME/PREFIX`.
 *
 * @returns undefined if the call names no database.
 * @throws LanceError InvalidInput for a prefix without a name
 */
export function databaseNamed({ headers, address }: Pick<Call, "headers" | "address">): string | undefined {
  for (const header of DATABASE_HEADERS) {
    const prefix = headers[`${header}-prefix`];
    const name = headers[header] || (header === OF_REGION ? databaseOfRegion(address?.host) : undefined);
    if (name) return prefix ? `${name}/${prefix}` : name;
    if (prefix) throw new LanceError("InvalidInput", `${header}-prefix requires ${header}`);
  }
  return undefined;
}
