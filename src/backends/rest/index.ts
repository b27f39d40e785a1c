import type { DescMethod } from "@bufbuild/protobuf";
import { UPSTREAM_FORMS } from "../../dialects/upstream.ts";
import { http } from "../../gen/google/api/annotations_pb.ts";
import { file_lance_gateway_v1_function } from "../../gen/lance/gateway/v1/function_pb.ts";
import { LanceDbService } from "../../gen/lance/gateway/v1/lancedb_pb.ts";
import { ViewService } from "../../gen/lance/gateway/v1/sql_view_pb.ts";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import type {
  Backend,
  LanceDbExtensions,
  LanceNamespace,
  ViewOperations,
} from "../../namespace/lance-namespace.ts";
import { optionOf } from "../../namespace/option.ts";
import { planView } from "../../namespace/plan-view.ts";
import { createClientBindings } from "../../transcode/client-binding.ts";
import { createLongReader } from "../../transcode/long-answer.ts";
import { createAnswerBudget } from "../resilience/answer-budget.ts";
import { createResilience } from "../resilience/create-resilience.ts";
import { createOutageLog, type OutageLog } from "../resilience/outage-log.ts";
import type { Endpoint } from "../resilience/resilience.ts";
import { createUpstreamCache } from "../upstream-cache/cache.ts";
import { createIdentity, keyOfCaller } from "../upstream-identity/create-identity.ts";
import { createHeaderPolicy } from "../upstream-identity/headers.ts";
import { databasesOfUpstream } from "../upstream-identity/upstream-databases.ts";
import { createHandler } from "./handlers.ts";
import type { RestBackendOptions } from "./options.ts";
import type { UpstreamTransport } from "./transport/transport.ts";
import { createPools } from "./transport/undici-transport.ts";
import { createUpstreamCaller } from "./upstream-call.ts";

export type { RestBackendOptions } from "./options.ts";

/**
 * Creates the backend that forwards every operation to an upstream over REST. It connects with the first call.
 *
 * @throws Error with a single line for unusable options.
 */
export async function createRestBackend(options: RestBackendOptions): Promise<Backend> {
  const { delimiter = "$", dialect = "specification", log, answers = createAnswerBudget() } = options;
  const form = UPSTREAM_FORMS[dialect];
  const pools = createPools(options);
  const policy = createHeaderPolicy({ ...options, keyOfCaller });
  const identity = await createIdentity(options.identity, options.tokenPauses);
  const upstream = createResilience(pools.endpoints, {
    ...options.resilience,
    log,
    noteDecision: options.noteDecision,
    totalMs: options.timeLimits?.totalMs,
  });
  const outages = createOutageLog(log);
  pools.watch((endpoints) => upstream.replace(endpoints));
  const callUpstream = createUpstreamCaller({ form, upstream, policy, identity });

  const long = createLongReader(form);

  const cached = createUpstreamCache(options.cache, {
    policy,
    identity,
    noteDecision: options.noteDecision,
  });

  function handlersOf(methods: readonly DescMethod[]): Record<string, unknown> {
    const bindings = createClientBindings(methods, form);
    const handlers = [...bindings].map(([method, binding]) => [
      method.localName,
      createHandler(binding, { delimiter, callUpstream, policy, long, answers }),
    ]);
    return cached(methods, Object.fromEntries(handlers));
  }

  const operations = handlersOf(LanceNamespaceService.methods) as LanceNamespace;
  return {
    name: "rest",
    place: [options.uri].flat().join(", "),
    handsOut: options.handsOut ?? "manage",
    operations,
    extensions: {
      ...(handlersOf(LanceDbService.methods.filter(isForwardable)) as Partial<LanceDbExtensions>),
      ...checkedViews(handlersOf(ViewService.methods) as ViewOperations),
    },
    rootDatabases: databasesOfUpstream(policy, operations.describeNamespace),
    async ready() {
      const answering = await Promise.all(pools.endpoints.map((endpoint) => isAnswering(endpoint, outages)));
      return answering.some(Boolean);
    },
    close: () => pools.close(),
  };
}

/**
 * Has the query of a new view checked with the rights of its caller here. The upstream checks it with those of the gateway, and answers with the
 * columns of its tables.
 */
function checkedViews(views: ViewOperations): ViewOperations {
  return {
    ...views,
    async createView(request, call) {
      if (call.principal !== undefined) await planView(call);
      return views.createView(request, call);
    },
  };
}

/** Fields that every request has. */
const SHARED = new Set(["id", "identifier", "delimiter", "identity", "context"]);

/** The messages of functions and secrets: the upstream runs them for this gateway, and cannot ask what the gateway's caller may do. */
const OF_FUNCTIONS = file_lance_gateway_v1_function;

/** Methods whose requests need no fields of their own. */
const COMPLETE = new Set(["describeMaterializedView", "describePageCache", "dropMaterializedView"]);

/**
 * Whether a message determines the route of its request: it has fields of its own or needs none, and the last segments of its
 * routes are fixed. Functions are not forwarded.
 */
function isForwardable(method: DescMethod): boolean {
  if (method.input.file === OF_FUNCTIONS) return false;
  const rule = optionOf(method, http);
  const fixed = [rule, ...rule.additionalBindings].every(({ pattern }) => !pattern.value?.endsWith("}"));
  return (
    fixed && (COMPLETE.has(method.localName) || method.input.fields.some(({ name }) => !SHARED.has(name)))
  );
}

/** Longest time for the upstream to answer the readiness probe, in milliseconds. */
const PATIENCE_MS = 5_000;

/** Whether the upstream answers with any status but a server error. */
async function isAnswering(
  { target, name }: Endpoint<UpstreamTransport>,
  outages: OutageLog,
): Promise<boolean> {
  try {
    const { status } = await target.send({
      method: "GET",
      target: "/v1/namespace/%24/list?limit=1",
      headers: ["accept", "application/json"],
      body: undefined,
      streams: false,
      isProbe: true,
      signal: AbortSignal.timeout(PATIENCE_MS),
      elapsedMs: 0,
    });
    outages.answered(name);
    return status < 500;
  } catch (error) {
    outages.failed(name, error);
    return false;
  }
}
