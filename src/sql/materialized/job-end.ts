import { setTimeout as sleep } from "node:timers/promises";
import type { JsonObject } from "@bufbuild/protobuf";
import { LanceError } from "../../namespace/errors.ts";

/** A job, as DescribeJob tells it. */
export interface DescribedJob {
  readonly jobState: string;
  readonly result?: JsonObject | undefined;
  readonly failure?: { readonly message: string; readonly retryable: boolean } | undefined;
}

/** Time between the first two looks at a job, and the longest one, in milliseconds. */
const FIRST_MS = 20;
const MOST_MS = 1_000;

/**
 * Waits until the job that fills a view has ended, and returns the number of rows that it has written. The job goes on if the wait ends early.
 *
 * @throws LanceError InvalidTableState for a job that has failed, ServiceUnavailable if another one may succeed, Cancelled for a cancelled one
 */
export async function jobEnd(
  jobId: string,
  describe: (jobId: string) => Promise<DescribedJob>,
  signal: AbortSignal,
): Promise<bigint> {
  for (let delay = FIRST_MS; ; delay = Math.min(delay * 2, MOST_MS)) {
    const { jobState, result, failure } = await describe(jobId);
    switch (jobState) {
      case "IN_PROGRESS":
        await sleep(delay, undefined, { signal }).catch((cause) => {
          throw signal.reason instanceof LanceError ? signal.reason : cancelled(cause);
        });
        break;
      case "DONE":
        return BigInt(Number(result?.["rows_written"] ?? 0));
      default: {
        const kind =
          failure === undefined
            ? "Cancelled"
            : failure.retryable
              ? "ServiceUnavailable"
              : "InvalidTableState";
        const reason = failure === undefined ? "was cancelled" : `has failed: ${failure.message}`;
        throw new LanceError(kind, `the refresh by job ${jobId} ${reason}`);
      }
    }
  }
}

function cancelled(cause: unknown): LanceError {
  return new LanceError("Cancelled", "the statement was cancelled; the refresh goes on", { cause });
}
