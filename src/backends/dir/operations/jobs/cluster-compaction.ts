import { setTimeout as sleep } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import type { Manifest } from "../../../../gen/lance/format/table_pb.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import type { FoundTable, WorkPlace } from "../../data/table-source.ts";
import { findUnsafe } from "../../engine/workarounds/misread-lists/find-misread.ts";
import { dropOrphanIndices } from "../../format/changes/orphan-indices.ts";
import { columnFacts, countRows } from "../../format/files/manifest.ts";
import { chooseEngine } from "../../jobs/engine/choose-engine.ts";
import { type Job, requireSuccess } from "../../jobs/job.ts";
import { untilEnded } from "../../jobs/jobs.ts";
import type { CheckCommit } from "../../jobs/ray/cluster.ts";
import type { CatalogDataContext, EngineContext, JobContext } from "../context.ts";
import { workOnCluster } from "./work-on-cluster.ts";

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
      async prepare(dataset, manifest) {
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

const whyNoCompaction: CheckCommit = ({ before, next, operation }) => {
  if (!OPERATIONS.has(operation.case)) return `a compaction makes no ${operation.case ?? "unknown change"}`;
  const [old, own] = [before, next].map((manifest) => (manifest ? countRows(manifest).rows : 0n));
  if (old !== own) return `a compaction keeps ${old} rows, and it has ${own}`;
  const changed = Object.entries(KEPT).find(
    ([, partOf]) => before !== undefined && !isDeepStrictEqual(partOf(before), partOf(next)),
  );
  return changed && `a compaction keeps the ${changed[0]} of the table`;
};

/** Parts of a version that a compaction leaves as they are. */
const KEPT: Readonly<Record<string, (manifest: Manifest) => unknown>> = {
  fields: ({ fields }) => columnFacts(fields),
  metadata: ({ schemaMetadata, tableMetadata }) => [textsOf(schemaMetadata), tableMetadata],
  configuration: ({ config }) => config,
  "directories outside": ({ basePaths }) => basePaths.map(({ id, path }) => [id, path]).sort(),
  branch: ({ branch }) => branch,
};

function textsOf(bytes: Readonly<Record<string, Uint8Array>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(bytes).map(([name, value]) => [name, Buffer.from(value).toString("hex")]),
  );
}

/** Whether a cluster joins the fragments of a table with that many rows. */
export function compactsOnCluster(
  { cluster }: Pick<Context, "cluster">,
  { properties }: Pick<FoundTable, "properties">,
  rows: number,
): boolean {
  return chooseEngine(cluster, { kind: COMPACT_TABLE, rows, properties }) === "ray";
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
  return resultOf(await untilEnded(jobs, id));
}

/** Interval between looks at the job of another process, in milliseconds. */
const LOOK_MS = 500;

/**
 * Has a gateway of the catalog with a cluster compact a table.
 *
 * @param waitMs how long no gateway may begin, in milliseconds
 * @throws LanceError ServiceUnavailable if none begins; the error of the job
 */
export async function compactElsewhere(
  { jobs }: Pick<Context, "jobs">,
  place: WorkPlace,
  waitMs: number,
): Promise<ClusterCompaction> {
  const { id } = await jobs.leave(requestOf(place));
  const until = performance.now() + waitMs;
  for (;;) {
    const job = await jobs.get(id);
    if (job === undefined) throw new LanceError("ServiceUnavailable", "the record of the compaction is gone");
    if (job.finishedAt !== undefined) return resultOf(job);
    if (job.state === "queued" && performance.now() >= until) {
      await jobs.cancel(id);
      const text = "no gateway of the catalog has begun the compaction; one with --job-engine ray has to run";
      throw new LanceError("ServiceUnavailable", text);
    }
    await sleep(LOOK_MS);
  }
}

function requestOf({ id, location }: WorkPlace) {
  return { kind: COMPACT_TABLE, table: id, spec: { location, engine: "ray" } };
}

function resultOf(job: Job): ClusterCompaction {
  const { fragmentsRemoved, fragmentsAdded } = requireSuccess(job);
  return { fragmentsRemoved: Number(fragmentsRemoved), fragmentsAdded: Number(fragmentsAdded) };
}
