import { demandedTime } from "../../namespace/call/headers.ts";
import { LanceError } from "../../namespace/errors.ts";
import {
  type Backend,
  type BackendOperations,
  callIn,
  type LanceDbExtensions,
  wrapOperations,
} from "../../namespace/lance-namespace.ts";
import { isReadOperation } from "../../namespace/operations/operations.ts";
import { resolveAbandoned } from "./batch/resolve.ts";
import type { Staleness } from "./concurrency/shared-checks.ts";
import { createDiskReserve } from "./disk-reserve.ts";
import { findEngine } from "./engine/native/load.ts";
import { createIdempotencyRecords } from "./idempotency/records.ts";
import { openDirectory } from "./open-directory.ts";
import type { CatalogDataContext, EngineContext, JobContext, PageContext } from "./operations/context.ts";
import { createDataOperations } from "./operations/data-operations.ts";
import { createFunctionOperations } from "./operations/functions/functions.ts";
import { createErrorOperations } from "./operations/functions/row-errors.ts";
import { createSecretOperations } from "./operations/functions/secrets.ts";
import { defineClusterCompaction } from "./operations/jobs/cluster-compaction.ts";
import { defineClusterImport } from "./operations/jobs/cluster-import.ts";
import { createDriverOperations } from "./operations/jobs/drivers.ts";
import { createJobExtensions, tableOf } from "./operations/jobs/jobs.ts";
import { hasDatabase } from "./operations/namespaces/databases.ts";
import { createListOperations } from "./operations/namespaces/list.ts";
import { createNamespaceOperations } from "./operations/namespaces/namespaces.ts";
import { startKeepingPinned } from "./operations/read/keep-pinned.ts";
import { createCreateOperations } from "./operations/rows/create-table.ts";
import { createMergeLocks } from "./operations/rows/merge-locks.ts";
import { createMultipartWrites } from "./operations/rows/multipart.ts";
import { startStagingSweep } from "./operations/rows/staging-sweep.ts";
import { createCloneOperations } from "./operations/tables/clone.ts";
import { createDeclareOperations } from "./operations/tables/declare.ts";
import { createDescribeOperations } from "./operations/tables/describe.ts";
import { createDropOperations } from "./operations/tables/drop.ts";
import { rootTableAt, tableAt } from "./operations/tables/naming/table-at.ts";
import { createRenameOperations } from "./operations/tables/rename.ts";
import { besideDeletions } from "./operations/versions/delete-alone.ts";
import { createManagedVersionOperations } from "./operations/versions/managed-versions.ts";
import { startAutoRefresh } from "./operations/views/auto-refresh.ts";
import { checkDefinition } from "./operations/views/definition.ts";
import { parseViewQuery, withoutSourceIn, withSourceIn } from "./operations/views/query-text.ts";
import { createSqlViewOperations } from "./operations/views/sql-views.ts";
import { createViewExtensions, createViewOperations } from "./operations/views/views.ts";
import type { DirectoryBackendOptions } from "./options.ts";
import { createDirectoryTables } from "./upkeep/directory-tables.ts";
import { type NoteWrite, noteWrites, startUpkeep } from "./upkeep/upkeep.ts";

/** The backend of a directory. */
export interface DirectoryBackend extends Backend {
  /** Path of the directory that contains the manifest and the tables, or its URI in an object store. */
  readonly base: string;
  /** Reason why the catalog is served read-only; undefined if it is writable. */
  readonly readOnly: string | undefined;
}

/**
 * Creates the backend that serves a directory of Lance tables, in the public directory catalog format.
 *
 * It loads the engine in the background. If the directory cannot be written, or its storage has no conditional
 * writes, every operation that writes is refused.
 *
 * @throws Error with a single line, if the directory cannot be used or the engine is not installed.
 */
