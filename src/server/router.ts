import type { ConnectHandler } from "../wires/connect.ts";
import { withoutQuery } from "../wires/rest/http.ts";
import type { HttpHandler } from "./listener.ts";
import type { Readiness } from "./readiness.ts";

/** What `/metrics` answers with. */
export interface MetricsPage {
  /** Writes the metrics down, in the format that an `Accept` header prefers. */
  read(accept?: string): Promise<{ readonly contentType: string; readonly text: string }>;
}

/** What {@link createRouter} needs. */
export interface RouterOptions {
  readonly connect: ConnectHandler;
  readonly rest: HttpHandler;
  readonly readiness: Readiness;
  /** Default: there is no `/metrics`. */
  readonly metrics?: MetricsPage | undefined;
}

/** What answers reads alone. */
const PAGES: ReadonlySet<string> = new Set(["/healthz", "/readyz", "/metrics"]);

/** Sends a request that is not gRPC where it belongs: to the probes and metrics, to Connect and gRPC-Web, or to REST. */
export function createRouter({ connect, rest, readiness, metrics }: RouterOptions): HttpHandler {
  return (request, response) => {
    const reply = (status: number, text: string, contentType = "text/plain") => {
      response.writeHead(status, { "content-type": contentType });
      response.end(text);
    };
    const serve = () => {
      if (!connect(request, response)) rest(request, response);
    };
    const path = withoutQuery(request.url ?? "");
    if (PAGES.has(path) && request.method !== "GET" && request.method !== "HEAD") {
      if (path === "/metrics" && metrics === undefined) return serve();
      response.setHeader("allow", "GET, HEAD");
      return reply(405, "only GET and HEAD\n");
    }
    switch (path) {
      case "/healthz":
        return reply(200, "ok\n");
      case "/readyz":
        return readiness.ready ? reply(200, "ok\n") : reply(503, "not ready\n");
      case "/metrics":
        if (metrics === undefined) return serve();
        metrics.read(request.headers.accept).then(
          ({ text, contentType }) => reply(200, text, contentType),
          () => reply(500, "the metrics cannot be read\n"),
        );
        return;
      default:
        return serve();
    }
  };
}
