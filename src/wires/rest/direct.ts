import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import { bindingFor, type Transcoder } from "../../transcode/transcoder.ts";
import type { RestOptions } from "../rest.ts";
import { requestIdOf } from "../rpc.ts";
import { DEFAULT_SILENCE_MS } from "../stall.ts";
import { Exchange } from "./exchange.ts";
import { DirectReply } from "./reply.ts";
import { createRouteTree } from "./route-tree.ts";
import { dialectIndex, type RestRoute, restRoutes } from "./routes.ts";
import { createServeCall } from "./serve.ts";

/** Answers a request, or returns false without having touched it. */
export type AnswerDirectly = (request: IncomingMessage, response: ServerResponse) => boolean;

/** A path that a router takes as it is written: its only escapes are those of `$`, which no literal part of a route has. */
const PLAIN_PATH = /^\/(?:[^%#]|%24)*$/;

/** Options of {@link createDirectRest}. */
export interface DirectRestOptions extends RestOptions {
  /** Whether no rule for browsers refuses a request. */
  readonly admits: (headers: IncomingHttpHeaders) => boolean;
}

/**
 * Creates the function that answers plain calls of the REST API over HTTP/1.1 without Fastify, which takes a good part
 * of their time (docs/adr/0098). It leaves every other request to Fastify, which answers these calls in the same way: unknown
 * paths, other HTTP methods, spellings of a path that a router has to interpret, bodies of other types, and whatever
 * is refused before it becomes a call. Hooks do not see the calls, so it must not be used where there are any.
 */
export function createDirectRest(options: DirectRestOptions): AnswerDirectly {
  const { transcoders, admits, log, silenceMs = DEFAULT_SILENCE_MS } = options;
  const serve = createServeCall(options);
  const routes = restRoutes(transcoders);
  const methods = [...new Set(routes.map(({ method }) => method))];
  const trees = new Map(
    methods.map((wanted) => {
      const own = routes.filter(({ method }) => method === wanted);
      return [wanted, createRouteTree<RestRoute>(own.map((route) => [route.url, route]))];
    }),
  );

  return (request, response) => {
    const { method = "", url = "", headers } = request;
    if (request.httpVersionMajor !== 1 || !isPlainType(headers["content-type"])) return false;
    const mark = url.indexOf("?");
    const path = mark === -1 ? url : url.slice(0, mark);
    if (!PLAIN_PATH.test(path)) return false;
    const segments = path.split("/");
    // LanceDB's clients end every path with a slash.
    if (segments.at(-1) === "") segments.pop();
    const found = trees.get(method)?.find(segments);
    if (found === undefined || !admits(headers)) return false;
    const index = dialectIndex(headers, mark === -1 ? "" : url.slice(mark + 1), transcoders);
    const route = found.byDialect[index];
    if (route === undefined) return false;

    const reply = new DirectReply(request, response, requestIdOf(headers["x-request-id"]));
    const exchange = new Exchange(reply, log);
    const { dialect } = transcoders[index] as Transcoder;
    exchange.dialect = dialect;
    exchange.silenceMs = silenceMs;
    segments.shift();
    const asked = { binding: bindingFor(route, headers["content-type"]), dialect, segments };
    serve(exchange, asked).catch((thrown: unknown) => exchange.fail(thrown));
    return true;
  };
}

/** Whether Fastify has nothing to say about the type of a body. */
function isPlainType(contentType: string | undefined): boolean {
  return contentType === undefined || contentType === "application/json";
}
