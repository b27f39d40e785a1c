import { setTimeout as sleep } from "node:timers/promises";
import { LanceError } from "../../../../namespace/errors.ts";
import { type Job, type JobFacts, type JobRequest, requireSuccess } from "../../jobs/job.ts";
import type { JobContext } from "../context.ts";

/** Interval between looks at the job of another process, in milliseconds. */
const LOOK_MS = 500;

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
  /** Called at each look. Default: nothing is. */
  readonly onLook?: ((job: Job) => Promise<void>) | undefined;
}

/**
 * Has a gateway of the catalog with a cluster do a job.
 *
 * @throws LanceError ServiceUnavailable if none begins; the error of the job; Cancelled
 */
export async function doElsewhere(
  { jobs }: Pick<JobContext, "jobs">,
  request: JobRequest,
  { work, needs, waitMs, signal, onLook }: ElsewhereOptions,
): Promise<JobFacts> {
  const { id } = await jobs.leave(request);
  const until = performance.now() + waitMs;
  for (let isCancelled = false; ; ) {
    const job = await jobs.get(id);
    if (job === undefined) throw new LanceError("ServiceUnavailable", `the record of ${work} is gone`);
    if (job.finishedAt !== undefined) return requireSuccess(job);
    if (job.state === "queued" && performance.now() >= until) {
      await jobs.cancel(id);
      const text = `no gateway of the catalog has begun ${work}; one with ${needs} has to run`;
      throw new LanceError("ServiceUnavailable", text);
    }
    if (signal?.aborted && !isCancelled) {
      isCancelled = true;
      await jobs.cancel(id);
      // No gateway has it, and none may come.
      if (job.state === "queued") throw new LanceError("Cancelled", "the job was cancelled");
    }
    await onLook?.(job);
    await sleep(LOOK_MS);
  }
}
