import { setTimeout as sleep } from "node:timers/promises";
import { create, type JsonObject } from "@bufbuild/protobuf";
import type { Transaction } from "../../../../gen/lance/format/transaction_pb.ts";
import {
  CommitDriverVersionResponseSchema,
  DescribeDriverTaskResponseSchema,
  DescribeDriverVersionResponseSchema,
  type DriverRewrite,
  FinishDriverTaskResponseSchema,
  ReportDriverProgressResponseSchema,
} from "../../../../gen/lance/gateway/v1/driver_pb.ts";
import { CreateTableVersionRequestSchema } from "../../../../gen/lance/namespace/v1/version_pb.ts";
import { type Call, copyCall } from "../../../../namespace/call/call.ts";
import { isLanceError, LanceError } from "../../../../namespace/errors.ts";
import type { Identifier } from "../../../../namespace/identifier.ts";
import type { DriverOperations, LanceNamespace } from "../../../../namespace/lance-namespace.ts";
import { startStopwatch } from "../../../../runtime/clocks.ts";
import { readStaged, type StagedVersion } from "../../format/changes/staged-version.ts";
import { type DatasetRef, keyOfManifestPath } from "../../format/dataset.ts";
import { COMMIT_MESSAGE, readTransactionMessage } from "../../format/versions/transaction-records.ts";
import { describeVersion, latestVersion, readVersion } from "../../format/versions/version-files.ts";
import { isForCluster, type Job } from "../../jobs/job.ts";
import type { Cluster } from "../../jobs/ray/cluster.ts";
import { MAX_RUNS } from "../../jobs/ray/driver-records.ts";
import type { CatalogDataContext, DirectAccessContext, JobContext } from "../context.ts";
import { findTable } from "../tables/find-table.ts";
import { datasetOf } from "../tables/open-data.ts";
import { toTableVersion } from "../versions/versions.ts";
import { type CarriedRewrite, carryDeletions } from "./carried-deletions.ts";
import { createHeldChanges } from "./held-changes.ts";
import { tableOf } from "./jobs.ts";

/** A run of a driver, as its calls name it. */
interface RunOfJob {
  readonly jobId: string;
  readonly run: number;
}

/** Most characters of a report about progress; the record is read with each look at the job. */
const MAX_STEP_LENGTH = 500;

/**
 * Longest wait of a driver's call for the key, and pause between looks for it, in milliseconds: a driver calls as soon as it has written
 * the digest to its log, and the gateway that runs the job reads the log a moment later.
 */
const KEY_WAIT_MS = 15_000;
const KEY_LOOK_MS = 200;

