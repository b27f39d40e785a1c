import { isDeepStrictEqual } from "node:util";
import type { JsonObject } from "@bufbuild/protobuf";
import { LanceError } from "../../../../namespace/errors.ts";
import type { FoundTable } from "../../data/table-source.ts";
import { lacksValues } from "../../format/changes/appended-rows.ts";
import type { DatasetRef } from "../../format/dataset.ts";
import { countRows } from "../../format/files/manifest.ts";
import { COMMIT_MESSAGE, readTransactionMessage } from "../../format/versions/transaction-records.ts";
import { findVersions, latestVersion, readVersionIfThere } from "../../format/versions/version-files.ts";
import type { Job } from "../../jobs/job.ts";
import type { CheckCommit } from "../../jobs/ray/cluster.ts";
import { checkName } from "../columns/column-name.ts";
import type { CatalogDataContext, DirectAccessContext, EngineContext, JobContext } from "../context.ts";
import { datasetOf } from "../tables/open-data.ts";
import { doElsewhere, type ElsewhereOptions } from "./elsewhere.ts";
import { allowedLocation } from "./import-source.ts";
import { changedPart } from "./kept-parts.ts";
import { workOnCluster } from "./work-on-cluster.ts";

/** The kind of the jobs that import files on a cluster. */
export const IMPORT_FILES = "import_files";

/** Formats of the files whose values a cluster keeps exactly. */
export const CLUSTER_FORMATS = ["parquet", "arrow", "arrows"] as const;

type Context = CatalogDataContext &
  JobContext &
  Pick<EngineContext, "cluster"> &
  Pick<DirectAccessContext, "vendor" | "clientStorageOptions">;

/** Files to import. */
export interface ImportSource {
  /** An absolute path or the URI of a place in a bucket: a file, a folder, or a pattern with `*`. */
  readonly source: string;
  readonly format: (typeof CLUSTER_FORMATS)[number];
}

/** Result of an import on a cluster. */
export interface ClusterImport {
  readonly rows: number;
  readonly version: number;
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
    const { source, format } = job.spec;
    const within = allowedLocation(importLocations, String(source));
    return {
      ...{ source: String(source), format: String(format), within, mark: markOf(job) },
      is_new: (await latestVersion(dataset)) === undefined,
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
      async finish(_, { dataset }) {
        const committed = await committedBy(job, dataset);
        if (committed === undefined)
          throw new LanceError(
            "Internal",
            "the driver on Ray has reported an import that is not in the table",
          );
        return { ...committed };
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
  { source, format }: ImportSource,
  wait: Omit<ElsewhereOptions, "work" | "needs">,
): Promise<ClusterImport> {
  const { id, location } = table;
  const since = (await latestVersion(datasetOf(context, table)))?.version ?? 0n;
  const spec = { location, engine: "ray", source, format, since: Number(since) };
  const needs = "--job-engine ray and --import-location";
  const request = { kind: IMPORT_FILES, table: id, spec };
  const { rows, version } = await doElsewhere(context, request, { ...wait, work: "the import", needs });
  return { rows: Number(rows), version: Number(version) };
}

/** Returns the message of the commit of a job, by which its rows are found again. */
function markOf({ id }: Job): string {
  return `lance-gateway import ${id}`;
}

/** Returns the version that a job has made; undefined if it has made none. */
async function committedBy(job: Job, dataset: DatasetRef): Promise<ClusterImport | undefined> {
  const since = BigInt(Number(job.spec["since"] ?? 0));
  for (const { version } of await findVersions(dataset)) {
    if (version <= since) continue;
    const file = await readVersionIfThere(dataset, version);
    const transaction = file && (await readTransactionMessage(dataset, file));
    if (transaction?.transactionProperties[COMMIT_MESSAGE] !== markOf(job)) continue;
    const { operation } = transaction;
    const fragments =
      operation.case === "append" || operation.case === "overwrite" ? operation.value.fragments : [];
    return { rows: Number(countRows({ fragments }).rows), version: Number(version) };
  }
  return undefined;
}

/** A version must keep the earlier rows, add those of its transaction, and change nothing else; a job makes a single one. */
const whyNoImport: CheckCommit = async ({ dataset, before, next, operation, message }, job) => {
  if (message !== markOf(job)) return "its transaction does not name the job";
  const expected = before === undefined ? "overwrite" : "append";
  if (operation.case !== expected) return `an import makes no ${operation.case ?? "unknown change"} here`;
  const { fragments } = operation.value as { fragments: (typeof next)["fragments"] };
  const kept = before?.fragments ?? [];
  if (next.fragments.length !== kept.length + fragments.length) return "it has other fragments";
  if (!isDeepStrictEqual(next.fragments.slice(0, kept.length), kept)) return "it has changed rows";
  if (countRows({ fragments }).rows !== countRows(next).rows - countRows({ fragments: kept }).rows)
    return "it has other rows than its transaction";
  if (lacksValues(next, fragments)) return "a column of the table has got another type meanwhile";
  const changed = before && changedPart(before, next);
  if (changed !== undefined) return `an import keeps the ${changed} of the table`;
  if (before === undefined) checkNew(next);
  const committed = await committedBy(job, dataset);
  return committed && `the rows are in version ${committed.version} already`;
};

/** @throws LanceError InvalidInput for a first version with more than columns and rows, or names that no column may have */
function checkNew({ fields, config, branch }: Parameters<CheckCommit>[0]["next"]): void {
  for (const { parentId, name } of fields) if (parentId < 0) checkName(name);
  if (Object.keys(config).length > 0 || branch !== undefined)
    throw new LanceError("InvalidInput", "an import makes no configuration and no branch");
}

/** Returns the storage options with which the workers read files; credentials only of the bucket of the catalog. */
async function optionsFor(context: Context, within: string): Promise<JsonObject> {
  const { store, vendor, clientStorageOptions } = context;
  if (!within.startsWith("s3://")) return {};
  const bucket = store.uriOf("");
  const isOwn = store.files === undefined && `${within}/`.startsWith(bucket);
  const credentials = isOwn ? await vendor?.vendForWork(within.slice(bucket.length), "read") : undefined;
  return { ...(store.files === undefined && clientStorageOptions), ...credentials };
}
