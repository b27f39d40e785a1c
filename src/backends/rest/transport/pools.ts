import type { LookupFunction } from "node:net";
import {
  type FollowedHosts,
  followHosts,
  type HostAddress,
  isName,
} from "../../resilience/followed-hosts.ts";
import type { RestBackendOptions } from "../options.ts";
import { UpstreamFailure } from "./transport.ts";
import { createHttpTransport, type HttpTransport } from "./undici-transport.ts";

/**
 * Creates the pools of connections to an upstream: one for each server of each configured address.
 *
 * @throws Error for an address that is not an HTTP URL, or has a query, a fragment or credentials.
 */
export function createPools(options: RestBackendOptions): FollowedHosts<HttpTransport> {
  const uris = [...new Set([options.uri].flat())];
  if (uris.length === 0) throw new Error("an upstream needs an address");

  /** An unreachable server may have moved. */
  function watched(transport: HttpTransport): HttpTransport {
    return {
      ...transport,
      async send(request) {
        try {
          return await transport.send(request);
        } catch (error) {
          if (error instanceof UpstreamFailure && error.kind === "connect") pools.onUnreached();
          throw error;
        }
      },
    };
  }

  const pools = followHosts<HttpTransport>({
    places: uris.map((uri) => {
      const { host: name, hostname } = URL.parse(uri) ?? { host: uri, hostname: "" };
      return { address: uri, name, host: isName(hostname) ? hostname : undefined };
    }),
    open({ address: uri }, addresses) {
      if (addresses === undefined) return createHttpTransport({ ...options, uri });
      return watched(createHttpTransport({ ...options, uri }, fixedLookup(addresses)));
    },
    drain: (transport) => transport.drain(),
    close: (transport) => transport.close(),
    resolveHost: options.resolveHost,
  });
  return pools;
}

/** Returns a lookup that always finds the given addresses. */
function fixedLookup(addresses: readonly HostAddress[]): LookupFunction {
  return (_host, options, done) => {
    const [first] = addresses;
    if (first === undefined) done(new Error("no address"), "");
    else if (options.all) done(null, [...addresses]);
    else done(null, first.address, first.family);
  };
}
