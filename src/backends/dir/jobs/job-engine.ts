import type { JsonObject } from "@bufbuild/protobuf";
import { LanceError } from "../../../namespace/errors.ts";
import { CLUSTER_ENGINE, JOB_ENGINES, type JobEngineName, type JobFacts } from "./job.ts";

/** How far work is. */
export interface EngineProgress {
  /** The present step, in words. */
  readonly step: string;
  readonly done: number;
  /** Number of parts of the step; 0 if it is not known. */
  readonly total: number;
}

/** The state of work, as its engine knows it. */
export type EngineStatus =
  | { readonly state: "running"; readonly progress?: EngineProgress | undefined }
  | { readonly state: "succeeded"; readonly result: JsonObject }
  | { readonly state: "failed"; readonly error: unknown };

/** The heavy work of a job. */
export interface EngineWork {
  readonly jobId: string;
  /** Does the work in this process, for an engine that works here. */
  readonly inProcess: (signal: AbortSignal) => Promise<JobFacts>;
}

/** Does the heavy work of jobs, here or elsewhere. */
export interface JobEngine {
  readonly name: JobEngineName;
  /**
   * Starts the work of a job. An engine outside of this process finds the work that an earlier process has started.
   *
   * @throws LanceError ServiceUnavailable if the engine cannot be reached
   */
  submit(work: EngineWork): Promise<void>;
  /** Waits until there is something new about submitted work, or a moment has passed. It never rejects but by the signal. */
  status(jobId: string, signal: AbortSignal): Promise<EngineStatus>;
  /**
   * Stops work that was submitted. Work outside of this process goes on if the process ends or has lost the job.
   *
   * @param reason why the job ends
   */
  cancel(jobId: string, reason: unknown): Promise<void>;
  /** Returns what the work has written to its log; empty where the gateway's own log has it. */
  logs(jobId: string): Promise<string>;
}

/**
 * Has an engine do work, and waits for its result.
 *
 * @throws the failure of the work; the signal's reason
 */
export async function runOn(engine: JobEngine, work: EngineWork, signal: AbortSignal): Promise<JsonObject> {
  const stop = () => void engine.cancel(work.jobId, signal.reason);
  signal.throwIfAborted();
  signal.addEventListener("abort", stop, { once: true });
  try {
    await engine.submit(work);
    // The work may have been unknown to the engine when the signal came.
    if (signal.aborted) await engine.cancel(work.jobId, signal.reason);
    for (;;) {
      const status = await engine.status(work.jobId, signal);
      if (status.state === "succeeded") return status.result;
      if (status.state === "failed") throw status.error;
    }
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

/** Work that runs in this process. */
interface Running {
  readonly controller: AbortController;
  readonly ended: Promise<EngineStatus>;
}

/** Creates the engine that does all work in this process. */
export function createEmbeddedEngine(): JobEngine {
  const running = new Map<string, Running>();
  return {
    name: "embedded",
    async submit({ jobId, inProcess }) {
      const controller = new AbortController();
      const ended = inProcess(controller.signal).then(
        (result): EngineStatus => ({ state: "succeeded", result: result as JsonObject }),
        (error: unknown): EngineStatus => ({ state: "failed", error }),
      );
      running.set(jobId, { controller, ended });
    },
    // The native library cannot leave its work, so that the end is also waited for after a cancellation.
    async status(jobId) {
      const status = await (running.get(jobId) as Running).ended;
      running.delete(jobId);
      return status;
    },
    async cancel(jobId, reason) {
      running.get(jobId)?.controller.abort(reason);
    },
    logs: async () => "",
  };
}

/** The property of a table that overrides where its heavy work is done. */
const ENGINE_PROPERTY = "lance-gateway.job-engine";

/** Heavy work on a table. */
export interface HeavyWork {
  /** Kind of the job. */
  readonly kind: string;
  readonly rows: number;
  /** The cluster that its request names. Default: none. */
  readonly asked?: string | undefined;
  /** The number of workers that its request names. Default: none. */
  readonly workers?: number | undefined;
  /** Properties of the table. */
  readonly properties: Readonly<Record<string, string>>;
}

/** Which work a cluster does. */
export interface ClusterWork {
  /** Number of rows from which on the work on a table goes to the cluster. */
  readonly minRows: number;
  /** Kinds of jobs that go to the cluster. */
  readonly kinds: readonly string[];
  /** Number of workers over which a job is spread. */
  readonly workers: number;
}

/**
 * Returns the engine that does heavy work: the cluster for large tables, unless the request or the table has another wish. Names of other
 * clusters in a request mean nothing here.
 *
 * @throws LanceError Unsupported for a request that names a cluster which the gateway does not have, or not for such work
 */
export function chooseEngine(
  cluster: Pick<ClusterWork, "minRows" | "kinds"> | undefined,
  { kind, rows, properties, asked }: HeavyWork,
): JobEngineName {
  const own = JOB_ENGINES.find((name) => name === asked) ?? properties[ENGINE_PROPERTY];
  if (asked === CLUSTER_ENGINE && cluster?.kinds.includes(kind) !== true)
    throw new LanceError("Unsupported", `this gateway has no Ray cluster for jobs of the kind ${kind}`);
  if (cluster === undefined || own === "embedded" || !cluster.kinds.includes(kind)) return "embedded";
  return own === CLUSTER_ENGINE || rows >= cluster.minRows ? CLUSTER_ENGINE : "embedded";
}

/** @throws LanceError InvalidInput for an engine that there is not */
export function checkEngineProperty(properties: Readonly<Record<string, string>>): void {
  const own = properties[ENGINE_PROPERTY];
  if (own === undefined || JOB_ENGINES.some((name) => name === own)) return;
  const text = `the property ${ENGINE_PROPERTY} must be ${JOB_ENGINES.join(" or ")}`;
  throw new LanceError("InvalidInput", text);
}

/** Returns the number of workers that a request names, at most that of the cluster, as a parameter of a job. */
export function workersOf(
  cluster: Pick<ClusterWork, "workers"> | undefined,
  { workers }: Pick<HeavyWork, "workers">,
): { workers?: number } {
  if (cluster === undefined || workers === undefined || workers < 1) return {};
  return { workers: Math.min(workers, cluster.workers) };
}
