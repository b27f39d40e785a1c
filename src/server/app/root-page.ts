import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import { MCP_PATH } from "../../wires/mcp.ts";

/** Which of the optional pages a server has. */
export interface RootPageOptions {
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
