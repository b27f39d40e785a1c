import type { Operation } from "./answers.ts";
import type { Listener } from "./listener.ts";

/** An upstream that is broken in one way. */
export interface FaultyUpstream {
  readonly port: number;
  /** How many calls of the operation it got since the last {@link forget}. */
  calls(operation: Operation): number;
  /** Begins to count anew, when it is there again; what it does only once, it does once more. */
  forget(operation: Operation): Promise<void>;
  /** Refuses connections for a while, and cuts those that it has. */
  restart(awayMs: number): void;
  /** Refuses connections from now on. */
  stop(): void;
}

/** Counts calls. */
export interface Counter {
  /** Counts one more. @returns how many there were before */
  add(operation: Operation): number;
}

/** The part of an upstream that both protocols have; each adds to its counts. */
export function createUpstream(listener: Listener): FaultyUpstream & Counter {
  const counts: Partial<Record<Operation, number>> = {};
  return {
    add(operation: Operation): number {
      const before = counts[operation] ?? 0;
      counts[operation] = before + 1;
      return before;
    },
    calls: (operation: Operation) => counts[operation] ?? 0,
    async forget(operation) {
      counts[operation] = 0;
      await listener.back();
    },
    restart: listener.restart,
    stop: listener.stop,
    get port() {
      return listener.port;
    },
  };
}
