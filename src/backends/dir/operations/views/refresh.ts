import type { Manifest } from "../../../../gen/lance/format/table_pb.ts";
import { isLanceError } from "../../../../namespace/errors.ts";
import type { TableContext } from "../../catalog/catalog-context.ts";
import { engineCall } from "../../engine/errors.ts";
import type { NativeTable } from "../../engine/native.ts";
import { commitMetadata } from "../../format/changes/commit.ts";
import type { DatasetRef } from "../../format/dataset.ts";
import { readVersion } from "../../format/versions/version-files.ts";
import type { Job, JobFacts } from "../../jobs/job.ts";
import type { UploadContext } from "../context.ts";
import { receiveRows } from "../rows/received-rows.ts";
import { datasetOf, type FoundTable, requireTable, withData } from "../tables/lookup.ts";
import { addedRows } from "./added-rows.ts";
import { checkResult, type OutputSchema, readDefinition, readOutputSchema } from "./definition.ts";
import { keepsRows } from "./kept-rows.ts";
import { parseViewQuery, type ViewQuery } from "./query-text.ts";
import { buildSourceQuery, type Part, resultSchema, resultStream } from "./source.ts";

/** The entry of a view's table metadata that records the source of its rows. */
const STATE_KEY = "lance_gateway.view.state";

/**
 * The source of a view's rows. A refresh commits this entry after the version of the rows: if others than compactions and the like
 * follow that version, another writer has changed the view, or a refresh did not finish.
 */
export interface ViewState {
  /** The location of the source. */
  readonly source: string;
  readonly sourceVersion: string;
  /** Identity of that version ({@link versionIdentity}); older gateways recorded none. */
  readonly sourceIdentity?: string | undefined;
  /** The version of the view that contains the rows. */
  readonly rowsVersion: string;
  readonly query: string;
}

/** A refresh with everything that it works with. */
interface Refresh {
  readonly context: TableContext & UploadContext;
  readonly view: FoundTable;
  readonly source: FoundTable;
  /** The version of the source that is read. */
  readonly origin: Manifest;
  readonly native: NativeTable;
  readonly text: string;
  readonly query: ViewQuery;
  readonly output: OutputSchema;
  /** Whether all rows are replaced in any case. */
  readonly full: boolean;
  readonly signal: AbortSignal;
}

/**
 * Brings a view up to date with a version of its source. It adds the rows since the last refresh when nothing else has
 * happened to source and view; otherwise it replaces the whole view.
 *
 * It can be repeated at any point: the next refresh rebuilds a view whose last refresh did not finish.
 */
export async function refreshView(
  context: TableContext & UploadContext,
  view: FoundTable,
  job: Job,
  signal: AbortSignal,
): Promise<JobFacts> {
  signal.throwIfAborted();
  const { sourceQuery: text, outputSchema } = readDefinition(view);
  const query = parseViewQuery(text);
  const source = await requireTable(context, query.source);
  const wanted = job.spec["sourceVersion"];
  const sourceVersion = wanted === undefined ? await newestVersion(context, source) : BigInt(String(wanted));
  const output = await readOutputSchema(outputSchema, context.maxUploadBytes);
  // Before the table is opened: if another takes its place in between, the next refresh finds another identity.
  const { manifest: origin } = await readVersion(datasetOf(context, source), sourceVersion);
  return withData(context, source, { version: sourceVersion }, async (native) => {
    checkResult(await resultSchema(buildSourceQuery(native, query, output, {})), output.schema);
    const full = job.spec["full"] === true;
    return run({ context, view, source, origin, native, text, query, output, full, signal });
  });
}

async function run(refresh: Refresh): Promise<JobFacts> {
  const { context, view, origin, query } = refresh;
  const { manifest } = await readVersion(datasetOf(context, view));
  const added = refresh.full ? undefined : await planIncrement(refresh, manifest);
  if (added !== undefined) {
    const before = Number(manifest.version);
    if (added === "nothing")
      return { mode: "none", rows: 0, sourceVersion: Number(origin.version), version: before };
    const result = await append(refresh, added);
    // A writer in between may have added rows that do not follow from the source.
    const alone =
      result && (await keepsRows(datasetOf(context, view), manifest.version, BigInt(result.version) - 1n));
    if (alone) return finish(refresh, "incremental", result);
  }
  return finish(refresh, "full", await replace(refresh, { limit: query.limit }));
}

