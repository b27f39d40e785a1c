import { type IncomingMessage, METHODS, type ServerResponse } from "node:http";
import cors from "@fastify/cors";
import fastify, {
  type FastifyInstance,
  type FastifyPluginAsync,
  type FastifyPluginCallback,
  type FastifyReply,
  type FastifyRequest,
} from "fastify";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import { LanceError } from "../../namespace/errors.ts";
import { createRefuseCall } from "../../wires/connect/plugin.ts";
import {
  createErrorHandler,
  createTargetRewrite,
  type HttpWiresOptions,
  httpWires,
  passBodiesOn,
} from "../../wires/http-wires.ts";
import { MCP_PATH, type McpEndpoint, mcpPlugin } from "../../wires/mcp.ts";
import { requestIdOf } from "../../wires/rpc.ts";
import { addBrowserGuard, type HostCheck } from "./browser-guard.ts";
import { type ConsoleOptions, consolePlugin } from "./console-pages.ts";
import { type MetricsPage, metricsPlugin, probesPlugin, type Readiness } from "./probes.ts";
import { addRefusals } from "./refusals.ts";
import { type ApiDocuments, documentPlugin } from "./static-pages.ts";

/** Options of {@link createApp}. */
export interface AppOptions extends HttpWiresOptions {
  readonly readiness: Readiness;
  /** Content of `/metrics`. Default: the path does not exist. */
  readonly metrics?: MetricsPage | undefined;
  /** Content of `/openapi.json` and `/docs`. Default: the paths do not exist. */
  readonly documents?: ApiDocuments | undefined;
  /** The built console. Default: `/console` does not exist. */
  readonly console?: ConsoleOptions | undefined;
  /** The Model Context Protocol. Default: `/mcp` does not exist. */
  readonly mcp?: McpEndpoint | undefined;
  readonly hosts: HostCheck;
  /** Origins whose pages may call from browsers; `*` matches any. */
  readonly origins: readonly string[];
  /** Further plugins, registered before the wires. Default: none. */
  readonly plugins?: readonly (FastifyPluginCallback | FastifyPluginAsync)[] | undefined;
}

/** The application: everything except native gRPC. */
export interface App {
  readonly fastify: FastifyInstance;
  /** Answers a request of node:http, or of node:http2 through its compatibility API, once Fastify is ready. */
  answer(request: IncomingMessage, response: ServerResponse): void;
  /**
   * Answers a request with an error, whatever its target.
   *
   * @param exceptProbes whether probes are answered nevertheless. Default: false.
   */
  refuse(request: IncomingMessage, response: ServerResponse, error: LanceError, exceptProbes?: boolean): void;
}

const KNOWN_METHODS: ReadonlySet<string> = new Set(METHODS);

/** Creates the application: hooks for all paths first, then probes, pages, further plugins, and the wires. */
export function createApp(options: AppOptions): App {
  const { readiness, metrics, documents, hosts, origins, plugins = [] } = options;
  const app = createFastify(options);
  const refusals = addRefusals(app, { refused: options.refused, refuseCall: createRefuseCall(options) });
  addCors(app, origins);
  addBrowserGuard(app, { hosts, origins, refused: options.refused });

  addRootPage(app, {
    console: options.console !== undefined,
    documents: documents !== undefined,
    metrics: metrics !== undefined,
    mcp: options.mcp !== undefined,
  });
  app.register(probesPlugin, { readiness });
  if (metrics !== undefined) app.register(metricsPlugin, { metrics, pace: options.pace });
  if (documents !== undefined) app.register(documentPlugin, { documents });
  if (options.console !== undefined) app.register(consolePlugin, options.console);
  if (options.mcp !== undefined) app.register(mcpPlugin, { ...options, endpoint: options.mcp });
  for (const plugin of plugins) app.register(plugin);
  app.register(httpWires, { ...options, dropsSlashes: true });

  function answer(request: IncomingMessage, response: ServerResponse): void {
    // HTTP/2 lets a client invent methods that Fastify does not know.
    if (!KNOWN_METHODS.has(request.method ?? "")) {
      refusals.add(request, unknownMethod(request.method));
      request.method = "GET";
    }
    app.routing(request, response);
  }

  return {
    fastify: app,
    answer,
    refuse(request, response, error, exceptProbes) {
      refusals.add(request, error, exceptProbes);
      answer(request, response);
    },
  };
}

