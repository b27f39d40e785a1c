import type { IncomingMessage, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Logger } from "pino";
import { LanceNamespaceService } from "../gen/lance/namespace/v1/service_pb.ts";
import { LanceError } from "../namespace/errors.ts";
import type { Service } from "../namespace/service.ts";
import type { NoteRefusal } from "../pipeline/refusals.ts";
import { createConnectHandler } from "../wires/connect.ts";
import { createGrpcHandler, type GrpcLimits } from "../wires/grpc/handler.ts";
import { DEFAULT_MAX_MESSAGE_BYTES } from "../wires/limits.ts";
import { createHttpRefusal } from "../wires/rest.ts";
import { serviceRpcs } from "../wires/rpc.ts";
import { type Addressing, createTakeAddress } from "./addressing.ts";
import { withBrowserGuard } from "./browser-guard.ts";
import { withCors } from "./cors.ts";
import { healthRpcs } from "./health.ts";
import { createHostCheck } from "./host-check.ts";
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
  /** The hosts that are served, as in {@link createHostCheck}. Default: any, or on loopback its own names. */
  readonly allowedHosts?: readonly string[] | undefined;
  readonly log: Logger;
  /** Is told of every connection that is accepted. */
  readonly accepted?: (() => void) | undefined;
  /** Is told of requests that fail before they are a call. */
  readonly refused?: NoteRefusal | undefined;
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
   * Drains: no longer ready, clients told to go, everything served for `delayMs` milliseconds (default 0) so that
   * balancers see it, then no new connections, running calls awaited for `graceMs` milliseconds (default 30 s) and then
   * cut off. Resolves to whether all of them finished.
   */
  close(options?: { graceMs?: number; delayMs?: number }): Promise<boolean>;
}

const DEFAULT_GRACE_MS = 30_000;

/** Creates the server: gRPC, gRPC-Web, Connect, REST, probes, metrics, gRPC health and reflection on one port. */
export function createServer(options: ServerOptions): GatewayServer {
  const { service, rest, readiness, metrics, log, maxMessageBytes = DEFAULT_MAX_MESSAGE_BYTES } = options;
  const health = healthRpcs(readiness, [LanceNamespaceService.typeName]);
  const files = [LanceNamespaceService.file, ...new Set(health.map(({ method }) => method.parent.file))];
  const rpcs = [...serviceRpcs(LanceNamespaceService, service), ...health, ...reflectionRpcs(files)];
  const connect = createConnectHandler({ ...options, rpcs, maxMessageBytes });
  const { corsOrigins: origins = [], allowedHosts = [] } = options;
  const hosts = createHostCheck(allowedHosts, options.addressing?.hosts);
  const router = createRouter({ connect, rest, readiness, metrics });
  const refuse = createHttpRefusal(log, options.refused);
  const guarded = withBrowserGuard(router, { hosts, origins, refuse });
  const crowd = (request: IncomingMessage, response: ServerResponse) => refuse(request, response, crowded());
  const listener = createListener({
    ...options,
    // No browser speaks gRPC itself, so that this needs no guard.
    grpc: createGrpcHandler({ ...options, rpcs }),
    http: withCors(guarded, origins),
    refuse,
    crowded: createRouter({ connect: () => false, rest: crowd, readiness, metrics }),
    takeAddress: createTakeAddress(options.addressing ?? {}),
  });
  return {
    async listen(where) {
      const address = await listener.listen(where);
      hosts.listensOn(where.host, address.address);
      return address;
    },
    close({ graceMs = DEFAULT_GRACE_MS, delayMs = 0 } = {}) {
      readiness.close();
      return listener.close(graceMs, delayMs);
    },
  };
}

function crowded(): LanceError {
  const headers = { "retry-after": "1" };
  return new LanceError("Throttling", "the server has as many connections as it takes", { headers });
}
