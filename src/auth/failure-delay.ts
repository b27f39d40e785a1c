import { type CellShape, type KeyedCells, openCells } from "../runtime/threads/keyed-cells.ts";
import { backoffMs } from "../runtime/time/backoff.ts";
import { monotonicNow } from "../runtime/time/monotonic.ts";

/** Options of {@link createFailureDelay}. */
export interface FailureDelayOptions {
  /** Delay after the first failure, in milliseconds; it doubles with each further one. Default: 10. */
  readonly firstMs?: number;
  /** Longest delay, in milliseconds. Default: 2 s. */
  readonly longestMs?: number;
  /** Time without a failure after which an address is forgotten, in milliseconds. Default: 60 s. */
  readonly memoryMs?: number;
  /** Failures of addresses, of the shape {@link FAILURES_SHAPE}. Default: those of this thread alone. */
  readonly cells?: KeyedCells | undefined;
}

/** Slows the answers to addresses down from which wrong credentials come. */
export interface FailureDelay {
  /** Counts a failure of an address, and returns how long its answer has to wait, in milliseconds. */
  failed(address: string | undefined): number;
}

/** Shape of the numbers of failures: the time of the last one, which is the rank, and how many there were. */
export const FAILURES_SHAPE: CellShape = { numbers: 1 };

/** Creates a {@link FailureDelay}. Credentials that are right never wait, wherever they come from. */
export function createFailureDelay(options: FailureDelayOptions = {}): FailureDelay {
  const { firstMs = 10, longestMs = 2_000, memoryMs = 60_000, cells = openCells(FAILURES_SHAPE) } = options;
  return {
    failed(address = "") {
      const now = monotonicNow();
      const before = cells.change(address, (numbers, at) => {
        const count = now - (numbers[at] as number) < memoryMs ? (numbers[at + 1] as number) : 0;
        numbers[at] = now;
        numbers[at + 1] = count + 1;
        return count;
      });
      return backoffMs(before ?? 0, firstMs, longestMs);
    },
  };
}
