import type { FastifyInstance, FastifyPluginCallback, FastifyReply, FastifyRequest } from "fastify";
import { LanceError } from "../namespace/errors.ts";
import type { Transcoder } from "../transcode/transcoder.ts";
import { type ConnectOptions, connectPlugin, createUnknownMethod } from "./connect/plugin.ts";
import { splitTarget } from "./rest/http.ts";
import {
  createUnknownPath,
  openExchange,
  type RequestWithExchange,
  type RestOptions,
  restPlugin,
} from "./rest/plugin.ts";
import { refusalOf } from "./rest/serve.ts";
import { requestIdOf } from "./rpc.ts";

/** Options of {@link httpWires}. */
export type HttpWiresOptions = RestOptions & ConnectOptions;

/**
 * REST, Connect and gRPC-Web as a single Fastify plugin, below any prefix. Hooks of the application run before them.
 *
 * Identifiers may be long and are percent-encoded: the application's `maxParamLength` must allow for that.
 */
export const httpWires: FastifyPluginCallback<HttpWiresOptions> = (app, options, done) => {
  app.decorateRequest("exchange", null);
  app.setGenReqId(({ headers }) => requestIdOf(headers["x-request-id"]));
  passBodiesOn(app);
  app.setErrorHandler(createErrorHandler(options));

  const unknownMethod = createUnknownMethod(options);
  const unknownPath = createUnknownPath(options);
  app.setNotFoundHandler((request, reply) =>
    unknownMethod(request, reply) ? reply : unknownPath(request, reply),
  );

  // The prefix is in force already.
  const inner = { ...options, prefix: "" };
  app.register(restPlugin, inner);
  app.register(connectPlugin, inner);
  done();
};

/** Lets bodies pass unread: the call reads them within its bounds, once it knows what the route takes. */
export function passBodiesOn(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", (_request, payload, done) => done(null, payload));
}

/** Creates the handler that answers any error with its JSON. */
export function createErrorHandler(options: HttpWiresOptions) {
  return (thrown: unknown, request: FastifyRequest, reply: FastifyReply): void => {
    const isOpen = (request as RequestWithExchange).exchange != null;
    const exchange = openExchange(request, reply, options);
    // The code that throws an error of the table has recorded it.
    if (!isOpen && !(thrown instanceof LanceError)) options.refused?.(refusalOf(exchange, thrown));
    exchange.fail(thrown);
  };
}

const SLASH = 47;

/**
 * Creates the function with which Fastify rewrites the targets of requests: paths of REST may have any number of
 * slashes at both ends, and Fastify's router may be unable to read a target.
 */
export function createTargetRewrite(transcoders: readonly Transcoder[]): (target: string) => string {
  const routes = transcoders.flatMap((transcoder) => transcoder.routes);
  const firstSegments = routes.map(({ template: { segments } }) => segments[0] as { literal: string });
  const roots = new Set(firstSegments.map(({ literal }) => literal));

  return (target) => {
    if (isPlain(target)) return target;
    const { path, query } = splitTarget(target);
    let [start, end] = [0, path.length];
    while (path.charCodeAt(start) === SLASH) start++;
    while (end > start && path.charCodeAt(end - 1) === SLASH) end--;
    const trimmed = path.slice(start, end);
    const isRest = roots.has(trimmed.split("/", 1)[0] ?? "");
    const whole = isRest ? `/${trimmed}` : path.startsWith("/") ? path : `/${path}`;
    // The router would treat the text after a "#" as a fragment.
    return whole.replaceAll("#", "%23") + (query === "" ? "" : `?${query}`);
  };
}

/** Whether a target needs no change. */
function isPlain(target: string): boolean {
  if (target.charCodeAt(0) !== SLASH || target.charCodeAt(1) === SLASH || target.includes("#")) return false;
  const mark = target.indexOf("?");
  return target.charCodeAt((mark === -1 ? target.length : mark) - 1) !== SLASH || target === "/";
}
