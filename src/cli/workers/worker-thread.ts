import type { Readable } from "node:stream";
import type { MessagePort } from "node:worker_threads";
import { UsageError } from "../../config/option-spec.ts";
import type { Gateway } from "../../gateway/compose.ts";
import type { ChangeEvent } from "../../namespace/change-event.ts";
import type { Snapshot } from "../../observability/metrics/snapshots.ts";
import { interruptThread, startInterruptible } from "../../runtime/internals/interrupt-thread.ts";
import { programFile } from "../../runtime/package-files.ts";
import { countUnbroken } from "../../runtime/threads/unbroken-work.ts";
import type { ChangeForWorker, StartFailure, ToSupervisor, ToWorker, WorkerStart } from "./messages.ts";

/** The thread of a worker, which may not listen yet. */
export interface StartedThread {
  /** Resolves when it listens. @throws the error for which it cannot start */
  readonly listening: Promise<WorkerThread>;
  /** Resolves when it serves no more, to the error that ended it. */
  readonly ended: Promise<Error | undefined>;
  /** Resolves when the thread has ended, which may wait for calls of the engine. */
  readonly gone: Promise<void>;
  /** @param ports the ports in the message */
  send(message: ToWorker, ports?: readonly MessagePort[]): void;
  /** Ends what it runs right now, so that its event loop goes on; returns whether it could within so many milliseconds. */
  interrupt(longestMs: number): Promise<boolean>;
  terminate(): Promise<void>;
}

/** A worker that listens, as the supervisor sees it. */
export interface WorkerThread
  extends Omit<StartedThread, "listening">,
    Pick<Gateway, "address" | "readOnly" | "close"> {
  /** Has it open what a changed configuration needs; returns the error for which it cannot. */
  prepare(change: ChangeForWorker): Promise<Error | undefined>;
  /** Has it read files that have changed; resolves when it has, or has ended. */
  refresh(): Promise<void>;
  /** Returns a snapshot of its heap; the thread stops meanwhile. */
  heapSnapshot(): Promise<Readable>;
  /** Returns a CPU profile; undefined if it cannot be made. */
  cpuProfile(milliseconds: number): Promise<string | undefined>;
  /** Whether its backend can answer calls. */
  readonly ready: boolean;
  /** Returns its metrics; undefined if it does not answer in time. */
  readMetrics(): Promise<Snapshot | undefined>;
}

/** Events of a worker. */
export interface WorkerEvents {
  /** Called when its readiness has changed. */
  onReadiness(): void;
  /** Called when it asks for the metrics of all workers. */
  onGather(id: number): void;
  /** Called when it hands events over. */
  onAnnounce(id: number, events: readonly ChangeEvent[]): void;
}

/** Maximum time for a worker to return its metrics, in milliseconds: its event loop may be blocked. */
const METRICS_PATIENCE_MS = 1_000;

/**
 * Maximum size of the young generation of a worker's heap, in MiB. With less, V8 collects while many calls are still in flight, and
 * calls cost more; V8's own maximum, 48, makes them no cheaper (docs/performance.md).
 */
const YOUNG_GENERATION_MIB = 24;

