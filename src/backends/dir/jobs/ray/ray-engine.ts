import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import { isLanceError, LanceError } from "../../../../namespace/errors.ts";
import type { ClusterOutcome, ClusterRuns } from "../../../../namespace/figures.ts";
import { backoffMs, startStopwatch } from "../../../../runtime/clocks.ts";
import { CLUSTER_ENGINE } from "../job.ts";
import type { EngineStatus, JobEngine } from "../job-engine.ts";
import { type DriverRecords, MAX_RUNS } from "./driver-records.ts";
import type { RayClient } from "./ray-client.ts";

/** Options of {@link createRayEngine}. */
export interface RayEngineOptions {
  readonly client: RayClient;
  readonly records: DriverRecords;
  /** Address of this gateway, or of any gateway of the catalog, as the cluster reaches it. */
  readonly gatewayUrl: string;
  /** Ray's environment of the driver: it has to have the package `lance_gateway_ray`. Default: the cluster has it installed. */
  readonly runtimeEnv?: Readonly<Record<string, unknown>> | undefined;
  /** Counts the runs. Default: they are not counted. */
  readonly metrics?: ClusterRuns | undefined;
  readonly log: Logger;
  /** Pauses between looks at a run, in milliseconds: the first, and the longest. Default: a quarter of a second and 2 s. */
  readonly pollMs?: readonly [first: number, longest: number] | undefined;
  /** How long no head may answer before a run is given up, in milliseconds. Default: 120,000. */
  readonly lostMs?: number | undefined;
}

/** A run that this process follows. */
interface Run {
  run: number;
  /** Whether Ray has taken it. */
  isTaken: boolean;
  looks: number;
  hasKey: boolean;
  /** Runs while no head answers. */
  unanswered: (() => number) | undefined;
  /** Counts the end. */
  readonly count: ((outcome: ClusterOutcome) => void) | undefined;
}

/**
 * The line by which a driver shows the digest of its key, at the beginning of its log. Only who can write to the log of that run can
 * be its driver, and everybody who reads it learns nothing.
 */
const KEY_LINE = /^lance-gateway-driver-key sha256:([0-9a-f]{64})$/m;

/** Returns the id under which Ray has a run, for any gateway the same. */
export function submissionId(jobId: string, run: number): string {
  return `lance-gateway-${jobId}-${run}`;
}

