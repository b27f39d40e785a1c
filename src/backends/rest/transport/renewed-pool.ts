import type { Pool } from "undici";

/** A pool of connections that is replaced from time to time, so that connections do not get old. */
export interface RenewedPool {
  readonly current: Pool;
  /** Ends all requests. */
  destroy(): Promise<void>;
  /** Waits for the running requests. */
  close(): Promise<void>;
}

/**
 * Creates the pool. A replaced pool finishes its requests.
 *
 * @param ageMs how long a pool is used, in milliseconds; 0 for no limit
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
    // It rejects if the pool is destroyed before its requests have ended.
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
