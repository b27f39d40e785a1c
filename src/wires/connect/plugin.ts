import type { UniversalHandler, UniversalHandlerFn } from "@connectrpc/connect/protocol";
import { fastifyConnectPlugin } from "@connectrpc/connect-fastify";
import { universalRequestFromNodeRequest, universalResponseToNodeResponse } from "@connectrpc/connect-node";
import type { FastifyPluginCallback, FastifyReply, FastifyRequest } from "fastify";
import { LanceError } from "../../namespace/errors.ts";
import { type ByteBudget, createByteBudget } from "../../namespace/memory/byte-budget.ts";
import { FREE_BYTES } from "../limits.ts";
import { withoutQuery } from "../rest/http.ts";
import type { Rpc } from "../rpc.ts";
import { callKind } from "./codec.ts";
import { ConnectExchange, contextOf, EXCHANGE } from "./exchange.ts";
import { type ConnectHandlers, type ConnectHandlersOptions, createConnectHandlers } from "./handlers.ts";

/** Options of {@link connectPlugin}. */
export interface ConnectOptions extends ConnectHandlersOptions {
  readonly rpcs: readonly Rpc[];
  /** Memory budget of messages, from their arrival to the end of their calls. Default: no bound. */
  readonly budget?: ByteBudget | undefined;
}

/** Begins the variable of the route of a service: the name of a method. */
const METHOD = ":method";

/**
 * Connect and gRPC-Web, over HTTP/1.1 and HTTP/2. The protocols are @connectrpc/connect's, and their place in Fastify is
 * @connectrpc/connect-fastify's. It registers a route for each HTTP method, so a service has a single path instead of one for
 * each of its methods.
 */
export const connectPlugin: FastifyPluginCallback<ConnectOptions> = (app, options, done) => {
  const { rpcs, budget = createByteBudget(), log, refused } = options;
  const handlerOf = createConnectHandlers(options);
  app.decorateRequest("connectExchange", null);
  app.addHook("preHandler", (request, reply, next) => {
    checkAuthority(request, options);
    const { method } = request.params as { readonly method: string };
    const hold = budget.open(FREE_BYTES);
    const exchange = new ConnectExchange(request, reply, { log, refused, hold, method });
    request.setDecorator("connectExchange", exchange);
    next();
  });
  app.register(fastifyConnectPlugin, {
    routes({ handlers }) {
      for (const [first, ...others] of Map.groupBy(rpcs, ({ method }) => method.parent).values())
        if (first !== undefined) handlers.push(serviceHandler([first, ...others], handlerOf));
    },
    contextValues: (request) => contextOf(request.getDecorator<ConnectExchange>("connectExchange")),
  });
  done();
};

/** Creates the handler of all methods of a service, with the traits of the first. Its route accepts no other names. */
function serviceHandler(rpcs: readonly [Rpc, ...Rpc[]], handlerOf: ConnectHandlers): UniversalHandler {
  const byName = new Map(rpcs.map((rpc) => [rpc.method.name, rpc]));
  const handle: UniversalHandlerFn = (universal) => {
    const exchange = universal.contextValues?.get(EXCHANGE) as ConnectExchange;
    return handlerOf(byName.get(exchange.method as string) as Rpc)(universal);
  };
  const requestPath = `/${rpcs[0].method.parent.typeName}/${METHOD}(^(?:${[...byName.keys()].join("|")})$)`;
  return Object.assign(handle, { ...handlerOf(rpcs[0]), requestPath });
}

/** Whether a request has a host, without which the library cannot create a URL. */
function hasAuthority({ host }: FastifyRequest): boolean {
  return URL.canParse(`http://${host}`);
}

/**
 * Checks that a request has a host.
 *
 * @throws LanceError InvalidInput
 */
function checkAuthority(request: FastifyRequest, { refused }: ConnectOptions): void {
  if (hasAuthority(request)) return;
  const { id, host, originalUrl, raw } = request;
  const error = new LanceError("InvalidInput", `${JSON.stringify(host)} is not a host name`);
  const path = withoutQuery(originalUrl);
  refused?.({ protocol: "connect", code: error.kind, requestId: id, path, headers: raw.headers });
  throw error;
}

/** Answers a request of Connect or gRPC-Web with an error. Returns false if the request is of neither protocol. */
export type RefuseCall = (request: FastifyRequest, reply: FastifyReply, refusal: LanceError) => boolean;

/** Creates the function that answers requests of Connect and gRPC-Web with an error in their protocol. */
export function createRefuseCall(options: ConnectOptions): RefuseCall {
  const { rpcs, log, refused, budget = createByteBudget() } = options;
  const handlerOf = createConnectHandlers(options);

  return (request, reply, refusal) => {
    const kind = callKind(request.raw);
    const rpc = rpcs.find((each) => each.kind === kind);
    if (rpc === undefined || !hasAuthority(request)) return false;
    const hold = budget.open(FREE_BYTES);
    void refuse(new ConnectExchange(request, reply, { log, refused, hold, refusal }), handlerOf(rpc), reply);
    return true;
  };
}

/** Creates the function that answers a request of Connect or gRPC-Web for an unknown method, as {@link RefuseCall} does. */
export function createUnknownMethod(options: ConnectOptions) {
  const refuseCall = createRefuseCall(options);
  return (request: FastifyRequest, reply: FastifyReply): boolean => {
    if (callKind(request.raw) === undefined) return false;
    checkAuthority(request, options);
    return refuseCall(request, reply, new LanceError("RouteNotFound", "the server has no such method"));
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