/** Creates the engine that has drivers on a Ray cluster do the work. */
export function createRayEngine(options: RayEngineOptions): JobEngine {
  const { client, records, gatewayUrl, runtimeEnv = {}, metrics, log } = options;
  const { pollMs: [firstMs, longestMs] = [250, 2_000], lostMs = 120_000 } = options;
  const runs = new Map<string, Run>();

  /** Returns the first run that counts; undefined if there have been too many. */
  async function currentRun(jobId: string): Promise<number | undefined> {
    for (let run = 1; run <= MAX_RUNS; run++) if (!(await records.hasEnded(jobId, run))) return run;
    return undefined;
  }

  async function start(jobId: string, run: Run): Promise<void> {
    const command = `python -m lance_gateway_ray --gateway '${gatewayUrl}' --job ${jobId} --run ${run.run}`;
    const id = submissionId(jobId, run.run);
    const metadata = { lance_gateway_job: jobId };
    await client.submit({ id, entrypoint: command, runtimeEnv, metadata });
    run.isTaken = true;
    metrics?.submitted();
    log.info({ job: jobId, submission: id }, "a job runs on Ray");
  }

  /** Starts a run that Ray has not taken yet. */
  async function startLater(jobId: string, run: Run, signal: AbortSignal): Promise<EngineStatus> {
    await start(jobId, run);
    run.unanswered = undefined;
    // The cancellation may have come before Ray knew the run.
    if (signal.aborted) await stop(jobId, run.run, signal.reason);
    return { state: "running" };
  }

  /** Starts a run; while no head answers, the looks at it start it. */
  async function startUnlessLost(jobId: string, run: Run): Promise<void> {
    try {
      await start(jobId, run);
    } catch (error) {
      if (!isLanceError(error, "ServiceUnavailable")) throw error;
      run.unanswered = startStopwatch();
      log.warn({ err: error, job: jobId }, "a job waits until Ray takes it");
    }
  }

  function end(jobId: string, outcome: ClusterOutcome): void {
    runs.get(jobId)?.count?.(outcome);
    runs.delete(jobId);
  }

  /** Begins another run after the driver of one has died, or gives up. */
  async function afterDeath(
    jobId: string,
    run: Run,
    reason: string,
    signal: AbortSignal,
  ): Promise<EngineStatus> {
    signal.throwIfAborted();
    await records.end(jobId, run.run);
    log.warn({ job: jobId, submission: submissionId(jobId, run.run), reason }, "a driver on Ray has died");
    if (run.run === MAX_RUNS) return failed(jobId, `the driver on Ray has died ${MAX_RUNS} times: ${reason}`);
    Object.assign(run, { run: run.run + 1, isTaken: false, looks: 0, hasKey: false, unanswered: undefined });
    return startLater(jobId, run, signal);
  }

  /** Stops a run, unless its work goes on without this process. */
  async function stop(jobId: string, run: number, reason: unknown): Promise<void> {
    if (!isLanceError(reason, "Cancelled")) return;
    try {
      await records.end(jobId, run);
      await client.stop(submissionId(jobId, run));
    } catch (error) {
      log.warn({ err: error, job: jobId }, "a job on Ray cannot be stopped; its driver is refused");
    }
  }

  function failed(jobId: string, message: string): EngineStatus {
    end(jobId, "failed");
    return { state: "failed", error: new LanceError("ServiceUnavailable", message) };
  }

  /** Returns the status that the driver has reported; undefined before its report. */
  async function reported(jobId: string, { run }: Run): Promise<EngineStatus | undefined> {
    const report = await records.reportOf(jobId, run);
    if (report === undefined) return undefined;
    const { result, failure } = report;
    end(jobId, result === undefined ? "failed" : "succeeded");
    if (result !== undefined) return { state: "succeeded", result };
    const name = failure?.retryable === true ? "ServiceUnavailable" : "InvalidInput";
    return { state: "failed", error: new LanceError(name, `on Ray: ${failure?.message ?? "no result"}`) };
  }

  async function look(jobId: string, run: Run, signal: AbortSignal): Promise<EngineStatus> {
    const id = submissionId(jobId, run.run);
    const done = await reported(jobId, run);
    if (done !== undefined) return done;
    if (!run.isTaken) return startLater(jobId, run, signal);
    if (!run.hasKey) {
      const digest = KEY_LINE.exec(await client.logs(id))?.[1];
      if (digest !== undefined) await records.noteKey(jobId, run.run, digest);
      run.hasKey = digest !== undefined;
    }
    const found = await client.find(id);
    run.unanswered = undefined;
    if (found === undefined) return afterDeath(jobId, run, "Ray does not know the job any more", signal);
    if (found.state === "PENDING" || found.state === "RUNNING")
      return { state: "running", progress: await records.progressOf(jobId) };
    // The report may have come after the look at it.
    const end = await reported(jobId, run);
    return end ?? (await afterDeath(jobId, run, `${found.state}: ${found.message}`, signal));
  }

  return {
    name: CLUSTER_ENGINE,
    async submit({ jobId }) {
      const run = await currentRun(jobId);
      if (run === undefined)
        throw new LanceError("ServiceUnavailable", `the driver on Ray has died ${MAX_RUNS} times`);
      // An earlier process may have started the run, and its driver may have ended meanwhile.
      const hasKey = await records.hasKey(jobId, run);
      const isTaken = (await records.reportOf(jobId, run)) !== undefined;
      const first: Run = { run, isTaken, looks: 0, hasKey, unanswered: undefined, count: undefined };
      if (!isTaken) await startUnlessLost(jobId, first);
      runs.set(jobId, { ...first, count: metrics?.follow() });
    },
    async status(jobId, signal) {
      signal.throwIfAborted();
      const run = runs.get(jobId) as Run;
      try {
        await sleep(backoffMs(Math.floor(run.looks++ / 4), firstMs, longestMs), undefined, { signal });
        return await look(jobId, run, signal);
      } catch (error) {
        signal.throwIfAborted();
        if (!isLanceError(error, "ServiceUnavailable")) {
          end(jobId, "failed");
          return { state: "failed", error };
        }
        // The driver may go on without the head that answers here, and reports to the gateway itself.
        run.unanswered ??= startStopwatch();
        if (run.unanswered() < lostMs) return { state: "running", progress: undefined };
        await records.end(jobId, run.run);
        return failed(jobId, error.message);
      }
    },
    async cancel(jobId, reason) {
      const { run } = runs.get(jobId) ?? {};
      end(jobId, isLanceError(reason, "Cancelled") ? "cancelled" : "left");
      if (run !== undefined) await stop(jobId, run, reason);
    },
    async logs(jobId) {
      const run = runs.get(jobId)?.run ?? (await currentRun(jobId)) ?? MAX_RUNS;
      return client.logs(submissionId(jobId, run));
    },
  };
}
