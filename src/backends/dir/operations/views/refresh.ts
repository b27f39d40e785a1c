import { formatFieldPath } from "../../../../arrow/field-path.ts";
import type { Manifest } from "../../../../gen/lance/format/table_pb.ts";
import { isLanceError, LanceError } from "../../../../namespace/errors.ts";
import type { DataContext } from "../../data/data-context.ts";
import type { FoundTable } from "../../data/table-source.ts";
import { engineCall } from "../../engine/failures/errors.ts";
import type { NativeTable } from "../../engine/native/native.ts";
import { findMisread } from "../../engine/workarounds/misread-lists/find-misread.ts";
import { commitMetadata } from "../../format/changes/commit.ts";
import { takesStagedRows } from "../../format/changes/staged-rows.ts";
import { readVersion, readVersionIfThere } from "../../format/versions/version-files.ts";
import type { Job, JobFacts } from "../../jobs/job.ts";
import type { ReadContext, UploadContext } from "../context.ts";
import { dataOfJob } from "../read/count-rows.ts";
import { inRoomOfJob } from "../read/memory-room.ts";
import { sizeOfExpressions } from "../read/sampled-width.ts";
import { type ReceivedRows, receiveRows } from "../rows/received-rows.ts";
import type { AlsoChange } from "../rows/staged-write.ts";
import { requireTable } from "../tables/find-table.ts";
import { datasetOf, withData } from "../tables/open-data.ts";
import { refuseMisread } from "../tables/refuse-misread.ts";
import { addedRows } from "./added-rows.ts";
import { checkResult, type OutputSchema, readDefinition, readOutputSchema } from "./definition.ts";
import { parseViewQuery, type ViewQuery } from "./query-text.ts";
import { buildSourceQuery, type Part, resultSchema, resultStream } from "./source.ts";
import { encodeState, hasRefreshedRows, isRecorded, readState, STATE_KEY } from "./view-state.ts";

/** Tables, and the memory in which rows are read and written. */
export type RefreshContext = DataContext & UploadContext & Pick<ReadContext, "readAhead">;

/** A refresh with everything that it works with. */
interface Refresh {
  readonly context: RefreshContext;
  readonly view: FoundTable;
  /** The version of the view that the refresh follows. */
  readonly before: Manifest;
  readonly source: FoundTable;
  /** The version of the source that is read. */
  readonly origin: Manifest;
  readonly native: NativeTable;
  readonly text: string;
  readonly query: ViewQuery;
  readonly output: OutputSchema;
  readonly signal: AbortSignal;
}

/** Number of times that a refresh is tried while others commit to the view; the last one replaces all rows. */
const MAX_ATTEMPTS = 5;

/**
 * Brings a view up to date with a version of its source. It adds the rows since the last refresh when nothing else has
 * happened to source and view; otherwise it replaces the whole view.
 *
 * It can be repeated at any point: the next refresh rebuilds a view whose last refresh did not finish.
 */
export async function refreshView(
  context: RefreshContext,
  view: FoundTable,
  job: Job,
  signal: AbortSignal,
): Promise<JobFacts> {
  for (let attempt = 1; ; attempt++) {
    signal.throwIfAborted();
    try {
      return await tryRefresh(context, view, job, signal, attempt === MAX_ATTEMPTS);
    } catch (error) {
      if (attempt === MAX_ATTEMPTS || !isLanceError(error, "ConcurrentModification")) throw error;
    }
  }
}

/** @throws LanceError ConcurrentModification if another writer has changed the view so that the rows must not follow */
async function tryRefresh(
  context: RefreshContext,
  view: FoundTable,
  job: Job,
  signal: AbortSignal,
  isLast: boolean,
): Promise<JobFacts> {
  const { sourceQuery: text, outputSchema } = readDefinition(view);
  const query = parseViewQuery(text);
  const source = await requireTable(context, { id: query.source });
  // Before the source: a refresh in between, which may know a newer version, is noticed.
  const { manifest: before } = await readVersion(datasetOf(context, view));
  const wanted = job.spec["sourceVersion"];
  const sourceVersion = wanted === undefined ? await newestVersion(context, source) : BigInt(String(wanted));
  const output = await readOutputSchema(outputSchema, context.maxUploadBytes);
  // Before the table is opened: if another takes its place in between, the next refresh finds another identity.
  const { manifest: origin } = await readVersion(datasetOf(context, source), sourceVersion);
  refuseMisread(await findMisread(datasetOf(context, source), origin), {
    expressions: readsOf(query, output),
  });
  return withData(context, source, { version: sourceVersion }, async (native) => {
    checkResult(await resultSchema(await buildSourceQuery(native, query, output, {})), output.schema);
    const refresh = { context, view, before, source, origin, native, text, query, output, signal };
    const added = isLast || job.spec["full"] === true ? undefined : await planIncrement(refresh);
    if (added === "nothing") return factsOf(refresh, "none", 0, before.version);
    return added === undefined ? replace(refresh, { limit: query.limit }) : append(refresh, added);
  });
}

/** Returns the expressions of a view's query. */
export function readsOf({ columns, where }: ViewQuery, { schema }: OutputSchema): string[] {
  const names = schema.fields.map(({ name }) => formatFieldPath([name]));
  const read = columns.length === 0 ? names : columns.map(([, expression]) => expression);
  return where === undefined ? read : [...read, where];
}

