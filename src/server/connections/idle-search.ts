/** Finds connections that have been idle for long enough. */
export interface IdleSearch<Connection> {
  /**
   * Returns the first connection that has been idle since before a time, in milliseconds.
   *
   * A search in vain is not repeated before it can succeed: on a full port, each new connection would look at all of them.
   */
  find(connections: Iterable<Connection>, before: number): Connection | undefined;
}

/**
 * Creates a search.
 *
 * @param idleSince returns since when a connection is idle, by the clock; undefined if it is not idle, or must not be found
 * @param now a clock in milliseconds. Default: the monotonic clock
 */
export function createIdleSearch<Connection>(
  idleSince: (connection: Connection) => number | undefined,
  now: () => number = () => performance.now(),
): IdleSearch<Connection> {
  /** No connection has been idle since before this time. */
  let earliest = Number.NEGATIVE_INFINITY;
  return {
    find(connections, before) {
      if (before <= earliest) return undefined;
      // A connection that becomes idle later is idle since then.
      let next = now();
      for (const connection of connections) {
        const since = idleSince(connection);
        if (since === undefined) continue;
        if (since < before) return connection;
        next = Math.min(next, since);
      }
      earliest = next;
      return undefined;
    },
  };
}
