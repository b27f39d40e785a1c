import type { ConnectHandler } from "../wires/connect.ts";
import type { HttpHandler } from "./listener.ts";
import type { Readiness } from "./readiness.ts";

/** What {@link createRouter} needs. */
export interface RouterOptions {
  readonly connect: ConnectHandler;
  readonly rest: HttpHandler;
  readonly readiness: Readiness;
}

/** Sends a request that is not gRPC where it belongs: to the probes, to Connect and gRPC-Web, or to REST. */
export function createRouter({ connect, rest, readiness }: RouterOptions): HttpHandler {
  return (request, response) => {
    const reply = (status: number, text: string) => {
      response.writeHead(status, { "content-type": "text/plain" });
      response.end(text);
    };
    switch (request.url?.split("?", 1)[0]) {
      case "/healthz":
        return reply(200, "ok\n");
      case "/readyz":
        return readiness.ready ? reply(200, "ok\n") : reply(503, "not ready\n");
      default:
        if (!connect(request, response)) rest(request, response);
    }
  };
}