/** Creates Fastify with the settings for a server that has its own listener (docs/adr/0040). */
function createFastify(options: AppOptions): FastifyInstance {
  const rewrite = createTargetRewrite(options.transcoders);
  const onError = createErrorHandler(options);
  const app = fastify({
    schemaController: options.plugins?.length ? {} : { compilersFactory: NO_SCHEMAS },
    genReqId: ({ headers }) => requestIdOf(headers["x-request-id"]),
    rewriteUrl: ({ url = "" }) => rewrite(url),
    frameworkErrors: onError,
    // The listener tells clients to reconnect, and answers until they have disconnected.
    return503OnClosing: false,
    routerOptions: {
      // Node bounds the head of a request; identifiers have no bound of their own.
      maxParamLength: Number.MAX_SAFE_INTEGER,
      // The wires parse the query by their messages.
      querystringParser: () => NO_QUERY,
    },
  });
  app.setErrorHandler(onError);
  passBodiesOn(app);
  return app;
}

function refuseSchema(): never {
  throw new Error("routes of the gateway have no schemas");
}

/** Saves Fastify from loading the libraries for schemas of routes, which plugins alone may have. */
const NO_SCHEMAS = { buildValidator: refuseSchema, buildSerializer: refuseSchema };

const NO_QUERY: Readonly<Record<string, never>> = Object.freeze({});

function unknownMethod(method = ""): LanceError {
  return new LanceError("MethodNotAllowed", `HTTP does not have the method ${JSON.stringify(method)}`, {
    headers: { allow: "GET, HEAD, POST" },
  });
}

/** How long a browser may cache the answer to a preflight, in seconds; browsers cache it for at most two hours. */
const MAX_AGE_SECONDS = 7200;

/**
 * Lets pages of other origins call REST, Connect and gRPC-Web, according to the Fetch standard (CORS).
 *
 * Credentials of the browser, such as cookies, are never allowed: the gateway has none, and programs send theirs in
 * headers. Pages may therefore read every header of an answer.
 *
 * @param origins such as `https://app.example.com`, or `*` for any; without origins, nothing changes.
 */
function addCors(app: FastifyInstance, origins: readonly string[]): void {
  if (origins.length === 0) return;
  const known = new Set(origins);
  app.register(cors, {
    // An unknown origin gets no headers, and its preflight is refused like any other request.
    origin: known.has("*")
      ? "*"
      : (origin, next) => next(null, origin !== undefined && known.has(origin) && origin),
    methods: ["GET", "POST"],
    exposedHeaders: "*",
    maxAge: MAX_AGE_SECONDS,
  });
}

/** Which of the optional pages a server has. */
interface RootPageOptions {
  readonly console: boolean;
  readonly documents: boolean;
  readonly metrics: boolean;
  readonly mcp: boolean;
}

/** Returns the paths of a server, and their contents for people. */
function placesOf({ console, documents, metrics, mcp }: RootPageOptions): Record<string, string> {
  return {
    "/v1": "REST API of the Lance Namespace specification",
    [`/${LanceNamespaceService.typeName}/`]:
      "Connect and gRPC-Web; clients of gRPC and Arrow Flight use the same port",
    ...(documents && { "/docs": "API page", "/openapi.json": "OpenAPI document of the REST API" }),
    ...(console && { "/console/": "console, for browsers" }),
    ...(mcp && { [MCP_PATH]: "Model Context Protocol, for agents" }),
    ...(metrics && { "/metrics": "metrics for Prometheus" }),
    "/healthz": "whether the process runs",
    "/readyz": "whether it can answer calls",
  };
}

/**
 * Answers requests for `/`, unless a plugin has a route for it: browsers are led to the console, and programs get a list of the paths, as
 * JSON if they accept that. Nothing in it is secret, so that it needs no credentials.
 */
export function addRootPage(app: FastifyInstance, options: RootPageOptions): void {
  const places = placesOf(options);
  const width = Math.max(...Object.keys(places).map(({ length }) => length));
  const lines = Object.entries(places).map(([path, what]) => `  ${path.padEnd(width)}  ${what}\n`);
  const text = `Lance Gateway\n\n${lines.join("")}`;

  function answer({ headers: { accept = "" } }: FastifyRequest, reply: FastifyReply): FastifyReply {
    reply.header("vary", "accept");
    if (options.console && accept.includes("text/html")) return reply.redirect("console/", 302);
    if (accept.includes("json")) return reply.send({ service: "Lance Gateway", paths: places });
    return reply.type("text/plain").send(text);
  }
  app.addHook("onRequest", (request, reply, next) => {
    const { method, url } = request;
    if (url !== "/" || (method !== "GET" && method !== "HEAD")) return next();
    // Fastify makes an object for these options at each access.
    const isOfPlugin = request.routeOptions.url === "/";
    if (isOfPlugin) return next();
    answer(request, reply);
  });
}
