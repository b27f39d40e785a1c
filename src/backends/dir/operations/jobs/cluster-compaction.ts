import { LanceError } from "../../../../namespace/errors.ts";
import type { FoundTable, WorkPlace } from "../../data/table-source.ts";
import { findUnsafe } from "../../engine/workarounds/misread-lists/find-misread.ts";
import { dropOrphanIndices } from "../../format/changes/index-entries.ts";
import { countRows } from "../../format/files/manifest.ts";
import { readVersion } from "../../format/versions/version-files.ts";
import { CLUSTER_ENGINE, type JobFacts, requireSuccess } from "../../jobs/job.ts";
import { chooseEngine } from "../../jobs/job-engine.ts";
import { untilEnded } from "../../jobs/jobs.ts";
import type { CheckCommit } from "../../jobs/ray/cluster.ts";
import type { CatalogDataContext, EngineContext, JobContext } from "../context.ts";
import { doElsewhere, workOnCluster } from "./elsewhere.ts";
import { changedPart } from "./marked-version.ts";

/** The kind of the jobs that join the fragments of a table on a cluster. */
export const COMPACT_TABLE = "compact_table";

type Context = CatalogDataContext & JobContext & Pick<EngineContext, "cluster">;

/** Result of a compaction on a cluster. */
export interface ClusterCompaction {
  readonly fragmentsRemoved: number;
  readonly fragmentsAdded: number;
}

/**
 * Defines how compactions run on the cluster of this process; other processes leave them to it. The driver commits through the gateway,
 * which remaps no indices itself.
 */
export function defineClusterCompaction(context: Context): void {
  const { cluster, jobs } = context;
  if (cluster === undefined) return;
  cluster.describe(COMPACT_TABLE, async () => ({}));
  cluster.allowCommits(COMPACT_TABLE, whyNoCompaction);
  jobs.define(COMPACT_TABLE, (job, signal) =>
    workOnCluster(context, job, signal, {
      async prepare(dataset) {
        const { manifest } = await readVersion(dataset);
        if ((await findUnsafe(dataset, manifest)) !== undefined)
          throw new LanceError("Unsupported", "the table has lists that a compaction would misread");
        await dropOrphanIndices(dataset);
      },
      async finish({ fragments_removed = 0, fragments_added = 0 }, { dataset }) {
        await dropOrphanIndices(dataset);
        return {
          fragmentsRemoved: Number(fragments_removed),
          fragmentsAdded: Number(fragments_added),
        };
      },
    }),
  );
}

/** The operations of which a compaction consists. */
const OPERATIONS: ReadonlySet<string | undefined> = new Set(["reserveFragments", "rewrite"]);

const whyNoCompaction: CheckCommit = ({ before, next, operation, rewrite }) => {
  if (!OPERATIONS.has(operation.case)) return `a compaction makes no ${operation.case ?? "unknown change"}`;
  // pylance does not look for the changes of others here.
  if (operation.case === "rewrite" && rewrite === undefined)
    return "it does not say which fragments of which version it has rewritten";
  const [old, own] = [before, next].map((file) => (file ? countRows(file.manifest).rows : 0n));
  if (old !== own) return `a compaction keeps ${old} rows, and it has ${own}`;
  const changed = before && changedPart(before.manifest, next.manifest);
  return changed && `a compaction keeps the ${changed} of the table`;
};

/** Whether a cluster joins the fragments of a table with that many rows. */
export function compactsOnCluster(
  { cluster }: Pick<Context, "cluster">,
  { properties }: Pick<FoundTable, "properties">,
  rows: number,
): boolean {
  return chooseEngine(cluster, { kind: COMPACT_TABLE, rows, properties }) === CLUSTER_ENGINE;
}

/** Whether a job of any process has to compact a table. */
export async function isCompacting({ jobs }: Pick<Context, "jobs">, location: string): Promise<boolean> {
  return (await jobs.open()).some(
    ({ kind, spec }) => kind === COMPACT_TABLE && spec["location"] === location,
  );
}

/** Has this process follow the compaction of a table on its cluster. @throws LanceError the error of the job */
export async function compactOnCluster(
  { jobs }: Pick<Context, "jobs">,
  place: WorkPlace,
): Promise<ClusterCompaction> {
  const { id } = await jobs.submit(requestOf(place));
  return resultOf(requireSuccess(await untilEnded(jobs, id)));
}

/**
 * Has a gateway of the catalog with a cluster compact a table.
 *
 * @param waitMs how long no gateway may begin, in milliseconds
 * @throws LanceError ServiceUnavailable if none begins; the error of the job
 */
export async function compactElsewhere(
  context: Pick<Context, "jobs">,
  place: WorkPlace,
  waitMs: number,
): Promise<ClusterCompaction> {
  const wait = { work: "the compaction", needs: "--job-engine ray", waitMs };
  return resultOf(await doElsewhere(context, requestOf(place), wait));
}

function requestOf({ id, location }: WorkPlace) {
  return { kind: COMPACT_TABLE, table: id, spec: { location, engine: CLUSTER_ENGINE } };
}

function resultOf({ fragmentsRemoved, fragmentsAdded }: JobFacts): ClusterCompaction {
  return { fragmentsRemoved: Number(fragmentsRemoved), fragmentsAdded: Number(fragmentsAdded) };
}
