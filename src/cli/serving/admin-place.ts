import { UsageError } from "../../config/option-spec.ts";
import type { ServeOptions } from "../../config/options/groups.ts";
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
