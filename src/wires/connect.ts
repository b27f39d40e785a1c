import type { UniversalHandler } from "@connectrpc/connect/protocol";
import { fastifyConnectPlugin } from "@connectrpc/connect-fastify";
import { universalRequestFromNodeRequest, universalResponseToNodeResponse } from "@connectrpc/connect-node";
import type { FastifyPluginCallback, FastifyReply, FastifyRequest } from "fastify";
import { type ByteBudget, createByteBudget } from "../namespace/byte-budget.ts";
import { LanceError } from "../namespace/errors.ts";
import { callKind } from "./connect-codec.ts";
import { ConnectExchange, contextOf } from "./connect-exchange.ts";
import { type ConnectHandlersOptions, createConnectHandlers } from "./connect-handlers.ts";
import { FREE_BYTES } from "./limits.ts";
import { withoutQuery } from "./rest/http.ts";

/** Options of {@link connectPlugin}. */
export interface ConnectOptions extends ConnectHandlersOptions {
  /** Memory budget of messages, from their arrival to the end of their calls. Default: no bound. */
  readonly budget?: ByteBudget | undefined;
}

/**
 * Connect and gRPC-Web, over HTTP/1.1 and HTTP/2. The protocols are @connectrpc/connect's, and their place in Fastify is
 * @connectrpc/connect-fastify's.
 */
export const connectPlugin: FastifyPluginCallback<ConnectOptions> = (app, options, done) => {
  const { budget = createByteBudget(), log, refused } = options;
  app.decorateRequest("connectExchange", null);
  app.addHook("preHandler", (request, reply, next) => {
    checkAuthority(request, options);
    const exchange = new ConnectExchange(request, reply, { log, refused, hold: budget.open(FREE_BYTES) });
    request.setDecorator("connectExchange", exchange);
    next();
  });
  app.register(fastifyConnectPlugin, {
    routes: ({ handlers }) => handlers.push(...createConnectHandlers(options)),
    contextValues: (request) => contextOf(request.getDecorator<ConnectExchange>("connectExchange")),
  });
  done();
};

/**
 * Checks that a request has a host, without which the library cannot create a URL.
 *
 * @throws LanceError InvalidInput
 */
function checkAuthority({ id, host, originalUrl, raw }: FastifyRequest, { refused }: ConnectOptions): void {
  if (URL.canParse(`http://${host}`)) return;
  const error = new LanceError("InvalidInput", `${JSON.stringify(host)} is not the name of a host`);
  const path = withoutQuery(originalUrl);
  refused?.({ protocol: "connect", code: error.kind, requestId: id, path, headers: raw.headers });
  throw error;
}

/** Creates the function that answers, in its protocol, a request of Connect or gRPC-Web for an unknown method. */
export function createUnknownMethod(options: ConnectOptions) {
  const { rpcs, log, refused, budget = createByteBudget() } = options;
  const handlers = createConnectHandlers({
    ...options,
    rpcs: (["unary", "stream"] as const).flatMap((kind) => rpcs.find((rpc) => rpc.kind === kind) ?? []),
  });

  /** @returns the reply; undefined if the request is of neither protocol. */
  return (request: FastifyRequest, reply: FastifyReply): FastifyReply | undefined => {
    const kind = callKind(request.raw);
    const handle =
      kind && handlers.find(({ method }) => (method.methodKind === "unary") === (kind === "unary"));
    if (handle === undefined) return undefined;
    checkAuthority(request, options);
    const refusal = new LanceError("RouteNotFound", "the server has no such method");
    const hold = budget.open(FREE_BYTES);
    void refuse(new ConnectExchange(request, reply, { log, refused, hold, refusal }), handle, reply);
    return reply;
  };
}

async function refuse(
  exchange: ConnectExchange,
  handle: UniversalHandler,
  reply: FastifyReply,
): Promise<void> {
  const { request, response } = exchange;
  for (const [name, value] of Object.entries(reply.getHeaders())) {
    if (value !== undefined) response.setHeader(name, value);
  }
  reply.hijack();
  try {
    const universal = universalRequestFromNodeRequest(request, response, undefined, contextOf(exchange));
    await universalResponseToNodeResponse(await handle(universal), response);
  } catch (error) {
    exchange.breakOff(error);
  }
}
