import { type Logger, pino } from "pino";
import { readServeOptions } from "../config/serve-options.ts";
import type { Backend } from "../namespace/lance-namespace.ts";
import type { Metrics } from "../observability/metrics/metrics.ts";
import type { Interceptor } from "../pipeline/call/interceptor.ts";
import { type Gateway, serveBackend, type WireOptions } from "./compose.ts";
import { type EventOptions, type OpenAnnouncements, openAnnouncements } from "./events/open-webhooks.ts";
import { openTls, type TlsOptions } from "./open-tls.ts";
import type { GatewayPlugin } from "./plugins.ts";

/** Options of {@link createGateway}. The wires and webhooks have the same defaults as in `lance-gateway serve`. */
export interface GatewayOptions extends Partial<WireOptions>, TlsOptions, Partial<EventOptions> {
  readonly backend: Backend;
  /** Interceptors that every call passes, after those of plugins. Default: none. */
  readonly interceptors?: readonly Interceptor[];
  /** Default: none. */
  readonly plugins?: readonly GatewayPlugin[];
  /** Default: nothing is logged. */
  readonly log?: Logger;
  /** Counts the calls. Default: calls are not counted, and `/metrics` does not exist. */
  readonly metrics?: Metrics;
}

/**
 * Serves a backend through gRPC, gRPC-Web, Connect and REST on a port of its own. Closing the gateway closes the
 * backend, too.
 *
 * @throws Error of node:net, if the gateway cannot listen on the port, and UsageError for files of TLS and of webhooks that cannot be
 *   used.
 */
export async function createGateway(options: GatewayOptions): Promise<Gateway> {
  const { backend, interceptors = [], plugins = [], metrics, ...given } = options;
  const { log = pino({ level: "silent" }) } = options;
  const settings = { ...readServeOptions([]), ...given };
  const all = [...plugins, { interceptors }];
  const tls = await openTls(options, log);
  let events: OpenAnnouncements = {};
  try {
    events = await openAnnouncements(settings, { log, metrics });
    return await serveBackend(backend, settings, { log, metrics, plugins: all, tls, ...events });
  } catch (error) {
    tls?.close();
    await events.dispatcher?.close();
    throw error;
  }
}
