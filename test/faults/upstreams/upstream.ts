import type { Operation } from "./answers.ts";
import type { Listener } from "./listener.ts";

/** An upstream with a fault. */
export interface FaultyUpstream {
  readonly port: number;
  /** Returns the number of calls of the operation since the last {@link forget}. */
  calls(operation: Operation): number;
  /** Waits until the upstream listens and restarts its counts; a fault that happens only once may happen again. */
  forget(operation: Operation): Promise<void>;
  /** Cuts all connections and refuses new ones for a while. */
  restart(awayMs: number): void;
  /** Refuses connections from now on. */
  stop(): void;
}

/** Counts calls. */
export interface Counter {
  /** Counts a call. @returns the number of earlier calls */
  add(operation: Operation): number;
}

/** The part of an upstream that both protocols share; each protocol counts its calls. */
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
