import type { AddressInfo } from "node:net";
import type { FastifyPluginAsync, FastifyPluginCallback } from "fastify";
import type { Logger } from "pino";
import { FlightService } from "../gen/arrow/flight/protocol/Flight_pb.ts";
import { AccessService } from "../gen/lance/gateway/v1/access_pb.ts";
import { SqlService } from "../gen/lance/gateway/v1/sql_pb.ts";
import { ViewService } from "../gen/lance/gateway/v1/sql_view_pb.ts";
import { LanceNamespaceService } from "../gen/lance/namespace/v1/service_pb.ts";
import { LanceError } from "../namespace/errors.ts";
import type { ConnectionFigures } from "../namespace/figures.ts";
import type { ByteBudget } from "../namespace/memory/byte-budget.ts";
import type { Service } from "../namespace/service.ts";
import type { NoteAccess } from "../pipeline/records/access-entry.ts";
import type { NoteRefusal, Refusal } from "../pipeline/records/refusals.ts";
import { createLoopPace, type LoopPace } from "../runtime/loop-pace.ts";
import type { Transcoder } from "../transcode/transcoder.ts";
import { type FlightOptions, flightRpcs, sqlRpcs } from "../wires/flight/flight-rpcs.ts";
import { createGrpcHandler, type GrpcLimits } from "../wires/grpc/handler.ts";
import type { McpEndpoint } from "../wires/mcp.ts";
import { pathOf, serviceRpcs } from "../wires/rpc.ts";
import { createApp } from "./app/app.ts";
import { createHostCheck } from "./app/browser-guard.ts";
import type { ConsoleOptions } from "./app/console-pages.ts";
import type { MetricsPage, Readiness } from "./app/probes.ts";
import type { ApiDocuments } from "./app/static-pages.ts";
import { healthRpcs } from "./health.ts";
import type { ConnectionLimits } from "./port/connection-settings.ts";
import type { ListenAddress } from "./port/listen.ts";
import { createListener } from "./port/listener.ts";
import { reflectionRpcs } from "./reflection.ts";
import { createArrivalPace } from "./requests/arrival-pace.ts";
import { type ClientHeader, createArrivals, createFindClient } from "./requests/arrivals.ts";
import { type Addressing, createTakeAddress } from "./requests/request-head.ts";
import type { TlsIdentity } from "./tls/identity.ts";

/** Options of {@link createServer}. */
export interface ServerOptions extends ConnectionLimits, GrpcLimits {
  /** Answers the calls of gRPC, gRPC-Web and Connect. */
  readonly service: Service;
  /** Memory budget of answers that their clients do not take. Default: no bound. */
  readonly unsentBudget?: ByteBudget | undefined;
  /** The REST API, in each dialect of its clients. Default: REST is not served. */
  readonly transcoders?: readonly Transcoder[] | undefined;
  /** Plugins of Fastify beside the API. Default: none. */
  readonly plugins?: readonly (FastifyPluginCallback | FastifyPluginAsync)[] | undefined;
  readonly readiness: Readiness;
  /** Content of `/metrics`. Default: the path does not exist. */
  readonly metrics?: MetricsPage | undefined;
  /** Content of `/openapi.json` and `/docs`. Default: the paths do not exist. */
  readonly documents?: ApiDocuments | undefined;
  /** The built console. Default: `/console` does not exist. */
  readonly console?: ConsoleOptions | undefined;
  /** The Model Context Protocol. Default: `/mcp` does not exist. */
  readonly mcp?: McpEndpoint | undefined;
  /** Arrow Flight. Default: it is not served. */
  readonly flight?: FlightOptions | undefined;
  /** Parts of addresses that name databases. Default: none. */
  readonly addressing?: Addressing | undefined;
  /** Origins whose pages may call from browsers; `*` matches any. Default: none. */
  readonly corsOrigins?: readonly string[] | undefined;
  /** Hosts that are served, as in {@link createHostCheck}. Default: any, or on loopback its own names. */
  readonly allowedHosts?: readonly string[] | undefined;
  /** Certificate of the port, which then speaks TLS only. Default: the port speaks plain text only. */
  readonly tls?: TlsIdentity | undefined;
  readonly log: Logger;
  /** Shares turns of the event loop among calls. Default: a pace of this server alone. */
  readonly pace?: LoopPace | undefined;
  /** Networks of proxies that name the client. Default: the client is the peer of the connection. */
  readonly trustedProxies?: readonly string[] | undefined;
  /** Header in which these proxies name the client. Default: `x-forwarded-for`. */
  readonly trustedProxyHeader?: ClientHeader | undefined;
  /** Called at the end of each request. Default: requests are not noted. */
  readonly noteAccess?: NoteAccess | undefined;
  /** Called for requests that fail before they become a call. */
  readonly refused?: NoteRefusal | undefined;
}

