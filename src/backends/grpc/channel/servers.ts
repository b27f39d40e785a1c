import { create } from "@bufbuild/protobuf";
import { type ServiceError, status } from "@grpc/grpc-js";
import {
  Health,
  HealthCheckRequestSchema,
  type HealthCheckResponse,
  HealthCheckResponse_ServingStatus as Status,
} from "../../../gen/grpc/health/v1/health_pb.ts";
import {
  type FollowedHosts,
  followHosts,
  type HostAddress,
  type ResolveHost,
} from "../../resilience/followed-hosts.ts";
import type { OutageLog } from "../../resilience/outage-log.ts";
import type { Endpoint } from "../../resilience/resilience.ts";
import { type Channel, type ChannelOptions, createChannel, definitionOf, hostOf } from "./channels.ts";

/** Options of {@link createServers}. */
export interface ServersOptions extends ChannelOptions {
  readonly addresses: readonly string[];
  /** Finds all addresses of a host. Default: the system. */
  readonly resolveHost?: ResolveHost | undefined;
}

/** Opens the channels to an upstream: one for each server of each given address. */
export function createServers(options: ServersOptions): FollowedHosts<Channel> {
  const { addresses, resolveHost } = options;
  if (addresses.length === 0) throw new Error("an upstream needs an address");

  /** An unreachable server may have moved. */
  function watched(channel: Channel): Channel {
    return {
      ...channel,
      async connected() {
        try {
          return await channel.connected();
        } catch (error) {
          servers.onUnreached();
          throw error;
        }
      },
    };
  }

  const servers = followHosts<Channel>({
    places: [...new Set(addresses)].map((address) => ({
      address,
      name: address,
      host: hostOf(address)?.host,
    })),
    open({ address }, found) {
      if (found === undefined) return createChannel(address, options);
      return watched(createChannel(address, options, serverOf(address, found)));
    },
    // The library lets the calls of a closed channel continue.
    drain: async (channel) => channel.close(),
    close: async (channel) => channel.close(),
    resolveHost,
  });
  return servers;
}

function serverOf(address: string, [first]: readonly HostAddress[]): string {
  const host = first?.family === 6 ? `[${first.address}]` : first?.address;
  return `${host}:${hostOf(address)?.port}`;
}

const TIMEOUT_MS = 5_000;

/** Whether any server of the upstream can answer. */
export async function isServing(servers: readonly Endpoint<Channel>[], outages: OutageLog): Promise<boolean> {
  return (await Promise.all(servers.map((server) => serves(server, outages)))).some(Boolean);
}

/** Whether a server can be reached and does not report that it cannot serve; it may lack grpc.health.v1. */
async function serves({ target: channel, name }: Endpoint<Channel>, outages: OutageLog): Promise<boolean> {
  const { path, requestSerialize, responseDeserialize } = definitionOf(Health.method.check);
  try {
    const client = await channel.connected();
    const answer = await new Promise((resolve, reject) => {
      client.makeUnaryRequest(
        path,
        requestSerialize,
        responseDeserialize,
        create(HealthCheckRequestSchema),
        { deadline: Date.now() + TIMEOUT_MS },
        (error, response) => (error === null ? resolve(response) : reject(error)),
      );
    });
    outages.answered(name);
    return (answer as HealthCheckResponse).status === Status.SERVING;
  } catch (error) {
    if ((error as Partial<ServiceError>).code !== status.UNIMPLEMENTED) {
      outages.failed(name, error);
      return false;
    }
    outages.answered(name);
    return true;
  }
}
