import type { IncomingMessage, ServerResponse } from "node:http";
import type { HttpHandler } from "./listener.ts";

/** How long a browser may keep the answer to a preflight, in seconds; no browser keeps it longer than two hours. */
const MAX_AGE_SECONDS = "7200";

/**
 * Lets pages of other origins call REST, Connect and gRPC-Web, as the Fetch standard has it (CORS).
 *
 * Credentials of the browser's own, such as cookies, are never allowed: the gateway has none, and programs send
 * theirs in headers. That is why pages may read every header of an answer.
 *
 * @param origins such as `https://app.example.com`, or `*` for any; without one, nothing changes.
 */
export function withCors(handler: HttpHandler, origins: readonly string[]): HttpHandler {
  if (origins.length === 0) return handler;
  const any = origins.includes("*");
  const known = new Set(origins);

  return (request, response) => {
    const { origin } = request.headers;
    // A cache must not hand the answer for one origin to another.
    if (!any) response.setHeader("vary", "origin");
    if (origin === undefined || !(any || known.has(origin))) {
      handler(request, response);
      return;
    }
    response.setHeader("access-control-allow-origin", any ? "*" : origin);
    if (isPreflight(request)) {
      answerPreflight(request, response);
      return;
    }
    response.setHeader("access-control-expose-headers", "*");
    handler(request, response);
  };
}

function isPreflight({ method, headers }: IncomingMessage): boolean {
  return method === "OPTIONS" && headers["access-control-request-method"] !== undefined;
}

function answerPreflight({ headers }: IncomingMessage, response: ServerResponse): void {
  response.setHeader("access-control-allow-methods", "GET, POST");
  // Named one by one, because `*` leaves out Authorization.
  const wanted = headers["access-control-request-headers"];
  if (wanted !== undefined) response.setHeader("access-control-allow-headers", wanted);
  response.setHeader("access-control-max-age", MAX_AGE_SECONDS);
  response.writeHead(204);
  response.end();
}
