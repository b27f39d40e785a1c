import type { MessagePort } from "node:worker_threads";
import type { Logger } from "pino";
import type { CacheAccess } from "../../backends/dir/cache/join-cache.ts";
import type { Workers } from "../../gateway/workers.ts";
import type { ProcessSnapshot, Snapshot } from "../../observability/metrics/snapshots.ts";
import { createCommitPorts } from "./commit-ports.ts";
import type { CommitPort, DatabaseSlot, DatabaseSlots, ToSupervisor, ToWorker } from "./messages.ts";
import { type CellsMemory, openAll, openSharedMemory, type SharedMemory } from "./shared-memory.ts";

/** Options of {@link joinWorkers}. */
export interface JoinOptions {
  /** Leads to the supervisor. */
  readonly port: MessagePort;
  readonly shared: SharedMemory;
  /** Numbers of limits. */
  readonly cells: CellsMemory;
  /** Position of this worker. */
  readonly worker: number;
  /** Whether it replaces a worker that has ended. */
  readonly isReplacement: boolean;
  readonly databases: DatabaseSlots;
  /** Ports to the first worker for commits. */
  readonly commitPorts: readonly CommitPort[];
  /** The cache of the process. Default: none. */
  readonly cache: CacheAccess | undefined;
  readonly log: Logger;
}

/** The other workers, whose shares change with the configuration. */
export interface JoinedWorkers extends Workers {
  /** Takes the shares of a changed configuration for what is opened from now on. */
  share(databases: DatabaseSlots, cells: CellsMemory): void;
  /** Leaves the other workers, none of which waits for this one any longer. */
  leave(): void;
}

/** Connects a gateway with the supervisor, and so with the other workers. */
export function joinWorkers(options: JoinOptions): JoinedWorkers {
  const { port, shared, worker, isReplacement, commitPorts, cache, log } = options;
  const { workers } = shared.shape;
  let { databases, cells } = options;
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
    else if (message.type === "commit port") ports.add(message);
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
    count: workers,
    bufferedBytes: shared.quantity(worker, "bufferedBytes"),
    answerBytes: shared.quantity(worker, "answerBytes"),
    connections: shared.quantity(worker, "connections"),
    cache,
    events: {
      async announce(events) {
        const id = announcements++;
        const { promise, resolve } = Promise.withResolvers<void>();
        announcing.set(id, resolve);
        post({ type: "announce", id, events });
        await promise;
      },
    },
    openCells: (name, shape) => openAll(cells, { worker, workers })(name, shape),
    database(name) {
      const { slot, memory } = databases[name] as DatabaseSlot;
      const own = openSharedMemory({ workers, databases: 1 }, memory);
      return {
        workers,
        isFirst: worker === 0,
        catchesUp: worker === 0 || isReplacement,
        calls: own.databaseQuantity(worker, 0, "calls"),
        tableUseMs: own.databaseQuantity(worker, 0, "tableUseMs"),
        catalogVersion: own.counter(0, "catalogVersion"),
        tableChanges: own.tableChanges(0),
        upstreamWrites: own.counter(0, "upstreamWrites"),
        commitPorts: (listener) => ports.take(slot, listener),
      };
    },
    share(ofDatabases, ofCells) {
      databases = ofDatabases;
      cells = ofCells;
    },
    leave: () => ports.close(),
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
