import { type FollowedHosts, followHosts } from "../../resilience/followed-hosts.ts";
import type { HostAddress, ResolveHost } from "../../resilience/host-addresses.ts";
import { type Channel, type ChannelOptions, createChannel, hostOf } from "./channels.ts";

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
