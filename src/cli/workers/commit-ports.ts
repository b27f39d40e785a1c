import { MessageChannel, type MessagePort } from "node:worker_threads";
import type { WorkerThread } from "./worker-thread.ts";

/**
 * Connects the first worker with another one.
 *
 * @returns the other one's ports, by database
 */
export function openCommitPorts(first: WorkerThread, databases: number): readonly MessagePort[] {
  return Array.from({ length: databases }, (_, database) => {
    const { port1, port2 } = new MessageChannel();
    first.send({ type: "commit port", database, port: port1 }, [port1]);
    return port2;
  });
}

/** Connects the first worker with another one that has started before. */
export function linkCommits(first: WorkerThread, other: WorkerThread, databases: number): void {
  for (const [database, port] of openCommitPorts(first, databases).entries()) {
    other.send({ type: "commit port", database, port }, [port]);
  }
}

/** Ports of a worker by database, which wait until somebody takes them. */
export interface CommitPorts {
  add(database: number, port: MessagePort): void;
  /** Calls back with the ports of a database that have arrived, and with all later ones. */
  take(database: number, listener: (port: MessagePort) => void): void;
}

/**
 * Creates the ports of a worker.
 *
 * @param first the first ports, by database
 */
export function createCommitPorts(first: readonly MessagePort[]): CommitPorts {
  const waiting = new Map(first.map((port, database) => [database, [port]]));
  const listeners = new Map<number, (port: MessagePort) => void>();
  return {
    add(database, port) {
      const listener = listeners.get(database);
      if (listener !== undefined) listener(port);
      else waiting.set(database, [...(waiting.get(database) ?? []), port]);
    },
    take(database, listener) {
      listeners.set(database, listener);
      for (const port of waiting.get(database) ?? []) listener(port);
      waiting.delete(database);
    },
  };
}