export async function createDirectoryBackend(options: DirectoryBackendOptions): Promise<DirectoryBackend> {
  findEngine();
  const directory = await openDirectory(options);
  const { context, readOnly } = directory;
  const { catalog, engine, jobs, log } = context;
  const { takesOver = true } = options;
  const writes = createMultipartWrites(context);
  const reserve = createDiskReserve({
    store: context.store,
    baseKey: context.layout.baseKey,
    log,
    bytes: readOnly === undefined ? (options.diskReserveBytes ?? 0) : 0,
  });
  const upkeep =
    readOnly === undefined && options.upkeep !== undefined
      ? startUpkeep(createDirectoryTables(context), log, options.upkeep)
      : undefined;
  const autoRefresh =
    readOnly === undefined
      ? startAutoRefresh(context, options.autoRefresh, takesOver && (options.shared?.catchesUp ?? true))
      : undefined;
  const note: NoteWrite = (id, by) => {
    upkeep?.note(id, by);
    autoRefresh?.note(id);
  };
  const endKeeping =
    (options.shared?.isFirst ?? true) ? startKeepingPinned(context, options.pinTimes) : undefined;
  const mergeLocks = createMergeLocks(context.layout.baseKey, context.store, context.clock);
  let endSweep = async () => {};
  const close = async () => {
    await endKeeping?.();
    await endSweep();
    await mergeLocks.close();
    await reserve.close();
    await autoRefresh?.close();
    await upkeep?.close();
    await directory.close();
  };
  if (readOnly === undefined) {
    try {
      endSweep = await startStagingSweep(context, options.shared?.isFirst ?? true);
      await resolveAbandoned(context);
    } catch (error) {
      await close();
      throw error;
    }
  }
  engine.warmUp().catch((error) => log.error({ err: error }, "the engine cannot be loaded"));
  const { createOwnTable, ...creations } = createCreateOperations(context);
  const data = createDataOperations(context, { writes, mergeLocks });
  const namespaces = createNamespaceOperations(context);
  const drops = createDropOperations(context);
  const managedVersions = createManagedVersionOperations(context);
  const operations: Backend["operations"] = {
    ...namespaces,
    dropNamespace: (request, call) => reserve.spend(() => namespaces.dropNamespace(request, call)),
    ...createListOperations(context),
    ...createDeclareOperations(context),
    ...createDescribeOperations(context),
    ...drops,
    dropTable: (request, call) => reserve.spend(() => drops.dropTable(request, call)),
    ...creations,
    ...data.operations,
    ...managedVersions,
    ...createRenameOperations(context),
    ...createViewOperations(context, createOwnTable, note),
  };
  defineClusterCompaction(context);
  defineClusterImport(context);
  // The operations have registered how jobs run.
  if (readOnly === undefined) jobs.start(takesOver);
  const extensions = {
    ...createLanceDbExtensions(context),
    ...(context.cluster === undefined
      ? {}
      : createDriverOperations(context, context.cluster, (request, call) =>
          managedVersions.createTableVersion(request, call).finally(() => note(call.id, "gateway")),
        )),
    ...data.extensions,
    ...createSqlViewOperations(context),
    ...createViewExtensions(context, (request, call) => reserve.spend(() => drops.dropTable(request, call))),
  };
  const served = { operations, extensions };
  return {
    name: "dir",
    base: context.layout.base,
    place: context.layout.base,
    readOnly,
    ...heedFreshness(
      context.staleness,
      onlyReads(readOnly, noteWrites(note, besideDeletions(context, served))),
    ),
    idempotency:
      readOnly === undefined
        ? createIdempotencyRecords({ ...context, base: context.layout.baseKey })
        : undefined,
    sourcesOf: (view) => [parseViewQuery(checkDefinition(view).sourceQuery).source],
    figures: () => ({
      ...catalog.figures,
      catalogRows: catalog.known().size,
      catalogBytes: catalog.known().bytes,
      openTables: engine.open,
      jobs: countBy(jobs.active(), ({ state }) => state),
    }),
    tableAt: (place) => tableAt(context, place),
    rootTableAt: (location) => rootTableAt(context, location),
    async tableOfJob(jobId) {
      const job = await jobs.get(jobId);
      return job && tableOf(await catalog.read(), job);
    },
    hasPlainPageTokens: true,
    rootDatabases: {
      has: (name) => hasDatabase(catalog, name),
      enterQuery: withSourceIn,
      leaveQuery: withoutSourceIn,
    },
    async ready() {
      try {
        await engine.warmUp();
        await catalog.read();
        return true;
      } catch (error) {
        log.warn({ err: error }, "the catalog cannot be read");
        return false;
      }
    },
    close,
  };
}

function countBy<T>(items: readonly T[], keyOf: (item: T) => string): Record<string, number> {
  const groups = Map.groupBy(items, keyOf);
  return Object.fromEntries([...groups].map(([key, each]) => [key, each.length]));
}

/**
 * Makes every operation see the state that the headers of its call demand ({@link demandedTime}), where reads may be
 * stale: the catalog, and in a bucket the versions of tables.
 */
function heedFreshness(staleness: Staleness, all: BackendOperations): BackendOperations {
  if (staleness.maxMs <= 0) return all;
  return wrapOperations(all, (handler) => (...args) => {
    const time = demandedTime(callIn(args).headers);
    if (time !== undefined) staleness.demand(time);
    return handler(...args);
  });
}

/**
 * Refuses every operation that writes.
 *
 * @param reason the reason why the catalog is read-only; undefined for a writable catalog, which refuses nothing
 */
function onlyReads(reason: string | undefined, all: BackendOperations): BackendOperations {
  if (reason === undefined) return all;
  const refuse = async () => {
    throw new LanceError("Unsupported", `the catalog is read-only: ${reason}`);
  };
  return wrapOperations(all, (handler, localName) => (isReadOperation(localName) ? handler : refuse));
}

/** Reasons why services of LanceDB are not served, by the operation. */
const REFUSED = {
  manageFunctions: "functions can be created, described, listed and dropped, and nothing else",
  manageViews: "views can be created, described, listed and dropped, and nothing else",
  manageSecrets: "secrets can be created, altered, described, listed and dropped, and nothing else",
  manageAuthorization:
    "roles and policies of this server decide who may do what; they are files of its operator, which no call reads or changes",
  manageJobs: "the work of the engine has no step at which it could pause; a job can be cancelled",
} satisfies Partial<Record<keyof LanceDbExtensions, string>>;

/** Calls of LanceDB's remote clients beyond the contract; {@link REFUSED} has those without a meaning here. */
function createLanceDbExtensions(
  context: CatalogDataContext & JobContext & PageContext & Pick<EngineContext, "cluster">,
): Partial<LanceDbExtensions> {
  const refuse = (reason: string) => () => Promise.reject(new LanceError("Unsupported", reason));
  return {
    manageFunctions: refuse(REFUSED.manageFunctions),
    manageViews: refuse(REFUSED.manageViews),
    manageSecrets: refuse(REFUSED.manageSecrets),
    manageAuthorization: refuse(REFUSED.manageAuthorization),
    manageJobs: refuse(REFUSED.manageJobs),
    ...createJobExtensions(context),
    ...createFunctionOperations(context),
    ...createSecretOperations(context),
    ...createErrorOperations(context),
    ...createCloneOperations(context),
  };
}
