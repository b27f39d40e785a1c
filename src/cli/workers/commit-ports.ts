import { MessageChannel, type MessagePort } from "node:worker_threads";
import type { WorkerThread } from "./worker-thread.ts";

/** Connects a worker that has started: the first one with all others, another one with the first. */
export function linkCommits(
  crew: readonly (WorkerThread | undefined)[],
  started: number,
  databases: number,
): void {
  const [first, ...others] = crew;
  for (const other of started === 0 ? others : [crew[started]]) {
    if (first === undefined || other === undefined) continue;
    for (let database = 0; database < databases; database++) {
      const { port1, port2 } = new MessageChannel();
      first.send({ type: "commit port", database, port: port1 }, [port1]);
      other.send({ type: "commit port", database, port: port2 }, [port2]);
    }
  }
}

/** Ports of a worker by database, which wait until somebody takes them. */
export interface CommitPorts {
  add(database: number, port: MessagePort): void;
  /** Calls back with the ports of a database that have arrived, and with all later ones. */
  take(database: number, listener: (port: MessagePort) => void): void;
}

/** Creates the ports of a worker. */
export function createCommitPorts(): CommitPorts {
  const waiting = new Map<number, MessagePort[]>();
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
