import type { JsonObject } from "@bufbuild/protobuf";
import type { JobFacts } from "../job.ts";

/** Names of the engines that do the heavy work of jobs. */
export const JOB_ENGINES = ["embedded", "ray"] as const;

/** Name of an engine: this process, or a Ray cluster. */
export type JobEngineName = (typeof JOB_ENGINES)[number];

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
