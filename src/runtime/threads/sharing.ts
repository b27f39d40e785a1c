import type { MessagePort } from "node:worker_threads";
import type { Changes } from "./changes.ts";

/** A quantity of a process, to which each of its workers adds a part. */
export interface SharedQuantity {
  /** Replaces this worker's part; the others see it at once. */
  publish(part: number): void;
  /** Sum of the other workers' parts. */
  readonly others: number;
  /** Largest of the other workers' parts; 0 without any. */
  readonly largestOther: number;
  /** Number of workers. */
  readonly workers: number;
}

/** A number that all workers of a process read and raise. */
export interface SharedCounter {
  readonly value: number;
  /** Raises the number, unless it is as large already. */
  raise(to: number): void;
  /** Adds 1 and returns the number before. */
  increment(): number;
}

/** Bounds and facts of a database that hold for all workers of a process together. */
export interface SharedDatabase {
  /** Number of workers. */
  readonly workers: number;
  /** Whether this worker does the background work that a process does once. */
  readonly isFirst: boolean;
  /**
   * Whether this worker takes up what earlier processes have left behind: the first one does, and one that replaces a
   * worker, which may have left something, too.
   */
  readonly catchesUp: boolean;
  /** Running calls. */
  readonly calls: SharedQuantity;
  /** How long the oldest running use of a table takes already, in milliseconds. */
  readonly tableUseMs: SharedQuantity;
  /** Newest version of the catalog that a worker has committed or read. */
  readonly catalogVersion: SharedCounter;
  /** Changes of tables by their paths. */
  readonly tableChanges: Changes;
  /** Number of calls that wrote to an upstream. */
  readonly upstreamWrites: SharedCounter;
  /**
   * Calls back with each port between the first worker, which commits to the catalog, and another one: in the first
   * worker with those to the others, in the others with the one to the first, again whenever it has been replaced.
   *
   * @returns a function that ends the calls
   */
  commitPorts(listener: (port: MessagePort) => void): () => void;
}

/** The quantity of a process without workers. */
export const UNSHARED: SharedQuantity = { publish() {}, others: 0, largestOther: 0, workers: 1 };

/** A part of a quantity, for one of several holders in a worker. */
export interface QuantityPart extends SharedQuantity {
  /** Takes the part out. */
  end(): void;
}

/**
 * Joins the parts of several holders in a worker: each sees those of the others, and other workers see the largest one.
 *
 * @param shared quantity of the workers
 */
export function joinQuantity(shared: SharedQuantity): () => QuantityPart {
  const parts = new Map<symbol, number>();
  const publish = () => shared.publish(Math.max(0, ...parts.values()));
  return () => {
    const own = Symbol();
    const others = () => [...parts].flatMap(([key, part]) => (key === own ? [] : [part]));
    return {
      publish(part) {
        parts.set(own, part);
        publish();
      },
      get others() {
        return others().reduce((sum, part) => sum + part, shared.others);
      },
      get largestOther() {
        return Math.max(shared.largestOther, ...others());
      },
      workers: shared.workers,
      end() {
        parts.delete(own);
        publish();
      },
    };
  };
}
