import { setTimeout as sleep } from "node:timers/promises";
import type { JsonObject } from "@bufbuild/protobuf";
import { isLanceError, LanceError } from "../../../../namespace/errors.ts";
import { startStopwatch } from "../../../../runtime/clocks.ts";
import type { DataContext } from "../../data/data-context.ts";
import type { FoundTable, WorkPlace } from "../../data/table-source.ts";
import type { DatasetRef } from "../../format/dataset.ts";
import { syncVersion } from "../../format/versions/make-durable.ts";
import { type Job, type JobFacts, type JobRequest, requireSuccess } from "../../jobs/job.ts";
import { runOn } from "../../jobs/job-engine.ts";
import type { EngineContext, JobContext } from "../context.ts";
import { duringWork } from "../tables/long-work.ts";
import { datasetOf } from "../tables/open-data.ts";

/** How a process waits for a job that it leaves to another one. */
export interface ElsewhereOptions {
  /** The work in words, such as `the compaction`. */
  readonly work: string;
  /** Options that a gateway needs for it, such as `--job-engine ray`. */
  readonly needs: string;
  /** Maximum time until a gateway begins, in milliseconds. */
  readonly waitMs: number;
  /** Cancels the job. Default: nothing does. */
  readonly signal?: AbortSignal | undefined;
  /** Called at each look; its errors count for nothing. Default: nothing is. */
  readonly onLook?: ((job: Job) => Promise<void>) | undefined;
  /** Returns the result of a job that has not succeeded and has done its work nevertheless. Default: there is none. */
  readonly findResult?: ((id: string) => Promise<JobFacts | undefined>) | undefined;
  /** Interval between looks at the job, in milliseconds. Default: 500. */
  readonly lookMs?: number | undefined;
  /** How long the storage may fail before the job is given up, in milliseconds. Default: 300,000. */
  readonly patienceMs?: number | undefined;
}

/**
 * Has a gateway of the catalog with a cluster do a job.
 *
 * @throws LanceError ServiceUnavailable if none begins; the error of the job; Cancelled; OutcomeUnknown if the job can be followed no
 *   longer and may go on
 */
export async function doElsewhere(
  { jobs }: Pick<JobContext, "jobs">,
  request: JobRequest,
  options: ElsewhereOptions,
): Promise<JobFacts> {
  const { work, needs, waitMs, signal, onLook, findResult, lookMs = 500, patienceMs = 300_000 } = options;
  const { id } = await jobs.leave(request);
  const waited = startStopwatch();
  const follow = async <T>(call: () => Promise<T>): Promise<T> => {
    for (const failing = startStopwatch(); ; await sleep(lookMs)) {
      try {
        return await call();
      } catch (error) {
        if (isPassing(error) && failing() < patienceMs) continue;
        await jobs.cancel(id).catch(() => {});
        throw lost(`the job ${id} cannot be followed: ${error instanceof Error ? error.message : error}`);
      }
    }
  };
  /** Why the job was cancelled. */
  let reason: LanceError | undefined;
  for (; ; await sleep(lookMs)) {
    const job = await follow(() => jobs.get(id));
    if (job === undefined) throw lost(`the record of ${work} is gone`);
    if (job.finishedAt !== undefined) return await resultOf(job);
    // A gateway that takes the job from here on sees first that it is cancelled.
    if (reason !== undefined && !hasBegun(job)) throw reason;
    if (reason === undefined && signal?.aborted)
      reason = new LanceError("Cancelled", "the job was cancelled");
    else if (reason === undefined && !hasBegun(job) && waited() >= waitMs) {
      const text = `no gateway of the catalog has begun ${work}; one with ${needs} has to run`;
      reason = new LanceError("ServiceUnavailable", text);
    } else {
      await onLook?.(job).catch(() => {});
      continue;
    }
    await follow(() => jobs.cancel(id));
  }

  async function resultOf(job: Job): Promise<JobFacts> {
    const found = job.state === "succeeded" ? undefined : await follow(async () => findResult?.(id));
    if (found !== undefined) return found;
    if (job.state === "cancelled" && reason !== undefined) throw reason;
    return requireSuccess(job);
  }
}

/** Whether a gateway has a job, or had it. */
function hasBegun({ state, lease }: Job): boolean {
  return state !== "queued" || lease !== undefined;
}

function isPassing(error: unknown): boolean {
  return isLanceError(error, "ServiceUnavailable") || isLanceError(error, "Throttling");
}

function lost(text: string): LanceError {
  return new LanceError("OutcomeUnknown", `${text}; \`lance-gateway jobs\` shows whether it goes on`);
}

/** Steps of this process before and after the work of a cluster on a table. They may run again at any point. */
export interface ClusterWork<T> {
  /** Checks and prepares the newest version of the table. @throws LanceError if a cluster must not work on it */
  prepare(dataset: DatasetRef): Promise<void>;
  /** Returns the result of the job, from what the driver has reported. */
  finish(report: JsonObject, place: { readonly table: FoundTable; readonly dataset: DatasetRef }): Promise<T>;
  /** Returns the result of work that the table has although the cluster has failed. Default: there is none. */
  recover?(dataset: DatasetRef): Promise<T | undefined>;
}

/**
 * Has the cluster do the work of a job on a table, after the other work of this process on a cluster and that table.
 *
 * @throws LanceError ServiceUnavailable without a cluster; the errors of the work
 */
export function workOnCluster<T>(
  context: DataContext & Pick<EngineContext, "cluster">,
  job: Job,
  signal: AbortSignal,
  { prepare, finish, recover }: ClusterWork<T>,
): Promise<T> {
  const { cluster } = context;
  if (cluster === undefined)
    throw new LanceError("ServiceUnavailable", "the job is for a Ray cluster, and this gateway has none");
  const { engine, alone } = cluster;
  const place: WorkPlace = { id: job.table, location: String(job.spec["location"]) };
  const inProcess = () => Promise.reject(new Error("the work is on a cluster"));
  const work = (table: FoundTable) =>
    context.gate.passSlowly(table.path, async () => {
      const dataset = datasetOf(context, table);
      await prepare(dataset);
      const result = await runOn(engine, { jobId: job.id, inProcess }, signal).then(
        (report) => finish(report, { table, dataset }),
        async (error: unknown) => {
          // The end of the job, or its next process, counts.
          if (signal.aborted) throw error;
          // A driver may die, or be given up, between its commit and its report.
          const done = await recover?.(dataset).catch(() => undefined);
          if (done === undefined) throw error;
          return done;
        },
      );
      await syncVersion(dataset);
      return result;
    });
  return alone(place.location, () => duringWork(context, place, work));
}
