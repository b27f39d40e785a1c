// The program of a worker thread: a whole gateway, which shares its port and its limits with the other workers.
import { enableCompileCache } from "node:module";
import { parentPort, workerData } from "node:worker_threads";
import { UsageError } from "../../config/option-spec.ts";
import { secretsOf } from "../../config/secrets.ts";
import { type Gateway, startGateway } from "../../gateway/compose.ts";
import { divideLimits } from "../../gateway/workers.ts";
import { createLog } from "../../log/log.ts";
import { trimHeapWhenIdle } from "../trim-heap.ts";
import { watchForUnhandled } from "../unhandled.ts";
import { joinWorkers } from "./join-workers.ts";
import type { StartFailure, ToSupervisor, ToWorker, WorkerStart } from "./messages.ts";
import { openSharedMemory } from "./shared-memory.ts";

/** Interval at which a worker shows that its event loop turns, in milliseconds. */
const BEAT_MS = 100;

enableCompileCache();

const { configuration, worker, shape, memory, cells, commitPorts } = workerData as WorkerStart;
const port = parentPort;
if (port === null) throw new Error("a worker is started by the supervisor");
const { options, databases } = configuration;
const log = createLog(options.logLevel, secretsOf(configuration, process.env)).child({ worker: worker + 1 });
watchForUnhandled(log, "worker");

const shared = openSharedMemory(shape, memory);
setInterval(() => shared.beat(worker), BEAT_MS);

const post = (message: ToSupervisor) => port.postMessage(message);
const divide = (whole: typeof options) => divideLimits(whole, shape.workers);
const byName = new Map([...(databases?.byName ?? [])].map(([name, each]) => [name, divide(each)]));
const workers = joinWorkers({ port, shared, cells, worker, commitPorts, log });

try {
  const gateway = await startGateway(divide(options), log, databases && { ...databases, byName }, workers);
  port.on("message", (message: ToWorker) => {
    if (message.type === "close") void close(gateway);
  });
  trimHeapWhenIdle(log);
  post({ type: "listening", address: gateway.address, readOnly: gateway.readOnly });
} catch (error) {
  post({ type: "start failed", failure: toFailure(error) });
}

async function close(gateway: Gateway): Promise<void> {
  try {
    post({ type: "closed", finished: await gateway.close() });
  } catch (error) {
    post({ type: "close failed", message: String(error) });
  }
}

function toFailure(error: unknown): StartFailure {
  return {
    message: error instanceof Error ? error.message : String(error),
    code: (error as NodeJS.ErrnoException).code,
    isUsage: error instanceof UsageError,
  };
}
