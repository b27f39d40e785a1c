import { isIP } from "node:net";
import { checkServerIdentity, type PeerCertificate } from "node:tls";
import { create, type DescMethod, fromBinary, type Message, toBinary } from "@bufbuild/protobuf";
import {
  type ChannelCredentials,
  Client,
  type ClientOptions,
  connectivityState,
  credentials,
  type MethodDefinition,
} from "@grpc/grpc-js";
import { Health, HealthCheckRequestSchema } from "../../../gen/grpc/health/v1/health_pb.ts";
import type { ByteBudget } from "../../../namespace/memory/byte-budget.ts";
import { Gate, type GateLimits } from "../../resilience/gate.ts";
import type { UpstreamTls } from "../../upstream-identity/identity.ts";
import type { PendingAnswer, Running } from "../answer.ts";
import { unreached } from "../errors.ts";
import { startUnary, type UnaryCall } from "../unary-call.ts";
import { createPickedServers } from "./picked-servers.ts";

/** Returns the description of a method for grpc-js. */
export function definitionOf(method: DescMethod): MethodDefinition<Message, Message> {
  const { input, output } = method;
  return {
    path: `/${method.parent.typeName}/${method.name}`,
    requestStream: method.methodKind === "client_streaming",
    responseStream: method.methodKind === "server_streaming",
    requestSerialize: (message) => toBuffer(toBinary(input, message)),
    requestDeserialize: (bytes) => fromBinary(input, bytes),
    responseSerialize: (message) => toBuffer(toBinary(output, message)),
    responseDeserialize: (bytes) => fromBinary(output, bytes),
  };
}

/**
 * Returns the function that encodes requests without the fields that the gateway does not know: a newer server could read another
 * object in them than those about which the gateway has decided.
 */
export function knownFieldsWriter({ input }: DescMethod): (message: Message) => Buffer {
  return (message) => toBuffer(toBinary(input, message, { writeUnknownFields: false }));
}

function toBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** Options of {@link createChannel}, in addition to its address. */
export interface ChannelOptions {
  readonly tls?: UpstreamTls | undefined;
  /** Longest time to connect, in milliseconds. */
  readonly connectMs: number;
  /** Silence after which a connection is probed, in milliseconds. */
  readonly keepAliveMs: number;
  /** Time since the start of the last call after which the connections are closed, in milliseconds. Default: 30 minutes. */
  readonly idleMs?: number | undefined;
  readonly maxMessageBytes: number;
  /** Memory of messages that have not arrived as a whole. */
  readonly answers: ByteBudget;
  /** Limits on the calls in flight and on those that wait. */
  readonly limits: GateLimits;
}

/** The connections to an address of an upstream. */
export interface Channel {
  /**
   * Returns the client for calls once the channel is connected.
   *
   * @throws LanceError ServiceUnavailable, if the channel is not connected, or not in time.
   */
  connected(): Client | Promise<Client>;
  /** Starts a call with a single message each way; if no connection is ready any longer, as soon as one is. */
  unary(call: UnaryCall, answer: PendingAnswer): Running;
  /** Gate that every call passes; each call takes a slot. */
  readonly gate: Gate;
  close(): void;
}

const KEEP_ALIVE_TIMEOUT_MS = 10_000;
/** How much of an answer may be in transit ahead of its reader, in bytes; equal to the listener's. */
const WINDOW_BYTES = 8 * 1024 * 1024;
/** Few calls fail meanwhile, because the circuit opens; a short backoff detects a recovered upstream soon. */
const MIN_RECONNECT_BACKOFF_MS = 100;
const MAX_RECONNECT_BACKOFF_MS = 2_000;
/** An unused connection may be cut on the way without notice. */
const IDLE_MS = 30 * 60_000;
/** Shortest time between lookups of a name while connections fail, in milliseconds. */
const MIN_RESOLUTION_INTERVAL_MS = 5_000;

/**
 * Opens a channel. It connects on first use, and again whenever its connection is lost.
 *
 * @param server the only server to connect to, instead of those to which the address leads
 */
export function createChannel(address: string, options: ChannelOptions, server?: string): Channel {
  const gate = new Gate(options.limits);
  const servers = createPickedServers(gate, options.answers);
  const authority = authorityOf(address, server);
  const settings = { ...settingsOf(options, address, authority, server), ...servers.options };
  const client = new Client(server ?? address, credentialsOf(options.tls, address), settings);
  let isClosed = false;
  /** Connects if necessary; the library would connect a closed channel, too, and for good. */
  const connect = () => {
    if (isClosed) throw unreached(new Error("the channel is closed"));
    return client.getChannel().getConnectivityState(true);
  };
  const connected = () =>
    connect() === connectivityState.READY ? client : waitForConnection(client, connect, options.connectMs);
  const { maxMessageBytes, answers } = options;
  const target = { authority, maxMessageBytes, answers, pick: servers.pick, connected };
  return {
    gate,
    connected,
    unary: (call, answer) => startUnary(target, call, answer),
    close() {
      isClosed = true;
      client.close();
    },
  };
}

