import type {
  DescMethodBiDiStreaming,
  DescMethodClientStreaming,
  DescMethodServerStreaming,
  DescMethodUnary,
} from "@bufbuild/protobuf";
import type { Logger } from "pino";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import type { Backend, LanceNamespace } from "../../namespace/port.ts";
import { createIdentity } from "../upstream-identity/create-identity.ts";
import { createHeaderPolicy } from "../upstream-identity/headers.ts";
import type { UpstreamIdentityOptions } from "../upstream-identity/identity.ts";
import { downloadHandler, type Upstream, unaryHandler, uploadHandler } from "./calls.ts";
import { createChannels, type TlsOptions } from "./channels.ts";
import { isServing } from "./health.ts";

/** Options of {@link createGrpcBackend}. */
export interface GrpcBackendOptions {
  /**
   * Where the upstream listens, as gRPC has it: `host:port`, `dns:///host:port`, `unix:path`. Calls go to several
   * in turn, as they do to all addresses that a name has.
   */
  readonly addresses: readonly string[];
  /** Encrypts the connections. Default: they are not encrypted. */
  readonly tls?: TlsOptions | undefined;
  /** Headers of every call to the upstream. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /**
   * Headers of clients that are passed on, in lower case; a `*` at the end stands for any ending.
   * Default: {@link DEFAULT_PASSED_HEADERS}.
   */
  readonly passHeaders?: readonly string[] | undefined;
  /** Headers in the context of answers that clients get, in the same form. Default: {@link DEFAULT_RETURNED_HEADERS}. */
  readonly returnHeaders?: readonly string[] | undefined;
  /** Default: passthrough. */
  readonly identity?: UpstreamIdentityOptions | undefined;
  /** How long a connection may take, in milliseconds. Default: 5 s. */
  readonly connectMs?: number | undefined;
  /** How long a call with a single answer may take, in milliseconds. Default: as long as its client waits. */
  readonly timeoutMs?: number | undefined;
  /** How long a connection is quiet before it is probed, in milliseconds. Default: 30 s. */
  readonly keepAliveMs?: number | undefined;
  /** The largest message that the upstream may answer with, in bytes. Default: 64 MiB. */
  readonly maxMessageBytes?: number | undefined;
  readonly log: Logger;
}

const MIB = 1024 * 1024;

/**
 * Creates the backend that hands every operation to an upstream by gRPC. It connects with the first call.
 *
 * @throws Error with one clear line for options that cannot be used.
 */
export async function createGrpcBackend(options: GrpcBackendOptions): Promise<Backend> {
  const {
    addresses,
    tls,
    log,
    connectMs = 5_000,
    keepAliveMs = 30_000,
    maxMessageBytes = 64 * MIB,
  } = options;
  const channels = createChannels({ addresses, tls, connectMs, keepAliveMs, maxMessageBytes });
  const upstream: Upstream = {
    channels,
    timeoutMs: options.timeoutMs,
    policy: createHeaderPolicy(options),
    identity: createIdentity(options.identity),
  };
  const handlers = LanceNamespaceService.methods.map((method) => [
    method.localName,
    handlerOf(method, upstream),
  ]);
  return {
    name: "grpc",
    operations: Object.fromEntries(handlers) as LanceNamespace,
    ready: () => isServing(channels, log),
    close: async () => channels.close(),
  };
}

type AnyMethod =
  | DescMethodUnary
  | DescMethodClientStreaming
  | DescMethodServerStreaming
  | DescMethodBiDiStreaming;

function handlerOf(method: AnyMethod, upstream: Upstream): unknown {
  switch (method.methodKind) {
    case "unary":
      return unaryHandler(method, upstream);
    case "client_streaming":
      return uploadHandler(method, upstream);
    case "server_streaming":
      return downloadHandler(method, upstream);
    default:
      throw new Error(`${method} streams both ways, which no operation does`);
  }
}
