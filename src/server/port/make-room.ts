import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { addressKey } from "../../namespace/call/caller-key.ts";
import type { Http2Sessions } from "../connections/http2-sessions.ts";
import { createIdleSearch } from "../connections/idle-search.ts";

/** The last response of a connection of HTTP/1.1, then the time from which on it is idle. Default: it has had no request. */
export type Http1State = ServerResponse | number | undefined;

/** The connections of a port, as {@link createRoomMaker} looks at them. */
export interface RoomMakerOptions {
  /** All connections, the oldest first. */
  readonly sockets: ReadonlyMap<Socket, Http1State>;
  /** Those that have not sent anything yet, the oldest first. */
  readonly undecided: ReadonlyMap<Socket, unknown>;
  readonly sessions: Pick<Http2Sessions, "endIdle" | "retire" | "isIdle">;
  readonly shares: AddressShares;
  /** Has a connection of HTTP/1.1 end after its answer. */
  readonly retire: (socket: Socket) => void;
  /** How long a connection is idle before another may take its place, in milliseconds. */
  readonly replaceableMs: number;
  /** How long a connection may still work after it has lost its place, in milliseconds. */
  readonly farewellMs: number;
}

/** Has connections end for others, on a port that is full. */
export interface RoomMaker {
  /** Ends a connection that waits for its next request; returns false if there is none that has waited long enough. */
  endIdle(): boolean;
  /**
   * Has a connection of the address that holds the most make room for a client whose address holds fewer; returns false if there is
   * none, or if many are about to end. A call that runs on the connection may end, and the client is told to reconnect.
   */
  takeFromLargest(peer: string | undefined): boolean;
}

/**
 * Number of connections that may be about to end, and beyond the maximum for that long, because their addresses have more than their
 * shares.
 */
const MAX_PARTING = 64;

/** Creates the function of a port that finds room for further connections. */
export function createRoomMaker(options: RoomMakerOptions): RoomMaker {
  const { sockets, undecided, sessions, shares, retire, replaceableMs, farewellMs } = options;
  /** Connections that make room for others, and have not ended yet. */
  const parting = new Set<Socket>();
  const idle = createIdleSearch<[Socket, Http1State]>(([socket, state]) =>
    typeof state !== "number" || socket.destroyed || parting.has(socket) ? undefined : state,
  );

  /** Returns the oldest connection that has not sent anything yet, or has no call, or any. */
  function leastMissed(some: ReadonlySet<Socket>): Socket {
    for (const socket of undecided.keys()) if (some.has(socket)) return socket;
    for (const socket of some) if (isIdle(socket)) return socket;
    const [oldest] = some;
    return oldest as Socket;
  }

  function isIdle(socket: Socket): boolean {
    return typeof sockets.get(socket) === "number" || sessions.isIdle(socket);
  }

  function part(socket: Socket): void {
    parting.add(socket);
    socket.on("close", () => parting.delete(socket));
    if (undecided.has(socket)) {
      socket.destroy();
      return;
    }
    if (!sessions.retire(socket)) retire(socket);
    const ifIdle = setTimeout(() => {
      if (isIdle(socket)) socket.destroy();
    }, replaceableMs);
    const anyway = setTimeout(() => socket.destroy(), farewellMs);
    socket.on("close", () => {
      clearTimeout(ifIdle);
      clearTimeout(anyway);
    });
  }

  return {
    endIdle() {
      const before = performance.now() - replaceableMs;
      const found = idle.find(sockets, before);
      if (found === undefined) return sessions.endIdle(before);
      found[0].destroy();
      return true;
    },

    takeFromLargest(peer) {
      if (parting.size >= MAX_PARTING) return false;
      const largest = shares.largestBeside(peer);
      if (largest === undefined) return false;
      const socket = leastMissed(largest);
      shares.take(socket);
      part(socket);
      return true;
    },
  };
}

/** Places of connections, by the addresses of their clients. */
interface AddressShares {
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

/** How many connections beyond the maximum are kept. */
const MAX_SPARE = 64;

/** Longest time until a spare connection sends its first bytes, in milliseconds. */
export const SPARE_FIRST_BYTES_MS = 1_000;

/** Connections beyond the maximum, which get answers to probes. */
interface SpareConnections {
  /**
   * Adds a connection until it closes. A probe is answered at once, so when all places are taken, the connection that
   * has been there for longest is destroyed.
   */
  add(socket: Socket): void;
  /** Whether a connection is a spare one. */
  has(socket: Socket): boolean;
}

/** Creates an empty set of spare connections. */
export function createSpareConnections(): SpareConnections {
  // In the order of their arrival.
  const sockets = new Set<Socket>();
  return {
    add(socket) {
      const [oldest] = sockets;
      if (sockets.size === MAX_SPARE && oldest !== undefined) {
        sockets.delete(oldest);
        oldest.destroy();
      }
      sockets.add(socket);
      socket.on("close", () => sockets.delete(socket));
    },
    has: (socket) => sockets.has(socket),
  };
}
