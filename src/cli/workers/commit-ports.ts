import { MessageChannel, type MessagePort } from "node:worker_threads";
import type { CommitPort } from "./messages.ts";
import type { WorkerThread } from "./worker-thread.ts";

/**
 * Connects the first worker with another one.
 *
 * @param slots places of the databases
 * @returns the other one's ports
 */
export function openCommitPorts(first: WorkerThread, slots: readonly number[]): readonly CommitPort[] {
  return slots.map((slot) => {
    const { port1, port2 } = new MessageChannel();
    first.send({ type: "commit port", slot, port: port1 }, [port1]);
    return { slot, port: port2 };
  });
}

/** Connects the first worker with another one that has started before. */
export function linkCommits(first: WorkerThread, other: WorkerThread, slots: readonly number[]): void {
  for (const { slot, port } of openCommitPorts(first, slots)) {
    other.send({ type: "commit port", slot, port }, [port]);
  }
}

/** Ports of a worker by the place of their database, which wait until somebody takes them. */
export interface CommitPorts {
  add(port: CommitPort): void;
  /**
   * Calls back with the ports of a place that have arrived, and with all later ones, until the returned function is called. The
   * listener of a database that a reload has closed would keep its catalog in memory.
   */
  take(slot: number, listener: (port: MessagePort) => void): () => void;
  /** Closes all of them, so that nobody at their other ends waits for this worker. */
  close(): void;
}

/** Creates the ports of a worker, given the first ones. */
export function createCommitPorts(first: readonly CommitPort[]): CommitPorts {
  const waiting = new Map(first.map(({ slot, port }) => [slot, [port]]));
  const open = new Set<MessagePort>();
  function keep(port: MessagePort): void {
    open.add(port);
    port.once("close", () => open.delete(port));
  }
  for (const { port } of first) keep(port);
  const listeners = new Map<number, (port: MessagePort) => void>();
  return {
    add({ slot, port }) {
      keep(port);
      const listener = listeners.get(slot);
      if (listener !== undefined) listener(port);
      else waiting.set(slot, [...(waiting.get(slot) ?? []), port]);
    },
    take(slot, listener) {
      listeners.set(slot, listener);
      for (const port of waiting.get(slot) ?? []) listener(port);
      waiting.delete(slot);
      return () => void listeners.delete(slot);
    },
    close() {
      for (const port of open) port.close();
    },
  };
}
