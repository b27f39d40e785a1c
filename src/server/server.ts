import type { AddressInfo } from "node:net";
import type { Logger } from "pino";
import { LanceNamespaceService } from "../gen/lance/namespace/v1/service_pb.ts";
import type { Service } from "../namespace/service.ts";
import { createConnectHandler } from "../wires/connect.ts";
import { createGrpcHandler, DEFAULT_MAX_MESSAGE_BYTES, type GrpcLimits } from "../wires/grpc/handler.ts";
import { serviceRpcs } from "../wires/rpc.ts";
import { type Addressing, createTakeAddress } from "./addressing.ts";
import { withCors } from "./cors.ts";
import { healthRpcs } from "./health.ts";
import { type ConnectionLimits, createListener, type HttpHandler } from "./listener.ts";
import type { Readiness } from "./readiness.ts";
import { reflectionRpcs } from "./reflection.ts";
import { createRouter, type MetricsPage } from "./router.ts";

/** What {@link createServer} needs. */
export interface ServerOptions extends ConnectionLimits, GrpcLimits {
  /** What answers the calls of gRPC, gRPC-Web and Connect. */
  readonly service: Service;
  /** What answers all other requests. */
  readonly rest: HttpHandler;
  readonly readiness: Readiness;
  /** What `/metrics` answers with. Default: there is no such path. */
  readonly metrics?: MetricsPage | undefined;
  /** Which parts of addresses name databases. Default: none. */
  readonly addressing?: Addressing | undefined;
  /** The origins whose pages may call from browsers; `*` stands for any. Default: none. */
  readonly corsOrigins?: readonly string[] | undefined;
  readonly log: Logger;
}

/** The server on its one port. */
export interface GatewayServer {
  /**
   * Begins to accept connections; port 0 takes a free one.
   *
   * @throws Error, from node:net, when the port cannot be had.
   */
  listen(options: { host: string; port: number }): Promise<AddressInfo>;
  /**
   * Drains: no longer ready, no new connections, clients told to go, running calls awaited for `graceMs`
   * milliseconds (default 30 s) and then cut off. Resolves to whether all of them finished.
   */
  close(options?: { graceMs?: number }): Promise<boolean>;
}

const DEFAULT_GRACE_MS = 30_000;

/** Creates the server: gRPC, gRPC-Web, Connect, REST, probes, metrics, gRPC health and reflection on one port. */
export function createServer(options: ServerOptions): GatewayServer {
  const { service, rest, readiness, metrics, log, maxMessageBytes = DEFAULT_MAX_MESSAGE_BYTES } = options;
  const health = healthRpcs(readiness, [LanceNamespaceService.typeName]);
  const files = [LanceNamespaceService.file, ...new Set(health.map(({ method }) => method.parent.file))];
  const rpcs = [...serviceRpcs(LanceNamespaceService, service), ...health, ...reflectionRpcs(files)];
  const connect = createConnectHandler({ rpcs, log, maxMessageBytes });
  const listener = createListener({
    ...options,
    grpc: createGrpcHandler({ ...options, rpcs }),
    http: withCors(createRouter({ connect, rest, readiness, metrics }), options.corsOrigins ?? []),
    takeAddress: createTakeAddress(options.addressing ?? {}),
  });
  return {
    listen: listener.listen,
    close({ graceMs = DEFAULT_GRACE_MS } = {}) {
      readiness.close();
      return listener.close(graceMs);
    },
  };
}
