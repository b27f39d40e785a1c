// The program of a worker thread: a whole gateway, which shares its port and its limits with the other workers.
import { setTimeout as sleep } from "node:timers/promises";
import { parentPort, workerData } from "node:worker_threads";
import { UsageError } from "../../config/option-spec.ts";
import { addSecrets, secretsOf } from "../../config/secrets.ts";
import type { Gateway, Haste } from "../../gateway/compose.ts";
import type { PreparedChange } from "../../gateway/reload/plan-changes.ts";
import { type RunningGateway, startGateway } from "../../gateway/start-gateway.ts";
import { divideConfiguration } from "../../gateway/workers.ts";
import { createLog, toStandardError } from "../../observability/log/log.ts";
import { shareFiles } from "../../runtime/files/files-in-time.ts";
import { allowInterruption } from "../../runtime/internals/interrupt-thread.ts";
import { keepTicksFast } from "../../runtime/internals/ticks.ts";
import {
  hasThreadLeft,
  noteThreadLeft,
  runsUnbrokenWork,
  shareUnbroken,
  unbrokenWorkEnded,
} from "../../runtime/threads/unbroken-work.ts";
import { cacheCode } from "../cache-code.ts";
import { watchForUnhandled } from "../exit.ts";
import { trimHeapWhenIdle } from "../trim-heap.ts";
import { joinWorkers } from "./join-workers.ts";
import type {
  PrepareRequest,
  ProfileRequest,
  StartFailure,
  ToSupervisor,
  ToWorker,
  WorkerStart,
} from "./messages.ts";
import { openSharedMemory } from "./shared-memory.ts";

/** Interval at which a worker shows that its event loop turns, in milliseconds. */
const BEAT_MS = 100;

/** How long a closed gateway waits for calls of the engine that a drain has given up, in milliseconds: its end would abort the process. */
const LONGEST_WAIT_MS = 3_000;
/** How long a worker that leaves takes to close its gateway, which an exception may have left in any state, in milliseconds. */
const LONGEST_CLOSE_MS = 10_000;

cacheCode(true);

const {
  configuration,
  worker,
  workers: count,
  isReplacement,
  memory,
  databases,
  cells,
  commitPorts,
  cache,
} = workerData as WorkerStart;
const port = parentPort;
if (port === null) throw new Error("a worker is started by the supervisor");
const secrets = secretsOf(configuration, process.env);
const { logLevel, logFormat } = configuration.options;
const log = createLog(logLevel, secrets, toStandardError(logFormat)).child({ worker: worker + 1 });
watchForUnhandled(log, "worker", () => void leave());
keepTicksFast();
allowInterruption();

const shared = openSharedMemory({ workers: count, databases: 0 }, memory);
const beats = setInterval(() => shared.beat(worker), BEAT_MS);
shareFiles(shared.quantity(worker, "files"));
shareUnbroken(shared.quantity(worker, "unbroken"));

port.on("message", (message: ToWorker) => {
  if (message.type === "leave") void leave();
});
const post = (message: ToSupervisor) => port.postMessage(message);
const workers = joinWorkers({
  port,
  shared,
  databases,
  cells,
  worker,
  isReplacement,
  commitPorts,
  cache,
  log,
});
let pending: PreparedChange | undefined;
let serving: Gateway | undefined;

try {
  const own = divideConfiguration(configuration, count);
  const gateway = await startGateway(own.options, log, own.databases, workers);
  serving = gateway;
  port.on("message", (message: ToWorker) => {
    if (message.type === "close") void close(gateway, message.haste);
    else if (message.type === "log level") gateway.setLogLevel(message.level);
    else if (message.type === "profile") void profile(gateway, message);
    else if (message.type === "prepare") void prepare(gateway, message);
    else if (message.type === "refresh") void refresh(gateway, message.id);
    else if (message.type === "commit") takePending()?.commit();
    else if (message.type === "abort") void takePending()?.abort();
  });
  trimHeapWhenIdle(log);
  if (!hasThreadLeft()) post({ type: "listening", address: gateway.address, readOnly: gateway.readOnly });
  // It was asked to leave while it started.
  else await gateway.close("cut off");
} catch (error) {
  post({ type: "start failed", failure: toFailure(error) });
}

/** Returns the change that is prepared; it ends once. A worker is also told to abort a change that it was never asked to prepare. */
function takePending(): PreparedChange | undefined {
  const change = pending;
  pending = undefined;
  return change;
}

async function prepare(gateway: RunningGateway, message: PrepareRequest): Promise<void> {
  addSecrets(secrets, message.configuration, process.env);
  workers.share(message.databases, message.cells);
  try {
    pending = await gateway.prepare(divideConfiguration(message.configuration, count));
    post({ type: "prepared", id: message.id, failure: undefined });
  } catch (error) {
    post({ type: "prepared", id: message.id, failure: toFailure(error) });
  }
}

async function refresh(gateway: RunningGateway, id: number): Promise<void> {
  await gateway.refresh();
  post({ type: "refreshed", id });
}

async function profile({ profiles }: Gateway, { id, milliseconds }: ProfileRequest): Promise<void> {
  const made = await profiles.cpuProfile(milliseconds).catch((error: unknown) => {
    log.error({ err: error }, "a CPU profile cannot be made");
    return undefined;
  });
  post({ type: "profiled", id, profile: made });
}

async function close(gateway: Gateway, haste: Haste | undefined): Promise<void> {
  try {
    const finished = await gateway.close(haste);
    await unbrokenWorkEnded(LONGEST_WAIT_MS);
    post({ type: "closed", finished, isQuiet: !runsUnbrokenWork() });
  } catch (error) {
    post({ type: "close failed", message: String(error) });
  }
}

/**
 * Leaves the port and everything else to the worker that replaces this one, which begins at once. The thread ends when no call of the
 * engine runs in it: its end would abort the process before (docs/adr/0058).
 */
async function leave(): Promise<void> {
  if (hasThreadLeft()) return;
  noteThreadLeft();
  const quiet = unbrokenWorkEnded();
  // The counter is the other worker's from now on.
  clearInterval(beats);
  post({ type: "leaves" });
  const closed = serving?.close("cut off").catch((error: unknown) => {
    log.error({ err: error }, "a worker that leaves cannot close its gateway");
  });
  await Promise.race([closed, sleep(LONGEST_CLOSE_MS)]);
  workers.leave();
  await quiet;
  process.exit(1);
}

function toFailure(error: unknown): StartFailure {
  return {
    message: error instanceof Error ? error.message : String(error),
    code: (error as NodeJS.ErrnoException).code,
    isUsage: error instanceof UsageError,
  };
}