/** Starts a worker. */
export function startWorker(
  start: WorkerStart,
  events: (thread: WorkerThread) => WorkerEvents,
): StartedThread {
  const { worker, isInterruptible } = startInterruptible(programFile("cli/workers/worker-main"), {
    workerData: start,
    transferList: start.commitPorts.map(({ port }) => port),
    name: `worker ${start.worker + 1}`,
    resourceLimits: { maxYoungGenerationSizeMb: YOUNG_GENERATION_MIB },
  });
  const send: WorkerThread["send"] = (message, ports = []) => worker.postMessage(message, ports);
  const reading = new Map<number, (metrics: Snapshot | undefined) => void>();
  const preparing = new Map<number, (error: Error | undefined) => void>();
  const refreshing = new Map<number, () => void>();
  const profiling = new Map<number, (profile: string | undefined) => void>();
  const listening = Promise.withResolvers<Pick<Gateway, "address" | "readOnly">>();
  const closed = Promise.withResolvers<boolean>();
  const left = Promise.withResolvers<Error | undefined>();
  const gone = new Promise<void>((resolve) => worker.once("exit", () => resolve()));
  let fault: Error | undefined;
  let isReady = false;
  let reads = 0;
  let handlers: WorkerEvents | undefined;

  worker.on("message", (message: ToSupervisor) => {
    switch (message.type) {
      case "listening":
        return listening.resolve(message);
      case "start failed":
        return listening.reject(toError(message.failure));
      case "readiness":
        isReady = message.ready;
        return handlers?.onReadiness();
      case "metrics":
        return reading.get(message.id)?.(message.metrics);
      case "prepared":
        return preparing.get(message.id)?.(message.failure && toError(message.failure));
      case "refreshed":
        return refreshing.get(message.id)?.();
      case "profiled":
        return profiling.get(message.id)?.(message.profile);
      case "gather":
        return handlers?.onGather(message.id);
      case "announce":
        return handlers?.onAnnounce(message.id, message.events);
      case "leaves":
        countUnbroken(gone);
        return left.resolve(undefined);
      case "closed":
        if (!message.isQuiet) countUnbroken(gone);
        return closed.resolve(message.finished);
      case "close failed":
        return closed.reject(new Error(message.message));
    }
  });
  worker.on("error", (error: Error) => {
    fault = error;
  });
  void gone.then(() => left.resolve(fault));
  const ended = left.promise;
  void ended.then((error) => {
    listening.reject(error ?? new Error("a worker ended before it listened"));
    closed.resolve(false);
    for (const answer of [...reading.values(), ...profiling.values()]) answer(undefined);
  });
  const own = {
    ...{ ended, gone, send },
    interrupt: async (longestMs: number) =>
      isInterruptible && (await interruptThread(worker.threadId, longestMs)),
    async terminate() {
      await worker.terminate();
    },
  };
  const threadAt = ({ address, readOnly }: Pick<Gateway, "address" | "readOnly">): WorkerThread => ({
    ...{ ...own, address, readOnly },
    get ready() {
      return isReady;
    },
    async close(haste) {
      send({ type: "close", haste });
      return closed.promise;
    },
    async readMetrics() {
      const id = reads++;
      const { promise, resolve } = Promise.withResolvers<Snapshot | undefined>();
      const patience = setTimeout(resolve, METRICS_PATIENCE_MS, undefined);
      reading.set(id, resolve);
      send({ type: "read metrics", id });
      const metrics = await promise;
      clearTimeout(patience);
      reading.delete(id);
      return metrics;
    },
    async prepare(change) {
      const id = reads++;
      const { promise, resolve } = Promise.withResolvers<Error | undefined>();
      // Also of a worker that has ended while others prepared.
      void ended.then(() => resolve(new Error("a worker has ended meanwhile")));
      preparing.set(id, resolve);
      send({ type: "prepare", id, ...change });
      return promise.finally(() => preparing.delete(id));
    },
    async refresh() {
      const id = reads++;
      const { promise, resolve } = Promise.withResolvers<void>();
      void ended.then(() => resolve());
      refreshing.set(id, resolve);
      send({ type: "refresh", id });
      await promise.finally(() => refreshing.delete(id));
    },
    heapSnapshot: () => worker.getHeapSnapshot(),
    async cpuProfile(milliseconds) {
      const id = reads++;
      const { promise, resolve } = Promise.withResolvers<string | undefined>();
      profiling.set(id, resolve);
      send({ type: "profile", id, milliseconds });
      return promise.finally(() => profiling.delete(id));
    },
  });
  const whenListening = listening.promise.then((where) => {
    const thread = threadAt(where);
    handlers = events(thread);
    if (isReady) handlers.onReadiness();
    return thread;
  });
  return { ...own, listening: whenListening };
}

function toError({ message, code, isUsage }: StartFailure): Error {
  return isUsage ? new UsageError(message) : Object.assign(new Error(message), { code });
}
