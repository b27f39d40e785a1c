import { create, type JsonObject } from "@bufbuild/protobuf";
import {
  DescribeDriverTaskResponseSchema,
  FinishDriverTaskResponseSchema,
  ReportDriverProgressResponseSchema,
} from "../../../../gen/lance/gateway/v1/driver_pb.ts";
import type { Call } from "../../../../namespace/call/call.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import type { DriverOperations } from "../../../../namespace/lance-namespace.ts";
import { isForCluster, type Job } from "../../jobs/job.ts";
import type { Cluster } from "../../jobs/ray/cluster.ts";
import { MAX_RUNS } from "../../jobs/ray/driver-records.ts";
import type { CatalogDataContext, DirectAccessContext, JobContext } from "../context.ts";
import { credentialsFor } from "../tables/direct-access.ts";

/** A run of a driver, as its calls name it. */
interface RunOfJob {
  readonly jobId: string;
  readonly run: number;
}

/** Most characters of a report about progress; the record is read with each look at the job. */
const MAX_STEP_LENGTH = 500;

/** The calls by which the drivers on a cluster get their tasks and report; each is for the job of its key alone. */
export function createDriverOperations(
  context: CatalogDataContext & JobContext & DirectAccessContext,
  cluster: Cluster,
): DriverOperations {
  const { jobs, layout, store, clientStorageOptions } = context;
  const { records } = cluster;

  /** Returns the job whose driver calls. @throws LanceError Unauthenticated, for anybody else */
  async function jobOf({ jobId, run }: RunOfJob, { identity }: Call): Promise<Job> {
    const { authToken: key } = identity;
    const job = await jobs.get(jobId);
    const isOpen = job !== undefined && job.finishedAt === undefined && isForCluster(job);
    if (!isOpen || key === undefined || !(run >= 1 && run <= MAX_RUNS)) throw stranger();
    if (await records.hasEnded(jobId, run)) throw stranger();
    if (!(await records.hasKey(jobId, run))) {
      const headers = { "retry-after": "1" };
      throw new LanceError("ServiceUnavailable", "the log of the run has not shown its key yet", { headers });
    }
    if (!(await records.isKey(jobId, run, key))) throw stranger();
    return job;
  }

  return {
    async describeDriverTask(request, call) {
      const job = await jobOf(request, call);
      const uri = layout.pathOf(String(job.spec["location"]));
      // The gateway has decided that the caller of the job may change the table.
      const credentials = await credentialsFor(context, uri, {}, { may: () => true });
      return create(DescribeDriverTaskResponseSchema, {
        kind: job.kind,
        uri,
        storageOptions: { ...clientStorageOptions, ...credentials },
        task: await cluster.taskOf(job, { store, root: store.keyOf(uri) }),
      });
    },
    async reportDriverProgress({ progress, ...run }, call) {
      const { id } = await jobOf(run, call);
      const { step = "", done = 0, total = 0 } = progress ?? {};
      await records.noteProgress(id, { step: step.slice(0, MAX_STEP_LENGTH), done, total });
      return create(ReportDriverProgressResponseSchema);
    },
    async finishDriverTask({ result, failure, ...run }, call) {
      const { id } = await jobOf(run, call);
      await records.noteReport(id, run.run, {
        result: failure === undefined ? (result as JsonObject | undefined) : undefined,
        failure: failure && { message: failure.message, retryable: failure.retryable },
      });
      return create(FinishDriverTaskResponseSchema);
    },
  };
}

function stranger(): LanceError {
  return new LanceError("Unauthenticated", "the key is not that of a running job's driver");
}
