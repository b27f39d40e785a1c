import type { AddressInfo } from "node:net";
import type { Logger } from "pino";
import type { ShownConfiguration } from "../../config/explain.ts";
import { UsageError } from "../../config/option-spec.ts";
import type { ServeOptions } from "../../config/options/groups.ts";
import { LOG_LEVELS } from "../../config/options/server.ts";
import type { Gateway } from "../../gateway/compose.ts";
import { isLoopbackAddress } from "../../runtime/loopback.ts";
import { createAdminServer } from "../../server/admin/admin-server.ts";
import type { ListenAddress } from "../../server/port/listen.ts";

/** Only the gateway's own user may connect to a socket for operators. */
const SOCKET_MODE = 0o600;

type AdminOptions = Pick<
  ServeOptions,
  "adminPort" | "adminHost" | "adminSocketPath" | "metricsOn" | "noMetrics"
>;

/**
 * Returns where the server for operators listens; undefined if there is none.
 *
 * @throws UsageError for options that contradict each other.
 */
export function adminPlace(options: AdminOptions): ListenAddress | undefined {
  const { adminPort: port, adminHost: host, adminSocketPath: path, metricsOn, noMetrics } = options;
  if (port !== undefined && path !== undefined)
    throw new UsageError("--admin-port and --admin-listen contradict each other");
  if (metricsOn === "admin" && noMetrics)
    throw new UsageError("--metrics-on and --no-metrics contradict each other");
  if (metricsOn === "admin" && (port ?? path) === undefined)
    throw new UsageError("--metrics-on admin requires --admin-port or --admin-listen");
  if (path !== undefined) return { path, mode: SOCKET_MODE };
  return port === undefined ? undefined : { host, port };
}

/** The open server for operators. */
export interface Admin {
  readonly address: AddressInfo;
  close(): Promise<void>;
}

/**
 * Opens the server for operators.
 *
 * @param shown returns the configuration in effect.
 * @throws Error of node:net, if the port is not available.
 */
export async function openAdmin(
  place: ListenAddress,
  metricsOn: ServeOptions["metricsOn"],
  gateway: Gateway,
  shown: () => ShownConfiguration,
  log: Logger,
): Promise<Admin> {
  const server = createAdminServer({
    readiness: gateway,
    metrics: metricsOn === "data" ? undefined : gateway.metrics,
    control: {
      configuration: shown,
      logLevels: LOG_LEVELS,
      logLevel: () => log.level,
      setLogLevel(level) {
        gateway.setLogLevel(level);
        log.info({ to: level }, "an operator has set the log level");
      },
      profiles: gateway.profiles,
    },
    log,
  });
  const address = await server.listen(place);
  if (address.family !== "unix" && !isLoopbackAddress(address.address))
    log.warn({ address: address.address }, "other machines can read metrics and probes on the admin port");
  log.info({ address: address.address, port: address.port }, "listening for operators");
  return { address, close: server.close };
}
