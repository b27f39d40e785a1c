import type { MessagePort } from "node:worker_threads";
import type { Logger } from "pino";
import type { Workers } from "../../gateway/workers.ts";
import type { ProcessSnapshot, Snapshot } from "../../metrics/aggregate.ts";
import { createCommitPorts } from "./commit-ports.ts";
import type { ToSupervisor, ToWorker } from "./messages.ts";
import { type CellsMemory, openAll } from "./shared-cells.ts";
import type { SharedMemory } from "./shared-memory.ts";

/** Options of {@link joinWorkers}. */
export interface JoinOptions {
  /** Leads to the supervisor. */
  readonly port: MessagePort;
  readonly shared: SharedMemory;
  /** Numbers of limits. */
  readonly cells: CellsMemory;
  /** Position of this worker. */
  readonly worker: number;
  /** Ports to the first worker for commits, by database. */
  readonly commitPorts: readonly MessagePort[];
  readonly log: Logger;
}

/** Connects a gateway with the supervisor, and so with the other workers. */
export function joinWorkers({ port, shared, cells, worker, commitPorts, log }: JoinOptions): Workers {
  const gathering = new Map<number, (metrics: ProcessSnapshot | undefined) => void>();
  const announcing = new Map<number, () => void>();
  const ports = createCommitPorts(commitPorts);
  let gathers = 0;
  let announcements = 0;
  let onReadiness = (_ready: boolean) => {};
  let readMetrics = async (): Promise<Snapshot> => [];
  const post = (message: ToSupervisor) => port.postMessage(message);

  async function answerMetrics(id: number): Promise<void> {
    const metrics = await readMetrics().catch((error: unknown) => {
      log.warn({ err: error }, "the metrics of a worker cannot be read");
      return [];
    });
    post({ type: "metrics", id, metrics });
  }
  port.on("message", (message: ToWorker) => {
    if (message.type === "readiness") onReadiness(message.ready);
    else if (message.type === "commit port") ports.add(message.database, message.port);
    else if (message.type === "read metrics") void answerMetrics(message.id);
    else if (message.type === "announced") {
      announcing.get(message.id)?.();
      announcing.delete(message.id);
    } else if (message.type === "gathered") {
      gathering.get(message.id)?.(message.metrics);
      gathering.delete(message.id);
    }
  });
  return {
    count: shared.shape.workers,
    bufferedBytes: shared.quantity(worker, "bufferedBytes"),
    connections: shared.quantity(worker, "connections"),
    events: {
      async announce(events) {
        const id = announcements++;
        const { promise, resolve } = Promise.withResolvers<void>();
        announcing.set(id, resolve);
        post({ type: "announce", id, events });
        await promise;
      },
    },
    openCells: openAll(cells, { worker, workers: shared.shape.workers }),
    database: (position) => ({
      workers: shared.shape.workers,
      isFirst: worker === 0,
      calls: shared.databaseQuantity(worker, position, "calls"),
      tableUseMs: shared.databaseQuantity(worker, position, "tableUseMs"),
      catalogVersion: shared.counter(position, "catalogVersion"),
      upstreamWrites: shared.counter(position, "upstreamWrites"),
      commitPorts: (listener) => ports.take(position, listener),
    }),
    announce: (ready) => post({ type: "readiness", ready }),
    onReadiness(listener) {
      onReadiness = listener;
    },
    async gatherMetrics() {
      const id = gathers++;
      const { promise, resolve } = Promise.withResolvers<ProcessSnapshot | undefined>();
      gathering.set(id, resolve);
      post({ type: "gather", id });
      const metrics = await promise;
      if (metrics === undefined) throw new Error("the metrics of the workers cannot be read");
      return metrics;
    },
    provideMetrics(read) {
      readMetrics = read;
    },
  };
}
