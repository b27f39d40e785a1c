import type { IncomingHttpHeaders } from "node:http";
import type { FastifyPluginCallback, FastifyReply, FastifyRequest } from "fastify";
import type { Logger } from "pino";
import { LanceError } from "../../namespace/errors.ts";
import { bindingFor, type Route, routeKey, type Transcoder } from "../../transcode/transcoder.ts";
import { DEFAULT_SILENCE_MS } from "../limits.ts";
import { Exchange } from "./exchange.ts";
import { withoutQuery } from "./http.ts";
import { createServeCall, type RestCallOptions, refusalOf } from "./serve.ts";

/** Options of {@link restPlugin}. */
export interface RestOptions extends RestCallOptions {
  /**
   * Transcoders, one for each dialect; the first whose dialect recognises a request answers it, and the last answers
   * any other.
   */
  readonly transcoders: readonly Transcoder[];
  /**
   * Longest time in which a client of HTTP/2 reads nothing of an answer, in milliseconds; 0 for no limit. Default: 60
   * s.
   */
  readonly silenceMs?: number | undefined;
  /**
   * Whether the application itself removes the slashes at the end of a path. Default: false; each route then also
   * exists with a slash at its end.
   */
  readonly dropsSlashes?: boolean | undefined;
}

/**
 * The REST API: a route for each HTTP method and path of the contract.
 *
 * Every answer has the request's id in `x-request-id`; a request may set its own, and the time that it waits in
 * `x-request-timeout-ms`. The enclosing instance, which `httpWires` sets up, handles failures and unknown paths.
 */
export const restPlugin: FastifyPluginCallback<RestOptions> = (app, options, done) => {
  const { transcoders, dropsSlashes = false } = options;
  const serve = createServeCall(options);
  // Fastify remembers a parser by its content type only where it has one of its own.
  app.addContentTypeParser("application/json", (_request, payload, next) => next(null, payload));
  const firstSegment = app.prefix.split("/").length;

  for (const { method, url, byDialect } of restRoutes(transcoders)) {
    const end = firstSegment + url.split("/").length - 1;
    const handler = (request: FastifyRequest, reply: FastifyReply): void => {
      const exchange = openExchange(request, reply, options);
      const index = dialectIndex(exchange.request.headers, exchange.query, transcoders);
      const { dialect } = transcoders[index] as Transcoder;
      exchange.dialect = dialect;
      const route = byDialect[index];
      const segments = withoutQuery(request.url).split("/").slice(firstSegment, end);
      // The router lets a variable be empty, and no name is.
      if (route === undefined || segments.includes("")) return void reply.callNotFound();
      const binding = bindingFor(route, exchange.request.headers["content-type"]);
      // A promise returned to Fastify would cost each call more than this one does.
      serve(exchange, { binding, dialect, segments }).catch((thrown: unknown) => reply.send(errorOf(thrown)));
    };
    app.route({ method, url, handler });
    if (!dropsSlashes) app.route({ method, url: `${url}/`, handler });
  }
  done();
};

/** Fastify answers by its error handler only what is an error. */
function errorOf(thrown: unknown): Error {
  return thrown instanceof Error
    ? thrown
    : new Error("a value was thrown that is not an error", { cause: thrown });
}

/** Answers unknown paths, and HTTP methods that a path does not support. */
export function createUnknownPath(options: RestOptions) {
  const { transcoders, refused } = options;
  // Fastify may serve HEAD on routes of GET.
  const methods = [...new Set(restRoutes(transcoders).map(({ method }) => method)).add("HEAD")].sort();
  return (request: FastifyRequest, reply: FastifyReply): never => {
    const exchange = openExchange(request, reply, options);
    const index = dialectIndex(exchange.request.headers, exchange.query, transcoders);
    exchange.dialect = transcoders[index]?.dialect;
    const url = withoutQuery(request.url);
    const isPath = !EMPTY_SEGMENT.test(url);
    const allowed = methods.filter(
      (method) => isPath && method !== request.method && hasRoute(request, method, url),
    );
    const error = unknownRoute(exchange, allowed);
    refused?.(refusalOf(exchange, error));
    throw error;
  };
}

const EMPTY_SEGMENT = /\/\/(?!$)/;

function hasRoute({ server }: FastifyRequest, method: string, url: string): boolean {
  return server.findRoute({ method: method as "GET", url }) !== null;
}

function unknownRoute({ request, path }: Exchange, allowed: readonly string[]): LanceError {
  // HEAD is answered like GET.
  const method = request.method === "HEAD" ? "GET" : request.method;
  if (allowed.length === 0) return new LanceError("RouteNotFound", `no route for ${method} ${path}`);
  const allow = allowed.join(", ");
  return new LanceError("MethodNotAllowed", `${path} accepts ${allow}, not ${method}`, {
    headers: { allow },
  });
}

/** A request that may have an exchange; Fastify's request has the property from `httpWires`. */
export type RequestWithExchange = FastifyRequest & { exchange: Exchange | null };

/** Returns the exchange of a request, creating it on first use. */
export function openExchange(
  request: FastifyRequest,
  reply: FastifyReply,
  { log, silenceMs = DEFAULT_SILENCE_MS }: { readonly log: Logger; readonly silenceMs?: number | undefined },
): Exchange {
  const owner = request as RequestWithExchange;
  owner.exchange ??= new Exchange(request, reply, log);
  owner.exchange.silenceMs = silenceMs;
  return owner.exchange;
}

/** A Fastify route, for all dialects. */
export interface RestRoute {
  readonly method: string;
  /** Path in the notation of Fastify, for example `/v1/table/:identifier/describe`. */
  readonly url: string;
  /** The route in each dialect, in the order of the transcoders; a dialect may lack it. */
  readonly byDialect: readonly (Route | undefined)[];
}

/** Returns the routes of all dialects, in the order of the contract. */
export function restRoutes(transcoders: readonly Transcoder[]): RestRoute[] {
  const byKey = transcoders.map(({ routes }) => new Map(routes.map((route) => [routeKey(route), route])));
  const all = new Map(transcoders.flatMap(({ routes }) => routes.map((route) => [routeKey(route), route])));
  return [...all].map(([key, route]) => ({
    method: route.httpMethod,
    url: urlOf(route),
    byDialect: byKey.map((routes) => routes.get(key)),
  }));
}

function urlOf({ template: { segments, variables } }: Route): string {
  const parts = segments.map((segment, index) => {
    if (segment !== "*") return segment.literal;
    const field = variables.find(({ start, end }) => start === index && end === index + 1)?.field;
    return `:${field ?? `segment${index}`}`;
  });
  return `/${parts.join("/")}`;
}

/** Returns the index of the transcoder for the dialect of a request. */
export function dialectIndex(
  headers: IncomingHttpHeaders,
  query: string,
  transcoders: readonly Transcoder[],
): number {
  const found = transcoders.findIndex(({ dialect }) => dialect.recognises({ headers, query }));
  return found === -1 ? transcoders.length - 1 : found;
}