/** The server on its port. */
export interface GatewayServer {
  /**
   * Starts to accept connections; port 0 takes a free one.
   *
   * @throws Error, from node:net, if the port is not available.
   */
  listen(options: ListenAddress): Promise<AddressInfo>;
  /**
   * Drains: the server becomes unready, tells clients to reconnect, and serves everything for `delayMs` milliseconds
   * (default 0) so that load balancers notice. Then it accepts no new connections, waits for running calls for
   * `graceMs` milliseconds (default 30 s), and cuts off the rest. Resolves to whether all calls finished.
   */
  close(options?: { graceMs?: number; delayMs?: number }): Promise<boolean>;
  /** Replaces the parts of addresses that name databases. */
  readdress(addressing: Addressing | undefined): void;
  /** Replaces the function that notes requests, also those that are in flight, at their end; undefined notes no more. */
  noteAccessBy(note: NoteAccess | undefined): void;
  /** Returns what has come and gone since the start. */
  figures(): ConnectionFigures;
}

const DEFAULT_GRACE_MS = 30_000;

/**
 * Creates the server: gRPC, gRPC-Web, Connect, REST, probes, metrics, the console, MCP, gRPC health and reflection on a single port.
 */
export function createServer(given: ServerOptions): GatewayServer {
  let noteAccess = given.noteAccess;
  const note: NoteAccess = (entry) => noteAccess?.(entry);
  const newArrivals = () => openArrivals(given, noteAccess && note);
  let arrivals = newArrivals();
  const options = {
    ...given,
    arrivals: () => arrivals,
    refused: (refusal: Refusal) => (arrivals?.refused ?? given.refused)?.(refusal),
  };
  const { service, readiness, transcoders = [], corsOrigins: origins = [], allowedHosts = [] } = options;
  const [pace, probePace] = [options.pace ?? createLoopPace(), createLoopPace()];
  const services = [
    ...[LanceNamespaceService, ViewService, AccessService],
    ...(options.flight === undefined ? [] : [FlightService]),
    ...(options.flight?.sql === undefined ? [] : [SqlService]),
  ];
  const health = healthRpcs(
    readiness,
    services.map(({ typeName }) => typeName),
  );
  const files = [...services, ...health.map(({ method }) => method.parent)].map(({ file }) => file);
  const rpcs = [
    ...serviceRpcs(LanceNamespaceService, service),
    ...serviceRpcs(ViewService, service),
    ...serviceRpcs(AccessService, service),
    ...(options.flight?.sql === undefined ? [] : sqlRpcs(service, options.flight.sql)),
    ...health,
    ...reflectionRpcs([...new Set(files)]),
  ];
  // Flight is gRPC of its own kind, which no browser speaks.
  const native = [...rpcs, ...(options.flight === undefined ? [] : flightRpcs(service, options.flight))];
  const hosts = createHostCheck(allowedHosts, options.addressing?.hosts);
  const app = createApp({ ...options, rpcs, transcoders, hosts, origins, pace, probePace });
  let takeAddress = createTakeAddress(options.addressing ?? {});
  const listener = createListener({
    ...options,
    // Browsers cannot make gRPC calls, so this handler needs no guard.
    grpc: createGrpcHandler({ ...options, rpcs: native, pace, probePace }),
    http: app.answer,
    pace: createArrivalPace(pace, probePace, new Set(native.map(({ method }) => pathOf(method)))),
    refuse: app.refuse,
    crowded: (request, response) => app.refuse(request, response, crowded(), true),
    accepted() {
      pace.noteConnection();
      probePace.noteConnection();
    },
    takeAddress: (target, headers) => takeAddress(target, headers),
  });
  return {
    figures: listener.figures,
    noteAccessBy(next) {
      noteAccess = next;
      arrivals = newArrivals();
    },
    readdress(addressing = {}) {
      takeAddress = createTakeAddress(addressing);
      hosts.serveAlso(addressing.hosts ?? []);
    },
    async listen(where) {
      await app.fastify.ready();
      const address = await listener.listen(where);
      hosts.listensOn("path" in where ? where.path : where.host, address.address);
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

/** Keeping account of requests costs something, so it is left out where nothing needs it. */
function openArrivals(options: ServerOptions, note: NoteAccess | undefined) {
  const { trustedProxies = [], trustedProxyHeader, refused } = options;
  if (trustedProxies.length === 0 && note === undefined) return undefined;
  return createArrivals({ findClient: createFindClient(trustedProxies, trustedProxyHeader), note, refused });
}

function crowded(): LanceError {
  const headers = { "retry-after": "1" };
  return new LanceError("Throttling", "connection limit reached", { headers });
}
