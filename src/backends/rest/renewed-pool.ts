import type { Pool } from "undici";

/** A pool of connections that is replaced from time to time, so that no connection gets old. */
export interface RenewedPool {
  readonly current: Pool;
  /** Ends all requests. */
  destroy(): Promise<void>;
  /** Waits for the requests that there are. */
  close(): Promise<void>;
}

/**
 * Creates the pool. Requests of a pool that is replaced are finished by it.
 *
 * @param ageMs how long a pool is used, in milliseconds; 0 for ever
 */
export function createRenewedPool(open: () => Pool, ageMs: number): RenewedPool {
  const former = new Set<Pool>();
  let current = open();
  const timer = ageMs === 0 ? undefined : setInterval(renew, ageMs).unref();

  function renew(): void {
    const old = current;
    current = open();
    former.add(old);
    const ended = () => former.delete(old);
    // It rejects when the pool is destroyed before its requests have ended.
    old.close().then(ended, ended);
  }

  return {
    get current() {
      return current;
    },
    async destroy() {
      clearInterval(timer);
      await Promise.all([current, ...former].map((pool) => pool.destroy()));
    },
    close() {
      clearInterval(timer);
      return current.close();
    },
  };
}