/** Returns the part of the source that the view lacks; undefined when it cannot be determined. */
async function planIncrement(
  { context, source, origin, text, query, view }: Refresh,
  manifest: Manifest,
): Promise<Part | "nothing" | undefined> {
  const state = readState(manifest);
  if (state === undefined || state.query !== text || state.source !== source.location) return undefined;
  if (BigInt(state.sourceVersion) > origin.version) return undefined;
  if (!(await hasRefreshedRows(datasetOf(context, view), state, manifest))) return undefined;
  const isNewest = BigInt(state.sourceVersion) === origin.version;
  const older = isNewest ? origin : await manifestOf(context, source, BigInt(state.sourceVersion));
  if (older === undefined || !isRecorded(state, older)) return undefined;
  if (isNewest) return "nothing";
  const rows = await addedRows(datasetOf(context, source), older, origin);
  if (rows === undefined || query.limit === undefined) return rows && { rows };
  const count = await withData(context, view, {}, (native) => engineCall(() => native.countRows()));
  return query.limit > count ? { rows, limit: query.limit - count } : "nothing";
}

interface Written {
  readonly rows: number;
  readonly version: number;
}

async function append(refresh: Refresh, part: Part): Promise<Written | undefined> {
  try {
    return await write(refresh, part, false);
  } catch (error) {
    if (isLanceError(error, "ConcurrentModification")) return undefined;
    throw error;
  }
}

function replace(refresh: Refresh, part: Part): Promise<Written> {
  return write(refresh, part, true);
}

function write(
  { context, view, native, query, output, signal }: Refresh,
  part: Part,
  overwrite: boolean,
): Promise<Written> {
  const rows = resultStream(buildSourceQuery(native, query, output, part), output, signal);
  const call = { signal, holdBody() {}, releaseBody() {} };
  return receiveRows(context, rows, call, { table: view, overwrite }, async (received) => ({
    rows: received.rows,
    version: await (overwrite ? received.replace(view) : received.append(view)),
  }));
}

async function finish(
  { context, view, source, origin, text, signal }: Refresh,
  mode: string,
  { rows, version }: Written,
): Promise<JobFacts> {
  const state: ViewState = {
    source: source.location,
    sourceVersion: String(origin.version),
    sourceIdentity: versionIdentity(origin),
    rowsVersion: String(version),
    query: text,
  };
  const entries = { [STATE_KEY]: JSON.stringify(state) };
  const committed = await commitMetadata(
    datasetOf(context, view),
    { tableMetadata: { entries } },
    { signal },
  );
  return { mode, rows, sourceVersion: Number(origin.version), version: Number(committed.version) };
}

/** Returns where a view's rows come from; undefined before the first refresh. */
export function readState({ tableMetadata }: Manifest): ViewState | undefined {
  const text = tableMetadata[STATE_KEY];
  return text === undefined ? undefined : (JSON.parse(text) as ViewState);
}

/** Whether a version of a view has the rows of the refresh that it records, and no other writer's. */
export async function hasRefreshedRows(
  dataset: DatasetRef,
  { rowsVersion }: ViewState,
  { version }: Manifest,
): Promise<boolean> {
  const written = BigInt(rowsVersion);
  return version === written + 1n || keepsRows(dataset, written, version);
}

/** Whether the version with the recorded number is the one from which the view's rows come, and not another of that number. */
export function isRecorded({ sourceIdentity }: ViewState, version: Manifest): boolean {
  return sourceIdentity === undefined || sourceIdentity === versionIdentity(version);
}

/**
 * Distinguishes a version from others of its number, which a table has that was created again or restored from a backup.
 */
function versionIdentity({ transactionFile, timestamp }: Manifest): string {
  return `${transactionFile} ${timestamp?.seconds}.${timestamp?.nanos}`;
}

function newestVersion(context: TableContext, table: FoundTable): Promise<bigint> {
  return withData(context, table, {}, async (native) => BigInt(await engineCall(() => native.version())));
}

/** Returns the manifest of a version; undefined when it has been cleaned up. */
async function manifestOf(
  context: TableContext,
  table: FoundTable,
  version: bigint,
): Promise<Manifest | undefined> {
  try {
    return (await readVersion(datasetOf(context, table), version)).manifest;
  } catch (error) {
    if (isLanceError(error, "TableVersionNotFound")) return undefined;
    throw error;
  }
}
