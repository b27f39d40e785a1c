import { type IncomingMessage, METHODS, type ServerResponse } from "node:http";
import fastify, { type FastifyInstance, type FastifyPluginCallback } from "fastify";
import { LanceError } from "../namespace/errors.ts";
import { createErrorHandler, type HttpWiresOptions, httpWires, passBodiesOn } from "../wires/http-wires.ts";
import { createTargetRewrite } from "../wires/rest/target-rewrite.ts";
import { requestIdOf } from "../wires/rpc.ts";
import { addBrowserGuard } from "./browser-guard.ts";
import { addCors } from "./cors.ts";
import type { HostCheck } from "./host-check.ts";
import { type MetricsPage, metricsPlugin } from "./metrics-page.ts";
import { probesPlugin } from "./probes.ts";
import type { Readiness } from "./readiness.ts";
import { addRefusals, type Refusals } from "./refusals.ts";

/** What {@link createApp} needs. */
export interface AppOptions extends HttpWiresOptions {
  readonly readiness: Readiness;
  /** What `/metrics` answers with. Default: there is no such path. */
  readonly metrics?: MetricsPage | undefined;
  readonly hosts: HostCheck;
  /** The origins whose pages may call from browsers; `*` stands for any. */
  readonly origins: readonly string[];
  /** Further plugins, which come before the wires. Default: none. */
  readonly plugins?: readonly FastifyPluginCallback[] | undefined;
}

/** Everything that is not native gRPC, as one instance of Fastify. */
export interface App {
  readonly fastify: FastifyInstance;
  /** Requests that are answered with an error whatever they ask for. */
  readonly refusals: Refusals;
  /** Answers a request of node:http, or of node:http2 through its compatibility API, once Fastify is ready. */
  answer(request: IncomingMessage, response: ServerResponse): void;
}

const KNOWN_METHODS: ReadonlySet<string> = new Set(METHODS);

/** Creates the application: what concerns all paths first, then probes, metrics, further plugins, and the wires. */
export function createApp(options: AppOptions): App {
  const { readiness, metrics, hosts, origins, plugins = [] } = options;
  const app = createFastify(options);
  const refusals = addRefusals(app, options);
  addCors(app, origins);
  addBrowserGuard(app, { hosts, origins, refused: options.refused });

  app.register(probesPlugin, { readiness });
  if (metrics !== undefined) app.register(metricsPlugin, { metrics });
  for (const plugin of plugins) app.register(plugin);
  app.register(httpWires, { ...options, dropsSlashes: true });

  return {
    fastify: app,
    refusals,
    answer(request, response) {
      // HTTP/2 lets a client invent methods, of which Fastify knows nothing.
      if (!KNOWN_METHODS.has(request.method ?? "")) {
        refusals.add(request, unknownMethod(request.method));
        request.method = "GET";
      }
      app.routing(request, response);
    },
  };
}

/** Fastify with the settings of a server that has a listener of its own (docs/adr/0040). */
function createFastify(options: AppOptions): FastifyInstance {
  const rewrite = createTargetRewrite(options.transcoders);
  const onError = createErrorHandler(options);
  const app = fastify({
    genReqId: ({ headers }) => requestIdOf(headers["x-request-id"]),
    rewriteUrl: ({ url = "" }) => rewrite(url),
    frameworkErrors: onError,
    // The listener tells clients to go, and answers until they have gone.
    return503OnClosing: false,
    routerOptions: {
      // The head of a request has a bound, which Node holds clients to; identifiers have none of their own.
      maxParamLength: Number.MAX_SAFE_INTEGER,
      // The wires read the query as their messages have it.
      querystringParser: () => NO_QUERY,
      compile: true,
    },
  });
  app.setErrorHandler(onError);
  passBodiesOn(app);
  return app;
}

const NO_QUERY: Readonly<Record<string, never>> = Object.freeze({});

function unknownMethod(method = ""): LanceError {
  return new LanceError("MethodNotAllowed", `${JSON.stringify(method)} is no method of HTTP`, {
    headers: { allow: "GET, HEAD, POST" },
  });
}
