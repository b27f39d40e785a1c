import type { DescMethod } from "@bufbuild/protobuf";
import { UPSTREAM_FORMS } from "../../dialects/upstream.ts";
import { LanceDbService } from "../../gen/lance/gateway/v1/lancedb_pb.ts";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import type { Backend, LanceDbExtensions, LanceNamespace } from "../../namespace/lance-namespace.ts";
import { createClientBindings } from "../../transcode/client-binding.ts";
import { createResilience } from "../resilience/create-resilience.ts";
import { createUpstreamCache } from "../upstream-cache/create-cache.ts";
import { createIdentity } from "../upstream-identity/create-identity.ts";
import { createHeaderPolicy } from "../upstream-identity/headers.ts";
import { isForwardable } from "./forwardable.ts";
import { createHandler } from "./handlers.ts";
import type { RestBackendOptions } from "./options.ts";
import { createPools } from "./pools.ts";
import { isAnswering } from "./readiness.ts";
import { createUpstreamCaller } from "./upstream-call.ts";

export type { RestBackendOptions } from "./options.ts";

/**
 * Creates the backend that hands every operation to an upstream by REST. It connects with the first call.
 *
 * @throws Error with one clear line for options that cannot be used.
 */
export async function createRestBackend(options: RestBackendOptions): Promise<Backend> {
  const { delimiter = "$", dialect = "specification", log } = options;
  const form = UPSTREAM_FORMS[dialect];
  const pools = createPools(options);
  const policy = createHeaderPolicy(options);
  const identity = createIdentity(options.identity);
  const upstream = createResilience(pools.endpoints, {
    ...options.resilience,
    log,
    noteDecision: options.noteDecision,
    totalMs: options.timeLimits?.totalMs,
  });
  pools.watch((endpoints) => upstream.replace(endpoints));
  const callUpstream = createUpstreamCaller({ form, upstream, policy, identity });

  const cached = createUpstreamCache(options.cache, {
    policy,
    identity,
    noteDecision: options.noteDecision,
  });

  function handlersOf(methods: readonly DescMethod[]): Record<string, unknown> {
    const bindings = createClientBindings(methods, form);
    const handlers = [...bindings].map(([method, binding]) => [
      method.localName,
      createHandler(binding, { delimiter, callUpstream, policy }),
    ]);
    return cached(methods, Object.fromEntries(handlers));
  }

  return {
    name: "rest",
    operations: handlersOf(LanceNamespaceService.methods) as LanceNamespace,
    extensions: handlersOf(LanceDbService.methods.filter(isForwardable)) as Partial<LanceDbExtensions>,
    async ready() {
      const answering = await Promise.all(pools.endpoints.map(({ target }) => isAnswering(target, log)));
      return answering.some(Boolean);
    },
    close: () => pools.close(),
  };
}
