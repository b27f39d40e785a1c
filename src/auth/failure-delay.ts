/** Options of {@link createFailureDelay}. */
export interface FailureDelayOptions {
  /** Delay after the first failure, in milliseconds; it doubles with each further one. Default: 10. */
  readonly firstMs?: number;
  /** Longest delay, in milliseconds. Default: 2 s. */
  readonly longestMs?: number;
  /** Time without a failure after which an address is forgotten, in milliseconds. Default: 60 s. */
  readonly memoryMs?: number;
  /** Number of addresses that are remembered. Default: 10,000. */
  readonly maxAddresses?: number;
}

/** Slows the answers to addresses down from which wrong credentials come. */
export interface FailureDelay {
  /** Counts a failure of an address, and returns how long its answer has to wait, in milliseconds. */
  failed(address: string | undefined): number;
}

interface Failures {
  readonly count: number;
  readonly at: number;
}

/** Creates a {@link FailureDelay}. Credentials that are right never wait, wherever they come from. */
export function createFailureDelay(options: FailureDelayOptions = {}): FailureDelay {
  const { firstMs = 10, longestMs = 2_000, memoryMs = 60_000, maxAddresses = 10_000 } = options;
  // In the order of the last failure, so that the first entry is the one to forget.
  const failures = new Map<string, Failures>();

  function forget(now: number): void {
    for (const [address, { at }] of failures) {
      if (failures.size <= maxAddresses && now - at < memoryMs) return;
      failures.delete(address);
    }
  }

  return {
    failed(address = "") {
      const now = performance.now();
      const before = failures.get(address);
      const count = before === undefined || now - before.at >= memoryMs ? 0 : before.count;
      failures.delete(address);
      failures.set(address, { count: count + 1, at: now });
      forget(now);
      return Math.min(longestMs, firstMs * 2 ** Math.min(count, 30));
    },
  };
}
