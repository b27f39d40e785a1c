import { isIP } from "node:net";
import { checkServerIdentity, type PeerCertificate } from "node:tls";
import {
  type ChannelCredentials,
  Client,
  type ClientOptions,
  connectivityState,
  credentials,
} from "@grpc/grpc-js";
import { LanceError } from "../../namespace/errors.ts";

/** The certificates of a connection with TLS, in PEM. */
export interface TlsOptions {
  /** Who may have signed the upstream's certificate. Default: the authorities that Node brings. */
  readonly ca?: string | undefined;
  /** Our own certificate and its key, for an upstream that asks for them. */
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
  /** The name that the upstream's certificate has to have. Default: the host of the address. */
  readonly serverName?: string | undefined;
}

/** What {@link createChannels} needs. */
export interface ChannelOptions {
  readonly addresses: readonly string[];
  readonly tls?: TlsOptions | undefined;
  readonly connectMs: number;
  readonly keepAliveMs: number;
  readonly maxMessageBytes: number;
}

/** The connections to one upstream. */
export interface Channels {
  /**
   * A channel to call on: each address in turn, those that are known to be away last.
   *
   * @throws LanceError ServiceUnavailable, when no connection is made in time.
   */
  pick(): Client | Promise<Client>;
  close(): void;
}

const KEEP_ALIVE_TIMEOUT_MS = 10_000;
/** How much of one answer may be under way ahead of its reader; the same as the listener's. */
const WINDOW_BYTES = 8 * 1024 * 1024;
const MAX_RECONNECT_BACKOFF_MS = 10_000;

/** Opens channels; each connects when it is first used, and again whenever its connection is lost. */
export function createChannels(options: ChannelOptions): Channels {
  const { addresses, tls } = options;
  const clients = addresses.map(
    (address) => new Client(address, credentialsOf(tls, address), settingsOf(options, address)),
  );
  let turn = 0;

  function pick(): Client | Promise<Client> {
    let waiting: Client | undefined;
    let failed: Client | undefined;
    for (let step = 0; step < clients.length; step += 1) {
      turn = (turn + 1) % clients.length;
      const client = clients[turn] as Client;
      const state = client.getChannel().getConnectivityState(true);
      if (state === connectivityState.READY) return client;
      if (state === connectivityState.TRANSIENT_FAILURE) failed ??= client;
      else waiting ??= client;
    }
    // A call on a channel whose connection has failed fails at once, and says why.
    return waiting === undefined ? (failed as Client) : connected(waiting, options.connectMs);
  }

  return {
    pick,
    close() {
      for (const client of clients) client.close();
    },
  };
}

async function connected(client: Client, connectMs: number): Promise<Client> {
  const channel = client.getChannel();
  const deadline = Date.now() + connectMs;
  for (;;) {
    const state = channel.getConnectivityState(true);
    if (state === connectivityState.READY || state === connectivityState.TRANSIENT_FAILURE) return client;
    await new Promise<void>((resolve, reject) => {
      channel.watchConnectivityState(state, deadline, (error) => {
        if (error === undefined || error === null) resolve();
        else
          reject(
            new LanceError("ServiceUnavailable", "the upstream catalog cannot be reached", { cause: error }),
          );
      });
    });
  }
}

function credentialsOf(tls: TlsOptions | undefined, address: string): ChannelCredentials {
  if (tls === undefined) return credentials.createInsecure();
  const [ca, key, cert] = [tls.ca, tls.key, tls.cert].map((pem) =>
    pem === undefined ? null : Buffer.from(pem),
  );
  const ip = tls.serverName === undefined ? ipOf(address) : undefined;
  const checked = (_: string, certificate: PeerCertificate) => checkServerIdentity(ip ?? "", certificate);
  return credentials.createSsl(ca, key, cert, ip === undefined ? {} : { checkServerIdentity: checked });
}

/**
 * The name that TLS asks for: node refuses an IP address there, so that a name stands in for one, while the
 * certificate is checked for the address.
 */
function targetName({ serverName }: TlsOptions, address: string): string | undefined {
  return serverName ?? (ipOf(address) === undefined ? undefined : "localhost");
}

const ADDRESS = /^(?:[a-z0-9]+:(?:\/\/[^/]*\/)?)?\[?(.+?)\]?(?::\d+)?$/;

/** The IP address in an address of gRPC; undefined where that has a name. */
function ipOf(address: string): string | undefined {
  const host = ADDRESS.exec(address)?.[1] ?? "";
  return isIP(host) === 0 ? undefined : host;
}

function settingsOf({ tls, keepAliveMs, maxMessageBytes }: ChannelOptions, address: string): ClientOptions {
  const target = tls && targetName(tls, address);
  return {
    "grpc.max_receive_message_length": maxMessageBytes,
    "grpc.max_send_message_length": -1,
    "grpc.keepalive_time_ms": keepAliveMs,
    "grpc.keepalive_timeout_ms": KEEP_ALIVE_TIMEOUT_MS,
    "grpc.max_reconnect_backoff_ms": MAX_RECONNECT_BACKOFF_MS,
    "grpc-node.flow_control_window": WINDOW_BYTES,
    // A name with several addresses is a service with several instances.
    "grpc.service_config": JSON.stringify({ loadBalancingConfig: [{ round_robin: {} }] }),
    "grpc.service_config_disable_resolution": 1,
    // A proxy that the environment names is for the way out of a network, and an upstream is within.
    "grpc.enable_http_proxy": 0,
    // Backends of different databases share no connection: one that is flooded shall not slow down another.
    "grpc.use_local_subchannel_pool": 1,
    // Nobody asks for its figures.
    "grpc.enable_channelz": 0,
    ...(target !== undefined && { "grpc.ssl_target_name_override": target }),
  };
}
