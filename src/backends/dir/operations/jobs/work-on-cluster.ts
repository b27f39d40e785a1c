import type { JsonObject } from "@bufbuild/protobuf";
import type { DataContext } from "../../data/data-context.ts";
import type { FoundTable, WorkPlace } from "../../data/table-source.ts";
import type { DatasetRef } from "../../format/dataset.ts";
import { syncVersion } from "../../format/versions/make-durable.ts";
import type { Job } from "../../jobs/job.ts";
import { runOn } from "../../jobs/job-engine.ts";
import { requireCluster } from "../../jobs/ray/cluster.ts";
import type { EngineContext } from "../context.ts";
import { duringWork } from "../tables/long-work.ts";
import { datasetOf } from "../tables/open-data.ts";

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
  const { engine, alone } = requireCluster(context.cluster);
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
