import { setTimeout as sleep } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import type { Manifest } from "../../../../gen/lance/format/table_pb.ts";
import { type ErrorName, LanceError } from "../../../../namespace/errors.ts";
import type { FoundTable, WorkPlace } from "../../data/table-source.ts";
import { findUnsafe } from "../../engine/workarounds/misread-lists/misread-pages.ts";
import { dropOrphanIndices } from "../../format/changes/orphan-indices.ts";
import { countRows } from "../../format/files/manifest.ts";
import { syncVersion } from "../../format/versions/make-durable.ts";
import { readVersion } from "../../format/versions/version-files.ts";
import { chooseEngine } from "../../jobs/engine/choose-engine.ts";
import { runOn } from "../../jobs/engine/job-engine.ts";
import type { Job, JobFacts } from "../../jobs/job.ts";
import { type CheckCommit, requireCluster } from "../../jobs/ray/cluster.ts";
import type { JobWork } from "../../jobs/running-jobs.ts";
import type { CatalogDataContext, EngineContext, JobContext } from "../context.ts";
import { duringWork } from "../tables/long-work.ts";
import { datasetOf } from "../tables/open-data.ts";

/** The kind of the jobs that join the fragments of a table on a cluster. */
export const COMPACT_TABLE = "compact_table";

type Context = CatalogDataContext & JobContext & Pick<EngineContext, "cluster">;

/** The facts about a table that decide whether its fragments are joined. */
interface FragmentFacts {
  readonly rows: number;
  readonly deletedRows: number;
  /** Fragments that are joined with their neighbours. */
  readonly small: { readonly fragments: number };
}

/** Result of a compaction on a cluster. */
export interface ClusterCompaction {
  readonly fragmentsRemoved: number;
  readonly fragmentsAdded: number;
}

/** Defines how compactions run on a cluster. The driver commits through the gateway, which remaps no indices itself. */
export function defineClusterCompaction(context: Context): void {
  const { cluster, gate, jobs } = context;
  cluster?.describe(COMPACT_TABLE, async () => ({}));
  cluster?.allowCommits(COMPACT_TABLE, whyNoCompaction);
  const work: JobWork = (job, signal) => {
    const { engine, alone } = requireCluster(cluster);
    const compact = async (table: FoundTable) => {
      const dataset = datasetOf(context, table);
      const { manifest } = await readVersion(dataset);
      if ((await findUnsafe(dataset, manifest)) !== undefined)
        throw new LanceError("Unsupported", "the table has lists that a compaction would misread");
      await dropOrphanIndices(dataset);
      const inProcess = () => Promise.reject(new Error("the work is on a cluster"));
      const made = await runOn(engine, { jobId: job.id, inProcess }, signal);
      await dropOrphanIndices(dataset);
      await syncVersion(dataset);
      const [fragmentsRemoved, fragmentsAdded] = [made["fragments_removed"], made["fragments_added"]].map(
        (count) => Number(count ?? 0),
      );
      return { fragmentsRemoved, fragmentsAdded };
    };
    const place = placeOf(job);
    return alone(place.location, () =>
      duringWork(context, place, (table) => gate.passSlowly(table.path, () => compact(table))),
    );
  };
  // A command leaves such jobs to whichever gateway of the catalog has a cluster.
  jobs.define(COMPACT_TABLE, work, cluster !== undefined);
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

/** Parts of a version that a compaction leaves as they are. Versions of the format differ in what else they record about a field. */
const KEPT: Readonly<Record<string, (manifest: Manifest) => unknown>> = {
  fields: ({ fields }) =>
    fields.map(({ id, parentId, name, logicalType, nullable }) => [
      id,
      parentId,
      name,
      logicalType,
      nullable,
    ]),
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

function placeOf({ table, spec }: Job): WorkPlace {
  return { id: table, location: String(spec["location"]) };
}

/** Whether a table has fragments to join, or deleted rows to remove from the files. */
export function isJoinable({ small, deletedRows }: Omit<FragmentFacts, "rows">): boolean {
  return small.fragments > 1 || deletedRows > 0;
}

/** Whether a cluster compacts a table. */
export function compactsOnCluster(
  { cluster }: Pick<Context, "cluster">,
  { properties }: Pick<FoundTable, "properties">,
  facts: FragmentFacts,
): boolean {
  const { rows } = facts;
  return isJoinable(facts) && chooseEngine(cluster, { kind: COMPACT_TABLE, rows, properties }) === "ray";
}

/** Whether a job of any process has to compact a table. */
export async function isCompacting({ jobs }: Pick<Context, "jobs">, location: string): Promise<boolean> {
  return (await jobs.open()).some(
    ({ kind, spec }) => kind === COMPACT_TABLE && spec["location"] === location,
  );
}

/** Interval between looks at a job, in milliseconds. */
const LOOK_MS = 500;

/** Has this process follow the compaction of a table on its cluster. @throws LanceError the error of the job */
export async function compactOnCluster(
  { jobs }: Pick<Context, "jobs">,
  place: WorkPlace,
  signal: AbortSignal,
): Promise<ClusterCompaction> {
  const { id } = await jobs.submit(requestOf(place));
  for (;;) {
    const job = await jobs.ended(id, LOOK_MS);
    if (job !== undefined) return resultOf(job);
    signal.throwIfAborted();
  }
}

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

function resultOf({ state, error, result = {} }: Job): ClusterCompaction {
  if (state === "cancelled") throw new LanceError("Cancelled", "the compaction was cancelled");
  if (error !== undefined) throw new LanceError(error.name as ErrorName, error.message);
  const { fragmentsRemoved, fragmentsAdded }: JobFacts = result;
  return { fragmentsRemoved: Number(fragmentsRemoved), fragmentsAdded: Number(fragmentsAdded) };
}
