import { setTimeout as sleep } from "node:timers/promises";
import type { JsonObject } from "@bufbuild/protobuf";
import { isLanceError, LanceError } from "../../namespace/errors.ts";

/** A job, as DescribeJob tells it. */
export interface DescribedJob {
  readonly jobState: string;
  readonly result?: JsonObject | undefined;
  readonly failure?: { readonly message: string; readonly retryable: boolean } | undefined;
}

/** A job that cannot be looked at for now may go on. */
const UNSEEN: DescribedJob = { jobState: "IN_PROGRESS" };

/** Time between the first two looks at a job, and the longest one, in milliseconds. */
const FIRST_MS = 20;
const MOST_MS = 1_000;

/**
 * Waits until the job that fills a view has ended, and returns the number of rows that it has written. The job goes on if the wait ends early.
 *
 * @throws LanceError InvalidTableState for a job that has failed, Cancelled for a cancelled one, and OutcomeUnknown if nothing tells how it ends.
 *   None of them invites a client to repeat the statement, which has begun the job.
 */
export async function jobEnd(
  jobId: string,
  describe: (jobId: string) => Promise<DescribedJob>,
  signal: AbortSignal,
): Promise<bigint> {
  for (let delay = FIRST_MS; ; delay = Math.min(delay * 2, MOST_MS)) {
    const job = (await look(jobId, describe, signal)) ?? UNSEEN;
    switch (job.jobState) {
      case "IN_PROGRESS":
        await sleep(delay, undefined, { signal }).catch((cause) => {
          throw signal.reason instanceof LanceError ? signal.reason : cancelled(cause);
        });
        break;
      case "DONE":
        return rowsOf(job.result);
      case "FAILED":
        throw new LanceError(
          "InvalidTableState",
          `the refresh by job ${jobId} has failed: ${failureOf(job)}`,
        );
      case "CANCELLED":
        throw new LanceError("Cancelled", `the refresh by job ${jobId} was cancelled`);
      default:
        throw unknown(jobId, `its state is ${job.jobState}`);
    }
  }
}

/** Returns the job; undefined if it cannot be looked at for now. @throws LanceError the reason of the signal; OutcomeUnknown; Unsupported */
async function look(
  jobId: string,
  describe: (jobId: string) => Promise<DescribedJob>,
  signal: AbortSignal,
): Promise<DescribedJob | undefined> {
  try {
    return await describe(jobId);
  } catch (thrown) {
    if (signal.aborted || isLanceError(thrown, "Unsupported")) throw thrown;
    if (isLanceError(thrown, "Throttling") || isLanceError(thrown, "ServiceUnavailable")) return undefined;
    throw unknown(jobId, thrown instanceof Error ? thrown.message : String(thrown), thrown);
  }
}

function rowsOf(result: JsonObject | undefined): bigint {
  const rows = Number(result?.["rows_written"] ?? 0);
  return Number.isSafeInteger(rows) ? BigInt(rows) : 0n;
}

function failureOf({ failure }: DescribedJob): string {
  const { message = "the job does not say why", retryable = false } = failure ?? {};
  return retryable ? `${message}; the view is there, and may be refreshed again` : message;
}

function unknown(jobId: string, reason: string, cause?: unknown): LanceError {
  const message = `job ${jobId} refreshes the view, and how it ends is not known: ${reason}`;
  return new LanceError("OutcomeUnknown", message, { cause });
}

function cancelled(cause: unknown): LanceError {
  return new LanceError("Cancelled", "the statement was cancelled; the refresh goes on", { cause });
}
