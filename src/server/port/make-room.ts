import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Http2Sessions } from "../connections/http2-sessions.ts";
import { createIdleSearch } from "../connections/idle-search.ts";
import type { AddressShares } from "./address-shares.ts";

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
