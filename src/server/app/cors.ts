import cors from "@fastify/cors";
import type { FastifyInstance } from "fastify";

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
export function addCors(app: FastifyInstance, origins: readonly string[]): void {
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
