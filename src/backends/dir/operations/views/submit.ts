import { LanceError } from "../../../../namespace/errors.ts";
import type { Identifier } from "../../../../namespace/identifier.ts";
import type { FoundTable } from "../../data/table-source.ts";
import { countRows } from "../../format/files/manifest.ts";
import { readVersion } from "../../format/versions/version-files.ts";
import { CLUSTER_ENGINE, type JobEngineName } from "../../jobs/job.ts";
import { chooseEngine, type HeavyWork, workersOf } from "../../jobs/job-engine.ts";
import type { CatalogDataContext, EngineContext, JobContext } from "../context.ts";
import { requireTable } from "../tables/find-table.ts";
import { datasetOf } from "../tables/open-data.ts";
import { readDefinition, readOutputSchema } from "./definition.ts";
import { parseViewQuery } from "./query-text.ts";
import { planIncrement, type RefreshContext } from "./refresh.ts";
import { columnsForCluster } from "./source.ts";

/** The kind of the jobs that refresh a view. */
export const REFRESH_VIEW = "refresh_view";

/** Request for a refresh. */
export interface WantedRefresh {
  /** The version of the source. Default: the newest. */
  readonly srcVersion?: bigint | undefined;
  /** Whether all rows are replaced. Default: only where adding some does not do. */
  readonly full?: boolean | undefined;
  /** The cluster that a request names. Default: none. */
  readonly cluster?: string | undefined;
  /** The number of workers that a request names. Default: none. */
  readonly workers?: number | undefined;
}

/** Tables, jobs and the cluster of refreshes. */
export type SubmitContext = CatalogDataContext & JobContext & RefreshContext & Pick<EngineContext, "cluster">;

/** Starts the job that refreshes a view, and returns its id. @param caller Default: the gateway itself */
export async function submitRefresh(
  context: SubmitContext,
  id: Identifier,
  wanted: WantedRefresh = {},
  caller?: string,
): Promise<string> {
  const view = await requireTable(context, { id });
  const { srcVersion, full = false } = wanted;
  const engine = await engineOf(context, view, wanted);
  const spec = {
    location: view.location,
    ...(full && { full }),
    ...(srcVersion !== undefined && { sourceVersion: String(srcVersion) }),
    ...(engine !== "embedded" && { engine, ...workersOf(context.cluster, wanted) }),
  };
  return (await context.jobs.submit({ kind: REFRESH_VIEW, table: id, spec }, caller)).id;
}

/** Chooses where a view is refreshed. @throws LanceError Unsupported for a cluster that the request names and that cannot do it */
async function engineOf(
  context: SubmitContext,
  view: FoundTable,
  wanted: WantedRefresh,
): Promise<JobEngineName> {
  const { cluster } = context;
  const work = { kind: REFRESH_VIEW, properties: view.properties, asked: wanted.cluster };
  // A request that names a cluster is refused without one.
  if (cluster === undefined) return chooseEngine(cluster, { ...work, rows: 0 });
  try {
    return await engineWith(context, view, work, wanted);
  } catch (error) {
    // The refresh itself reports what is wrong with the view and its source.
    if (wanted.cluster === CLUSTER_ENGINE || !(error instanceof LanceError)) throw error;
    return "embedded";
  }
}

async function engineWith(
  context: SubmitContext,
  view: FoundTable,
  work: Omit<HeavyWork, "rows">,
  { srcVersion, full = false }: WantedRefresh,
): Promise<JobEngineName> {
  const { sourceQuery: text, outputSchema } = readDefinition(view);
  const query = parseViewQuery(text);
  const source = await requireTable(context, { id: query.source });
  const { manifest: origin } = await readVersion(datasetOf(context, source), srcVersion);
  const engine = chooseEngine(context.cluster, { ...work, rows: Number(countRows(origin).rows) });
  if (engine === "embedded") return engine;
  const { manifest: before } = await readVersion(datasetOf(context, view));
  const output = await readOutputSchema(outputSchema, context.maxUploadBytes);
  const read = await columnsForCluster(context, { view, before, source, origin, query, output });
  if ("reason" in read) {
    if (work.asked !== CLUSTER_ENGINE) return "embedded";
    throw new LanceError("Unsupported", `a Ray cluster does not refresh this view: ${read.reason}`);
  }
  // Rows that were added since the last refresh are few.
  const part = full ? undefined : await planIncrement({ context, source, origin, text, query, view, before });
  return part === undefined ? engine : "embedded";
}
