import type { JsonObject } from "@bufbuild/protobuf";
import { LanceError } from "../../../../namespace/errors.ts";
import { whyNoSource } from "../../../../namespace/root.ts";
import type { FoundTable } from "../../data/table-source.ts";
import type { DatasetRef } from "../../format/dataset.ts";
import { latestVersion } from "../../format/versions/version-files.ts";
import { CLUSTER_ENGINE, type Job, type JobFacts } from "../../jobs/job.ts";
import type { CheckCommit } from "../../jobs/ray/cluster.ts";
import type { CatalogDataContext, DirectAccessContext, EngineContext, JobContext } from "../context.ts";
import { datasetOf } from "../tables/open-data.ts";
import { doElsewhere, type ElsewhereOptions, workOnCluster } from "./elsewhere.ts";
import { type ClusterImport, committedBy, markOf, whyNoAddition } from "./imported-version.ts";

/** The kind of the jobs that import files on a cluster. */
export const IMPORT_FILES = "import_files";

type Context = CatalogDataContext &
  JobContext &
  Pick<EngineContext, "cluster"> &
  Pick<DirectAccessContext, "vendor" | "clientStorageOptions">;

/** Files to import. */
export interface ImportSource {
  /** An absolute path or the URI of a place in a bucket: a file, a folder, or a pattern with `*`. */
  readonly source: string;
  readonly format: "parquet" | "arrow" | "arrows" | "csv" | "tsv" | "jsonl";
  /** Whether the table has to be without data before. */
  readonly mode: "create" | "append";
  /** Columns of a new table: an Arrow IPC stream without rows in base64. Default: those of the files, which texts do not have. */
  readonly schema?: string;
}

/**
 * Defines how files are imported on the cluster of this process, if the operator allows any; other processes leave such jobs to it. The driver
 * commits through the gateway, once for each job.
 */
export function defineClusterImport(context: Context): void {
  const { cluster, jobs } = context;
  if (cluster === undefined || !cluster.kinds.includes(IMPORT_FILES)) return;
  const { importLocations } = cluster;
  if (importLocations.length === 0) return;
  cluster.describe(IMPORT_FILES, async (job, dataset) => {
    const committed = await committedBy(job, dataset);
    const hasVersion = (await latestVersion(dataset)) !== undefined;
    if (committed === undefined) checkTaken(job, hasVersion);
    const { source, format, schema } = job.spec;
    const within = allowedLocation(importLocations, String(source));
    return {
      ...{ source: String(source), format: String(format), within, mark: markOf(job) },
      is_new: !hasVersion,
      ...(typeof schema === "string" && { schema }),
      source_options: await optionsFor(context, within),
      ...(committed !== undefined && { committed: { ...committed } }),
    };
  });
  cluster.allowCommits(IMPORT_FILES, whyNoImport);
  jobs.define(IMPORT_FILES, (job, signal) =>
    workOnCluster(context, job, signal, {
      async prepare() {
        allowedLocation(importLocations, String(job.spec["source"]));
      },
      recover: (dataset) => factsBy(job, dataset),
      async finish(_, { dataset }) {
        const committed = await factsBy(job, dataset);
        if (committed !== undefined) return committed;
        throw new LanceError("Internal", "the driver on Ray has reported an import that is not in the table");
      },
    }),
  );
}

/**
 * Has a gateway of the catalog with a cluster add the rows of files to a table, all or none.
 *
 * @throws LanceError ServiceUnavailable if none begins; the error of the job; Cancelled
 */
export async function importElsewhere(
  context: Context,
  table: FoundTable,
  files: ImportSource,
  wait: Omit<ElsewhereOptions, "work" | "needs" | "findResult">,
): Promise<ClusterImport> {
  const { id, location } = table;
  const dataset = datasetOf(context, table);
  const request = { kind: IMPORT_FILES, table: id, spec: { location, engine: CLUSTER_ENGINE, ...files } };
  const { rows, version } = await doElsewhere(context, request, {
    ...{ ...wait, work: "the import", needs: "--job-engine ray and --import-location" },
    async findResult(jobId) {
      const job = await context.jobs.get(jobId);
      return job && factsBy(job, dataset);
    },
  });
  return { rows: Number(rows), version: Number(version) };
}

/** Returns the version that a job has made as the result of the job. */
async function factsBy(job: Job, dataset: DatasetRef): Promise<JobFacts | undefined> {
  const committed = await committedBy(job, dataset);
  return committed && { ...committed };
}

/** @throws LanceError ConcurrentModification for a job whose new table has got data */
function checkTaken(job: Job, hasVersion: boolean): void {
  const taken = whyTaken(job, hasVersion);
  if (taken !== undefined) throw new LanceError("ConcurrentModification", `nothing is imported: ${taken}`);
}

/** Returns why a job that fills a new table may not fill this one; undefined if it may. */
function whyTaken({ spec }: Job, hasVersion: boolean): string | undefined {
  return spec["mode"] === "create" && hasVersion
    ? "the table has got data from elsewhere meanwhile"
    : undefined;
}

/** A version must keep the earlier rows, add those of its transaction, and change nothing else; a job makes a single one. */
const whyNoImport: CheckCommit = async (commit, job) => {
  const { dataset, before, message } = commit;
  if (message !== markOf(job)) return "its transaction does not name the job";
  const committed = await committedBy(job, dataset);
  if (committed !== undefined) return `the rows are in version ${committed.version} already`;
  const taken = whyTaken(job, before !== undefined);
  return taken ?? whyNoAddition(commit);
};

/** Returns the storage options with which the workers read files; none outside of the bucket of the catalog. */
async function optionsFor(context: Context, within: string): Promise<JsonObject> {
  const { store, vendor, clientStorageOptions } = context;
  if (!within.startsWith("s3://")) return {};
  const bucket = store.uriOf("");
  const isOwn = store.files === undefined && `${within}/`.startsWith(bucket);
  const credentials = isOwn ? await vendor?.vendForWork(within.slice(bucket.length), "read") : undefined;
  return isOwn ? { ...clientStorageOptions, ...credentials } : {};
}

/**
 * Returns the location that contains the files of a source, of those that the operator allows.
 *
 * @param source an absolute path or the URI of a place in an S3 bucket, with `*` for any characters
 * @throws LanceError PermissionDenied if there is none, InvalidInput for a source that has other names
 */
export function allowedLocation(locations: readonly string[], source: string): string {
  const why = whyNoSource(source);
  if (why !== undefined) throw new LanceError("InvalidInput", `${source} cannot be imported: ${why}`);
  const containing = locations.filter((location) => `${source}/`.startsWith(`${location}/`));
  const [longest] = containing.toSorted((a, b) => b.length - a.length);
  if (longest !== undefined) return longest;
  const text = `${source} is outside of the locations from which --import-location allows imports`;
  throw new LanceError("PermissionDenied", text);
}
