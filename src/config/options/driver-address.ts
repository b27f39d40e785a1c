import { backendKindOf, UsageError } from "../option-spec.ts";
import type { ServeOptions } from "./groups.ts";

/** How the calls of drivers name a database of a gateway with several. */
export interface DriverRoute {
  readonly database: string;
  /** Prefix of the name in a path; undefined if paths do not name databases. */
  readonly pathPrefix: string | undefined;
  /** Whether calls that name no database go to it. */
  readonly isFallback: boolean;
  /** The address for all databases. Default: there is none. */
  readonly common: string | undefined;
}

/**
 * Returns the address of the gateway for the drivers of its cluster.
 *
 * @throws UsageError for a port that plain HTTP does not reach, or that is not known before the first jobs go on
 */
export function driverAddress(options: ServeOptions): string {
  const { rayGatewayUrl } = options;
  if (rayGatewayUrl !== undefined) return rayGatewayUrl;
  const obstacle = obstacleOf(options);
  if (obstacle === undefined) return portAddress(options);
  const [flag, why] = obstacle;
  throw new UsageError(`${flag} with --job-engine ray requires --ray-gateway-url: ${why}`);
}

/**
 * Returns the options of a database with an address of its own for drivers, whose calls say nothing else about the database.
 *
 * @param at the place of the configuration, for errors
 * @throws UsageError if no path leads to the database
 */
export function withDriverAddress(options: ServeOptions, route: DriverRoute, at: string): ServeOptions {
  const { rayGatewayUrl: own, jobEngine, backend } = options;
  const { database, pathPrefix, isFallback, common } = route;
  const isOwn = own !== undefined && own !== common;
  if (jobEngine === "embedded" || backendKindOf(backend) !== "dir" || isOwn) return options;
  // The address is refused where it is needed.
  if (own === undefined && obstacleOf(options) !== undefined) return options;
  const address = driverAddress(options).replace(/\/$/, "");
  if (pathPrefix === undefined && isFallback) return options;
  if (pathPrefix === undefined)
    throw new UsageError(
      `${at}databases.${database}.ray-gateway-url is missing: drivers name a database by the path or the host of the address, and no route is by path`,
    );
  const path = `${pathPrefix}/${encodeURIComponent(database)}`;
  return { ...options, rayGatewayUrl: address.endsWith(path) ? address : `${address}${path}` };
}

/** Hosts at which the loopback address answers. */
const LOOPBACK_TOO: ReadonlySet<string> = new Set(["0.0.0.0", "::"]);

/** Returns the address of the port for drivers on the same machine. */
function portAddress({ host, port }: ServeOptions): string {
  const name = LOOPBACK_TOO.has(host) ? "127.0.0.1" : host.includes(":") ? `[${host}]` : host;
  return `http://${name}:${port}`;
}

/** Returns the option because of which drivers cannot be given the address of the port, and the reason. */
function obstacleOf({ port, socketPath, tlsCert }: ServeOptions): readonly [string, string] | undefined {
  if (socketPath !== undefined) return ["--listen", "drivers cannot call a Unix socket"];
  if (port === 0) return ["--port 0", "the port is not known when the first jobs go on"];
  if (tlsCert !== undefined)
    return ["--tls-cert", "drivers must call the gateway by a name of its certificate"];
  return undefined;
}
