import type { DescMethod } from "@bufbuild/protobuf";
import { UPSTREAM_FORMS } from "../../dialects/upstream.ts";
import { LanceDbService } from "../../gen/lance/gateway/v1/lancedb_pb.ts";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import type { Backend, LanceDbExtensions, LanceNamespace } from "../../namespace/port.ts";
import { createClientBindings } from "../../transcode/client-binding.ts";
import { createIdentity } from "../upstream-identity/create-identity.ts";
import { createHeaderPolicy } from "../upstream-identity/headers.ts";
import { createExchange } from "./exchange.ts";
import { isForwardable } from "./forwardable.ts";
import { createHandler } from "./handlers.ts";
import type { RestBackendOptions } from "./options.ts";
import { isAnswering } from "./readiness.ts";
import { createHttpTransport } from "./undici-transport.ts";

export type { RestBackendOptions } from "./options.ts";

/**
 * Creates the backend that hands every operation to an upstream by REST. It connects with the first call.
 *
 * @throws Error with one clear line for options that cannot be used.
 */
export async function createRestBackend(options: RestBackendOptions): Promise<Backend> {
  const { delimiter = "$", dialect = "specification", log } = options;
  const form = UPSTREAM_FORMS[dialect];
  const transport = options.transport ?? createHttpTransport(options);
  const policy = createHeaderPolicy(options);
  const exchange = createExchange({ form, transport, policy, identity: createIdentity(options.identity) });

  function handlersOf(methods: readonly DescMethod[]): Record<string, unknown> {
    const bindings = createClientBindings(methods, form);
    return Object.fromEntries(
      [...bindings].map(([method, binding]) => [
        method.localName,
        createHandler(binding, { delimiter, exchange, policy }),
      ]),
    );
  }

  return {
    name: "rest",
    operations: handlersOf(LanceNamespaceService.methods) as LanceNamespace,
    extensions: handlersOf(LanceDbService.methods.filter(isForwardable)) as Partial<LanceDbExtensions>,
    ready: () => isAnswering(transport, log),
    close: () => transport.close(),
  };
}
