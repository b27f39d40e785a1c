import type { Socket } from "node:net";
import { addressKey } from "../../namespace/call/caller-key.ts";

/** Places of connections, by the addresses of their clients. */
export interface AddressShares {
  /** Gives a connection a place until it closes, or until the place is taken. */
  add(socket: Socket, peer: string | undefined): void;
  /**
   * Returns the connections of the address that has the most, the oldest first; undefined unless it has more than the address of a
   * newcomer would have with one more.
   */
  largestBeside(peer: string | undefined): ReadonlySet<Socket> | undefined;
  /** Takes the place of a connection. */
  take(socket: Socket): void;
}

/**
 * Creates an empty set of places.
 *
 * @param speaksForMany whether an address is that of a proxy, whose connections no other address replaces
 */
export function createAddressShares(speaksForMany: (peer: string | undefined) => boolean): AddressShares {
  const byAddress = new Map<string, Set<Socket>>();
  const keys = new WeakMap<Socket, string>();

  function take(socket: Socket): void {
    const key = keys.get(socket);
    const places = key === undefined ? undefined : byAddress.get(key);
    if (key === undefined || places === undefined) return;
    places.delete(socket);
    if (places.size === 0) byAddress.delete(key);
  }

  return {
    add(socket, peer) {
      if (speaksForMany(peer)) return;
      const key = addressKey({ peer });
      const places = byAddress.get(key);
      if (places === undefined) byAddress.set(key, new Set([socket]));
      else places.add(socket);
      keys.set(socket, key);
      socket.on("close", () => take(socket));
    },
    largestBeside(peer) {
      let largest: Set<Socket> | undefined;
      for (const places of byAddress.values()) if (places.size > (largest?.size ?? 0)) largest = places;
      const own = byAddress.get(addressKey({ peer }))?.size ?? 0;
      return largest !== undefined && largest.size > own + 1 ? largest : undefined;
    },
    take,
  };
}