/** Waits for a connection. @param connect connects if necessary, and returns the state */
async function waitForConnection(
  client: Client,
  connect: () => connectivityState,
  connectMs: number,
): Promise<Client> {
  const channel = client.getChannel();
  const deadline = Date.now() + connectMs;
  for (;;) {
    const state = connect();
    if (state === connectivityState.READY) return client;
    if (state === connectivityState.TRANSIENT_FAILURE) throw unreached(await reasonOf(client, deadline));
    await new Promise<void>((resolve, reject) => {
      channel.watchConnectivityState(state, deadline, (error) => {
        if (error === undefined || error === null) resolve();
        else reject(unreached(error));
      });
    });
  }
}

/** Returns why the connection failed; the library reports that only to a call. */
function reasonOf(client: Client, deadline: number): Promise<unknown> {
  const { path, requestSerialize, responseDeserialize } = definitionOf(Health.method.check);
  const request = create(HealthCheckRequestSchema);
  return new Promise((resolve) => {
    client.makeUnaryRequest(path, requestSerialize, responseDeserialize, request, { deadline }, resolve);
  });
}

function credentialsOf(tls: UpstreamTls | undefined, address: string): ChannelCredentials {
  if (tls === undefined) return credentials.createInsecure();
  const [ca, key, cert] = [tls.ca, tls.key, tls.cert].map((pem) =>
    pem === undefined ? null : Buffer.from(pem),
  );
  const ip = tls.serverName === undefined ? ipOf(address) : undefined;
  const checked = (_: string, certificate: PeerCertificate) => checkServerIdentity(ip ?? "", certificate);
  return credentials.createSsl(ca, key, cert, ip === undefined ? {} : { checkServerIdentity: checked });
}

/**
 * Returns the name for TLS: node refuses an IP address there, so a name replaces it while the certificate is checked
 * for the address.
 */
function targetName({ serverName }: UpstreamTls, address: string): string | undefined {
  return serverName ?? (ipOf(address) === undefined ? undefined : "localhost");
}

const ADDRESS = /^(?:[a-z0-9]+:(?:\/\/[^/]*\/)?)?\[?(.+?)\]?(?::\d+)?$/;

const HOST = /^(?:dns:(?:\/\/\/)?)?([^/:[\]]+)(?::(\d+))?$/;
/** The library's port for an address without one. */
const DEFAULT_PORT = "443";

/** Returns the IP address in an address of gRPC; undefined if it has a name. */
function ipOf(address: string): string | undefined {
  const host = ADDRESS.exec(address)?.[1] ?? "";
  return isIP(host) === 0 ? undefined : host;
}

/** Returns the host name and the port in an address of gRPC; undefined if it has no name, or another resolver. */
export function hostOf(address: string): { readonly host: string; readonly port: string } | undefined {
  const [, host = "", port = DEFAULT_PORT] = HOST.exec(address) ?? [];
  return host === "" || isIP(host) !== 0 ? undefined : { host, port };
}

const TARGET = /^(?:(dns|ipv4|ipv6|unix):(?:\/\/[^/]*\/)?)?([^,]+)/;

/** Returns the `:authority` of calls to an address. @param server a server of the address, whose name it does not have */
function authorityOf(address: string, server: string | undefined): string {
  const named = server === undefined ? undefined : hostOf(address);
  if (named !== undefined) return `${named.host}:${named.port}`;
  const [, scheme, path = address] = TARGET.exec(address) ?? [];
  return scheme === "unix" ? "localhost" : path;
}

function settingsOf(
  { tls, keepAliveMs, idleMs = IDLE_MS, maxMessageBytes }: ChannelOptions,
  address: string,
  authority: string,
  server: string | undefined,
): ClientOptions {
  const named = server === undefined ? undefined : hostOf(address);
  const target = tls && (targetName(tls, address) ?? named?.host);
  return {
    "grpc.max_receive_message_length": maxMessageBytes,
    "grpc.max_send_message_length": -1,
    "grpc.keepalive_time_ms": keepAliveMs,
    "grpc.keepalive_timeout_ms": KEEP_ALIVE_TIMEOUT_MS,
    "grpc.client_idle_timeout_ms": idleMs,
    "grpc.initial_reconnect_backoff_ms": MIN_RECONNECT_BACKOFF_MS,
    "grpc.max_reconnect_backoff_ms": MAX_RECONNECT_BACKOFF_MS,
    "grpc.dns_min_time_between_resolutions_ms": MIN_RESOLUTION_INTERVAL_MS,
    "grpc-node.flow_control_window": WINDOW_BYTES,
    "grpc.service_config_disable_resolution": 1,
    // A proxy in the environment is for the way out of a network, and an upstream is inside.
    "grpc.enable_http_proxy": 0,
    // Backends of different databases share no connection, so that a flooded one does not slow down another.
    "grpc.use_local_subchannel_pool": 1,
    // The figures of channelz are not used.
    "grpc.enable_channelz": 0,
    "grpc.default_authority": authority,
    ...(target !== undefined && { "grpc.ssl_target_name_override": target }),
  };
}
