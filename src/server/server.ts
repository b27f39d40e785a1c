import type { AddressInfo } from "node:net";
import type { FastifyPluginCallback } from "fastify";
import type { Logger } from "pino";
import { LanceNamespaceService } from "../gen/lance/namespace/v1/service_pb.ts";
import { LanceError } from "../namespace/errors.ts";
import type { Service } from "../namespace/service.ts";
import type { NoteRefusal } from "../pipeline/refusals.ts";
import type { Transcoder } from "../transcode/transcoder.ts";
import { createGrpcHandler, type GrpcLimits } from "../wires/grpc/handler.ts";
import { serviceRpcs } from "../wires/rpc.ts";
import { type Addressing, createTakeAddress } from "./addressing.ts";
import { createApp } from "./app.ts";
import { healthRpcs } from "./health.ts";
import { createHostCheck } from "./host-check.ts";
import { type ConnectionLimits, createListener } from "./listener.ts";
import type { MetricsPage } from "./metrics-page.ts";
import type { Readiness } from "./readiness.ts";
import { reflectionRpcs } from "./reflection.ts";

/** What {@link createServer} needs. */
export interface ServerOptions extends ConnectionLimits, GrpcLimits {
  /** What answers the calls of gRPC, gRPC-Web and Connect. */
  readonly service: Service;
  /** The REST API, in each dialect that clients speak. Default: there is no REST. */
  readonly transcoders?: readonly Transcoder[] | undefined;
  /** Plugins of Fastify beside the API. Default: none. */
  readonly plugins?: readonly FastifyPluginCallback[] | undefined;
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
  const { service, readiness, transcoders = [], corsOrigins: origins = [], allowedHosts = [] } = options;
  const health = healthRpcs(readiness, [LanceNamespaceService.typeName]);
  const files = [LanceNamespaceService.file, ...new Set(health.map(({ method }) => method.parent.file))];
  const rpcs = [...serviceRpcs(LanceNamespaceService, service), ...health, ...reflectionRpcs(files)];
  const hosts = createHostCheck(allowedHosts, options.addressing?.hosts);
  const app = createApp({ ...options, rpcs, transcoders, hosts, origins });
  const listener = createListener({
    ...options,
    // No browser speaks gRPC itself, so that this needs no guard.
    grpc: createGrpcHandler({ ...options, rpcs }),
    http: app.answer,
    refuse(request, response, error) {
      app.refusals.add(request, error);
      app.answer(request, response);
    },
    crowded(request, response) {
      app.refusals.add(request, crowded(), true);
      app.answer(request, response);
    },
    takeAddress: createTakeAddress(options.addressing ?? {}),
  });
  return {
    async listen(where) {
      await app.fastify.ready();
      const address = await listener.listen(where);
      hosts.listensOn(where.host, address.address);
      return address;
    },
    async close({ graceMs = DEFAULT_GRACE_MS, delayMs = 0 } = {}) {
      readiness.close();
      const finished = await listener.close(graceMs, delayMs);
      await app.fastify.close();
      return finished;
    },
  };
}

function crowded(): LanceError {
  const headers = { "retry-after": "1" };
  return new LanceError("Throttling", "the server has as many connections as it takes", { headers });
}
