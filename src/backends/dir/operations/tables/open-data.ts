import type { Call } from "../../../../namespace/call/call.ts";
import { isLanceError } from "../../../../namespace/errors.ts";
import { traced } from "../../../../runtime/tracing.ts";
import type { DataContext } from "../../data/data-context.ts";
import type { FoundTable } from "../../data/table-source.ts";
import type { Lease } from "../../engine/handles.ts";
import type { NativeTable } from "../../engine/native/native.ts";
import { createVersionAnswers } from "../../engine/version-answers.ts";
import { type DatasetRef, normalizeBranch } from "../../format/dataset.ts";
import { readSegments } from "../../format/files/index-section.ts";
import { readVersion, versionNotFound } from "../../format/versions/version-files.ts";
import { requireTable } from "./find-table.ts";
import { isWritten } from "./table-data.ts";

/** A table of a call, and its data if it could be opened while the catalog was checked. */
export interface OpenedTable {
  readonly table: FoundTable;
  /** The newest version of the main branch; the caller releases it. */
  readonly lease: Lease | undefined;
}

/**
 * Returns the table of a call, like {@link requireTable}. On an object store, where each check takes a while, it opens
 * the table at its last known location meanwhile.
 *
 * @throws LanceError the errors of {@link requireTable}
 */
export async function requireOpenTable(context: DataContext, call: Pick<Call, "id">): Promise<OpenedTable> {
  const { engine, tables } = context;
  const path = tables.lastFound?.(call.id)?.path;
  if (path === undefined) return { table: await requireTable(context, call), lease: undefined };
  // If it cannot be opened, the caller opens it again and gets the reason.
  const opening = engine.acquire(path).catch(() => undefined);
  try {
    const table = await requireTable(context, call, call.id, true);
    if (table.path === path) return { table, lease: await opening };
    void opening.then((lease) => lease?.release());
    return { table, lease: undefined };
  } catch (error) {
    void opening.then((lease) => lease?.release());
    throw error;
  }
}

/** The state of a table that a request names. Default: the newest version of the main branch. */
export interface Reference {
  readonly version?: bigint | undefined;
  /** `main`, the empty text and undefined are the main branch. */
  readonly branch?: string | undefined;
  /** Whether the work reads no rows, so that damaged files of deleted rows do not matter. Default: false. */
  readonly readsNoRows?: boolean;
}

/**
 * Works with a table's data at the newest version of the main branch, or at the given reference.
 *
 * @param opened the newest version of the main branch, if the caller has opened it; it is released
 * @throws LanceError TableNotFound, also for a table that is only declared; TableVersionNotFound; TableBranchNotFound;
 *   InvalidTableState for a table that has lost its directory
 */
export async function withData<T>(
  context: DataContext,
  table: FoundTable,
  reference: Reference,
  work: (native: NativeTable, lease: Lease) => Promise<T>,
  opened?: Lease,
): Promise<T> {
  const lease = await openData(context, table, reference, opened);
  try {
    return await traced("engine", {}, () => work(lease.table, lease));
  } finally {
    lease.release();
  }
}

/**
 * Opens a table's data; the caller releases it. A handle at a reference belongs to the caller alone.
 *
 * @param opened the newest version of the main branch, if the caller has opened it; the result takes its place
 */
export async function openData(
  context: DataContext,
  found: FoundTable,
  { version, branch, readsNoRows = false }: Reference,
  opened?: Lease,
): Promise<Lease> {
  const { path, listed } = found;
  const { tables, engine } = context;
  const open = () =>
    engine
      .acquire(path, () => tables.checkNoEscape(found))
      .catch(async (error: unknown) => {
        if (listed && isLanceError(error, "TableNotFound")) await isWritten(context, found);
        throw await reasonOf(error, datasetOf(context, found));
      });
  const lease = opened ?? (await open());
  const named = isMain(branch) ? undefined : branch;
  const dataset = datasetOf(context, found, named);
  let endRead: (() => void) | undefined;
  let table: NativeTable | undefined;
  try {
    const checked = readsNoRows ? undefined : lease.deletions.refuseDamaged(version, dataset);
    checked?.catch(() => {});
    const number = version === undefined ? undefined : checkVersion(dataset, version);
    if (named !== undefined) {
      table = await engine.onBranch(lease.table, named, number);
    } else if (number !== undefined) {
      // Pruning does not touch branches.
      endRead = engine.readVersions.begin(path, number);
      table = await engine.atVersion(lease.table, number);
    }
    await checked;
    await tables.checkVersion?.(dataset, table ?? lease.table);
    if (table === undefined) return lease;
    const own = table;
    return {
      ...lease,
      table: own,
      ...createVersionAnswers(own),
      // The handle is closed after the call.
      noteMade() {},
      release() {
        own.close();
        endRead?.();
        lease.release();
      },
    };
  } catch (error) {
    table?.close();
    endRead?.();
    lease.release();
    // The engine's own error does not say which version.
    if (isLanceError(error, "TableVersionNotFound") && version !== undefined)
      throw versionNotFound(dataset, version);
    throw await reasonOf(error, dataset, version);
  }
}

/** Returns why a version cannot be opened: the engine fails without a word for many damaged manifests. */
async function reasonOf(failure: unknown, dataset: DatasetRef, version?: bigint): Promise<unknown> {
  if (!isLanceError(failure, "Internal")) return failure;
  const damage = await readVersion(dataset, version)
    .then(readSegments)
    .then(
      () => undefined,
      (error: unknown) => error,
    );
  return isLanceError(damage, "DataLoss") ? damage : failure;
}

/**
 * Returns the files of a table or of one of its branches, for work that the engine has no call for.
 *
 * @throws LanceError InvalidInput for a branch that the format does not allow
 */
export function datasetOf(
  { store }: Pick<DataContext, "store">,
  { id, path }: FoundTable,
  branch?: string,
): DatasetRef {
  return { store, root: store.keyOf(path), branch: normalizeBranch(branch), table: id };
}

/** Whether a branch in a request is the main branch. */
export function isMain(branch: string | undefined): boolean {
  return branch === undefined || branch === "" || branch === "main";
}

function checkVersion(dataset: DatasetRef, version: bigint): number {
  if (version > 0n && version <= BigInt(Number.MAX_SAFE_INTEGER)) return Number(version);
  throw versionNotFound(dataset, version);
}