/** Returns the part of the source that the view lacks; undefined when it cannot be determined. */
export async function planIncrement({
  context,
  source,
  origin,
  text,
  query,
  view,
  before,
}: Pick<Refresh, "context" | "source" | "origin" | "text" | "query" | "view" | "before">): Promise<
  Part | "nothing" | undefined
> {
  const state = readState(before);
  if (state === undefined || state.query !== text || state.source !== source.location) return undefined;
  if (!takesStagedRows(before)) return undefined;
  if (BigInt(state.sourceVersion) > origin.version) return undefined;
  if (!(await hasRefreshedRows(datasetOf(context, view), state, before))) return undefined;
  const isNewest = BigInt(state.sourceVersion) === origin.version;
  const older = isNewest ? origin : await manifestOf(context, source, BigInt(state.sourceVersion));
  if (older === undefined || !isRecorded(state, older)) return undefined;
  if (isNewest) return "nothing";
  const rows = await addedRows(datasetOf(context, source), older, origin);
  if (rows === undefined || query.limit === undefined) return rows && { rows };
  const count = await withData(context, view, {}, (native) => engineCall(() => native.countRows()));
  return query.limit > count ? { rows, limit: query.limit - count } : "nothing";
}

/** Appends rows, unless the view has another version by now, in a version that also records their source. */
function append(refresh: Refresh, part: Part): Promise<JobFacts> {
  const { view, before } = refresh;
  const also = recording(refresh, ({ version }) => version === before.version);
  return receive(refresh, part, "append", async (received) => {
    if (received.rows === 0) return record(refresh, "incremental", 0, before.version);
    return factsOf(refresh, "incremental", received.rows, BigInt(await received.appendWith(view, also)));
  });
}

/** Replaces all rows of the view, unless another refresh has ended by now, in a version that also records their source. */
function replace(refresh: Refresh, part: Part): Promise<JobFacts> {
  const { view, before } = refresh;
  const also = replacement(refresh);
  return receive(refresh, part, "replace", async (received) => {
    if (takesStagedRows(before))
      return factsOf(refresh, "full", received.rows, BigInt(await received.replaceWith(view, also)));
    return record(refresh, "full", received.rows, BigInt(await received.replace(view)));
  });
}

/** The source of rows. */
type Provenance = Pick<Refresh, "source" | "origin" | "text">;

/** Records the source of rows that replace those of a version of the view, unless another refresh has ended by then. */
export function replacement({ before, ...provenance }: Provenance & Pick<Refresh, "before">): AlsoChange {
  const known = before.tableMetadata[STATE_KEY];
  return recording(provenance, ({ tableMetadata }) => tableMetadata[STATE_KEY] === known);
}

/** Records the source of the rows of the next version, if they may follow the newest one. */
function recording(provenance: Provenance, mayFollow: (newest: Manifest) => boolean): AlsoChange {
  return (manifest) => {
    if (!mayFollow(manifest))
      throw new LanceError("ConcurrentModification", "another writer has changed the view");
    manifest.tableMetadata[STATE_KEY] = stateAfter(provenance, manifest.version + 1n);
  };
}

/** Maximum number of rows that the engine reads at a time. */
const BATCH_ROWS = 4096;

/** Receives a part of the rows of the source, to append them to those of the view or to replace them all. */
async function receive<T>(
  { context, view, native, query, output, signal }: Refresh,
  part: Part,
  mode: "append" | "replace",
  work: (received: ReceivedRows) => Promise<T>,
): Promise<T> {
  const overwrite = mode === "replace";
  const size = await sizeOfExpressions(readsOf(query, output), dataOfJob(native, signal));
  const batchRows = Math.min(size?.batchRows ?? BATCH_ROWS, BATCH_ROWS);
  const call = { signal, holdBody() {}, releaseBody() {} };
  return inRoomOfJob(size?.readAheadBytes ?? 0, { call, readAhead: context.readAhead }, async () => {
    const source = await buildSourceQuery(native, query, output, part);
    const rows = resultStream(source, output, batchRows, signal);
    return receiveRows(context, rows, call, { place: { storage: context, table: view }, overwrite }, work);
  });
}

/** Commits the source of the rows that a version of the view has. */
async function record(refresh: Refresh, mode: string, rows: number, rowsVersion: bigint): Promise<JobFacts> {
  const { context, view, signal } = refresh;
  const entries = { [STATE_KEY]: stateAfter(refresh, rowsVersion) };
  const change = { tableMetadata: { entries } };
  const { version } = await commitMetadata(datasetOf(context, view), change, { signal });
  return factsOf(refresh, mode, rows, version);
}

/** Returns the entry for a version of the view that has the rows of a refresh. */
function stateAfter({ source, origin, text }: Provenance, rowsVersion: bigint): string {
  return encodeState({ source: source.location, origin, query: text, rowsVersion });
}

function factsOf({ origin }: Refresh, mode: string, rows: number, version: bigint): JobFacts {
  return { mode, rows, sourceVersion: Number(origin.version), version: Number(version) };
}

function newestVersion(context: DataContext, table: FoundTable): Promise<bigint> {
  return withData(context, table, {}, async (native) => BigInt(await engineCall(() => native.version())));
}

/** Returns the manifest of a version; undefined when it has been cleaned up. */
async function manifestOf(
  context: DataContext,
  table: FoundTable,
  version: bigint,
): Promise<Manifest | undefined> {
  return (await readVersionIfThere(datasetOf(context, table), version))?.manifest;
}
