import type { IncomingHttpHeaders } from "node:http";
import { type Route, routeKey, type Transcoder } from "../../transcode/transcoder.ts";

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
