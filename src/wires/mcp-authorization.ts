import type { TLSSocket } from "node:tls";
import type { FastifyInstance } from "fastify";
import { LanceError } from "../namespace/errors.ts";
import { hostOf, type RestRequest } from "./rest/http.ts";

/** Where clients find the issuers of a resource's tokens (RFC 9728). */
const METADATA = "/.well-known/oauth-protected-resource";

/** Knows the issuers of tokens that are accepted now. */
interface WithIssuers {
  issuers(): readonly string[];
}

/** Serves the metadata of a protected resource, where tokens of issuers are accepted. */
export function addMetadata(app: FastifyInstance, path: string, { issuers }: WithIssuers): void {
  for (const url of [METADATA, `${METADATA}${path}`]) {
    app.get(url, (request, reply) => {
      const servers = issuers();
      if (servers.length === 0)
        throw new LanceError("RouteNotFound", "the gateway does not accept issuer tokens");
      return reply.header("cache-control", "no-store").send({
        resource: `${originOf(request.raw)}${path}`,
        authorization_servers: servers,
        bearer_methods_supported: ["header"],
        resource_name: "Lance Gateway",
      });
    });
  }
}

/** Adds the address of the metadata to the challenge of a refusal, where tokens of issuers are accepted. */
export function challenged(
  thrown: unknown,
  request: RestRequest,
  path: string,
  { issuers }: WithIssuers,
): unknown {
  if (!(thrown instanceof LanceError) || !thrown.is("Unauthenticated") || issuers().length === 0)
    return thrown;
  const given = thrown.headers["www-authenticate"] ?? "Bearer";
  const address = `resource_metadata="${originOf(request)}${METADATA}${path}"`;
  const challenge = given.replace(/\bBearer\b( (?=\w+=))?/, (_, more) =>
    more === undefined ? `Bearer ${address}` : `Bearer ${address}, `,
  );
  return new LanceError(thrown.kind, thrown.message, {
    headers: { ...thrown.headers, "www-authenticate": challenge },
    cause: thrown,
  });
}

/** Characters of a host with a port. */
const HOST = /^[\w.[\]:-]+$/;

/** Returns the origin as the client knows it. Only this client sees it, so a header of its own, or of a proxy, may say it. */
function originOf({ headers, socket }: Pick<RestRequest, "headers" | "socket">): string {
  const host = hostOf(headers) ?? "";
  const isTls = (socket as TLSSocket | undefined)?.encrypted === true;
  const isHttps = isTls || headers["x-forwarded-proto"] === "https";
  return `${isHttps ? "https" : "http"}://${HOST.test(host) ? host : "localhost"}`;
}
