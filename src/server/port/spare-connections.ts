import type { Socket } from "node:net";

/** How many connections beyond the maximum are kept. */
const MAX_SPARE = 64;

/** Longest time until a spare connection sends its first bytes, in milliseconds. */
export const SPARE_FIRST_BYTES_MS = 1_000;

/** Connections beyond the maximum, which get answers to probes. */
export interface SpareConnections {
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