/** The calls by which the drivers on a cluster get their tasks, commit and report; each is for the job of its key alone. */
export function createDriverOperations(
  context: CatalogDataContext & JobContext & DirectAccessContext,
  cluster: Cluster,
  createTableVersion: LanceNamespace["createTableVersion"],
): DriverOperations {
  const { catalog, jobs, layout, store, clientStorageOptions, vendor, mostVended } = context;
  const { records } = cluster;
  const held = createHeldChanges(context.gate);

  /** Returns the job whose driver calls. @throws LanceError Unauthenticated, for anybody else */
  async function jobOf({ jobId, run }: RunOfJob, { identity, signal }: Call): Promise<Job> {
    const { authToken: key } = identity;
    const job = await jobs.get(jobId);
    const isOpen = job !== undefined && job.finishedAt === undefined && isForCluster(job);
    if (!isOpen || key === undefined || !(run >= 1 && run <= MAX_RUNS)) throw stranger();
    const waited = startStopwatch();
    for (;;) {
      if (await records.hasEnded(jobId, run)) throw stranger();
      if (await records.hasKey(jobId, run)) break;
      if (waited() >= KEY_WAIT_MS) {
        const headers = { "retry-after": "1" };
        throw new LanceError("ServiceUnavailable", "the log of the run has not shown its key yet", {
          headers,
        });
      }
      await sleep(KEY_LOOK_MS, undefined, { signal });
    }
    if (!(await records.isKey(jobId, run, key))) throw stranger();
    return job;
  }

  /** Returns the table of a job. @throws LanceError TableNotFound, also for another table of the same name */
  async function tableOfJob(job: Job) {
    const tables = await catalog.read();
    const id = tableOf(tables, job);
    const table = await findTable(context, tables, id);
    if (table === undefined || table.location !== job.spec["location"])
      throw new LanceError("TableNotFound", `the table of the job ${job.id} is gone`);
    return { id, path: table.path, dataset: datasetOf(context, table) };
  }

  /**
   * Checks a version that a driver has staged.
   *
   * @returns its operation, and the version that takes its place if others have deleted rows meanwhile
   * @throws LanceError InvalidInput for a version that is not what a job is for, ConcurrentModification if it is not the next
   */
  async function checkCommit(
    job: Job,
    { dataset, path }: { readonly dataset: DatasetRef; readonly path: string },
    staged: StagedVersion,
    rewrite: DriverRewrite | undefined,
  ): Promise<{ carried: CarriedRewrite | undefined; operation: Transaction["operation"]["case"] }> {
    const { version } = staged;
    const latest = await latestVersion(dataset);
    const next = (latest?.version ?? 0n) + 1n;
    if (version !== next)
      throw new LanceError("ConcurrentModification", `the next version is ${next}, not ${version}`);
    const file = await readStaged(dataset, staged);
    const transaction = await readTransactionMessage(dataset, file);
    // A rewrite reserves ids at the beginning of each attempt.
    if (rewrite && transaction?.operation.case === "reserveFragments") await held.begin(job.id, path);
    const before = latest && (await readVersion(dataset, latest.version));
    const carried =
      rewrite && before && transaction?.operation.case === "rewrite"
        ? await carryDeletions(dataset, { before, next: file, transaction, rewrite })
        : undefined;
    const {
      readVersion: read = 0n,
      operation,
      transactionProperties,
    } = carried?.transaction ?? transaction ?? {};
    await cluster.checkCommit(job, {
      ...{ dataset, before, next: carried?.file ?? file, readVersion: read, rewrite },
      operation: operation ?? { case: undefined },
      message: transactionProperties?.[COMMIT_MESSAGE],
    });
    return { carried, operation: operation?.case };
  }

  /** Publishes a version that has been checked, or the one that takes its place. */
  async function publish(
    { id: jobId }: Job,
    { id, call }: { readonly id: Identifier; readonly call: Call },
    { version, stagedKey, manifestSize }: StagedVersion,
    carried: CarriedRewrite | undefined,
  ) {
    // The gateway that runs the job learns of a cancellation later.
    if (await jobs.isCancelRequested(jobId))
      throw new LanceError("Cancelled", `the job ${jobId} was cancelled, and its version is not published`);
    const own = carried && { manifestPath: carried.file.key, manifestSize: BigInt(await carried.write()) };
    const request = create(CreateTableVersionRequestSchema, {
      ...{ id: [...id], version, manifestPath: stagedKey },
      ...(manifestSize !== undefined && { manifestSize: BigInt(manifestSize) }),
      ...own,
    });
    const { version: made } = await createTableVersion(request, copyCall(call, { id })).catch(
      async (error: unknown) => {
        if (isLanceError(error, "ConcurrentModification")) await carried?.discard();
        throw error;
      },
    );
    if (carried !== undefined) await store.delete(keyOfManifestPath(stagedKey)).catch(() => {});
    return made;
  }

  return {
    async describeDriverVersion({ version, ...run }, call) {
      const { dataset } = await tableOfJob(await jobOf(run, call));
      if (version === undefined && (await latestVersion(dataset)) === undefined)
        return create(DescribeDriverVersionResponseSchema);
      const entry = await describeVersion(dataset, version);
      return create(DescribeDriverVersionResponseSchema, { version: toTableVersion(entry) });
    },
    async commitDriverVersion({ version, manifestPath, manifestSize, rewrite, ...run }, call) {
      const job = await jobOf(run, call);
      const { id, ...place } = await tableOfJob(job);
      const size = manifestSize === undefined ? undefined : Number(manifestSize);
      const staged = { version, stagedKey: manifestPath, manifestSize: size };
      try {
        const { carried, operation } = await checkCommit(job, place, staged, rewrite);
        const made = await publish(job, { id, call }, staged, carried);
        if (operation === "rewrite") held.end(job.id);
        return create(CommitDriverVersionResponseSchema, made && { version: made });
      } catch (error) {
        held.overtake(job.id);
        throw error;
      }
    },
    async describeDriverTask(request, call) {
      const job = await jobOf(request, call);
      const uri = layout.pathOf(String(job.spec["location"]));
      // The gateway has decided that the caller of the job may change the table. Drivers add files, and the gateway deletes.
      const credentials = await vendor?.vendForWork(store.keyOf(uri), mostVended);
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
      held.end(id);
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
