import cors from "@fastify/cors";
import type { FastifyInstance } from "fastify";

/** How long a browser may keep the answer to a preflight, in seconds; no browser keeps it longer than two hours. */
const MAX_AGE_SECONDS = 7200;

/**
 * Lets pages of other origins call REST, Connect and gRPC-Web, as the Fetch standard has it (CORS).
 *
 * Credentials of the browser's own, such as cookies, are never allowed: the gateway has none, and programs send
 * theirs in headers. That is why pages may read every header of an answer.
 *
 * @param origins such as `https://app.example.com`, or `*` for any; without one, nothing changes.
 */
export function addCors(app: FastifyInstance, origins: readonly string[]): void {
  if (origins.length === 0) return;
  const known = new Set(origins);
  app.register(cors, {
    // An origin that is not known is told nothing, and its preflight is refused like any other request.
    origin: known.has("*")
      ? "*"
      : (origin, next) => next(null, origin !== undefined && known.has(origin) && origin),
    methods: ["GET", "POST"],
    exposedHeaders: "*",
    maxAge: MAX_AGE_SECONDS,
  });
}
