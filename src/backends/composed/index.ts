import { create } from "@bufbuild/protobuf";
import { LanceDbService } from "../../gen/lance/gateway/v1/lancedb_pb.ts";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import {
  type DescribeTableRequest,
  type DescribeTableResponse,
  DescribeTableResponseSchema,
  TableExistsResponseSchema,
} from "../../gen/lance/namespace/v1/table_pb.ts";
import type { Call } from "../../namespace/call/call.ts";
import { checkChosenLocation } from "../../namespace/call/chosen-location.ts";
import { createClearing } from "../../namespace/call/clearing.ts";
import { isLanceError, LanceError } from "../../namespace/errors.ts";
import { type Identifier, joinIdentifier } from "../../namespace/identifier.ts";
import {
  type AnyHandler,
  type Backend,
  type BackendOperations,
  callIn,
  type LanceNamespace,
} from "../../namespace/lance-namespace.ts";
import { factsOf, isReadOperation, METHODS } from "../../namespace/operations/operations.ts";
import type { WriteGate } from "../dir/concurrency/locks.ts";
import { createExclusion } from "../dir/concurrency/thread-locks.ts";
import { findEngine } from "../dir/engine/native/load.ts";
import { checkReference, describeData, describesData } from "../dir/operations/tables/describe.ts";
import { withData } from "../dir/operations/tables/open-data.ts";
import { type OptimizeFoundOptions, type Outcome, optimizeFound } from "../dir/upkeep/optimize-now.ts";
import { noteWrites, startUpkeep } from "../dir/upkeep/upkeep.ts";
import { createTableCreation } from "./create-table.ts";
import { createDescribedTables } from "./described-tables.ts";
import { createJobCalls, MAX_LISTED } from "./jobs/job-calls.ts";
import { createNotedTables } from "./noted-tables.ts";
import { createOpenedTables, type OpenedTable, using } from "./opened-tables.ts";
import type { ComposedBackendOptions } from "./options.ts";
import { ROW_OPERATIONS } from "./row-operations.ts";
import { createSharedParts, openRowStorage } from "./row-storage.ts";
import { createRowStorages } from "./row-storages.ts";
import { createForeignTables, tendedIn } from "./upkeep/foreign-tables.ts";
import { callOfUpkeep } from "./upkeep/walk-catalog.ts";
import { createUpstreamVersions } from "./versions/upstream-versions.ts";

export type { ComposedBackendOptions } from "./options.ts";

/** The backend of an upstream's tables, whose rows are served here. */
export interface ComposedBackend extends Backend {
  /** Looks once after a table, with the gateway's own credentials. */
  optimize(id: Identifier, options: Omit<OptimizeFoundOptions, "leases">): Promise<Outcome>;
}

/**
 * Creates the backend that serves the rows of tables which another backend, the catalog, lists.
 *
 * Everything about names is the catalog's. Each call on rows has the catalog describe its table to its caller, and reads or writes the data at
 * the location and with the storage options of that description.
 *
 * @param catalog closed with the backend
 * @throws Error with a single line, if an option is wrong or the engine is not installed.
 */
export function createComposedBackend(catalog: Backend, options: ComposedBackendOptions): ComposedBackend {
  findEngine();
  const exclusion = createExclusion(options.shared);
  const noted = createNotedTables({ most: MAX_LISTED, shared: options.shared, workers: options.workers });
  const shared = createSharedParts(options, exclusion, noted.note);
  const descriptions = createDescribedTables(catalog, options.maxStalenessMs ?? 0);
  const storages = createRowStorages(
    (wanted) => openRowStorage(wanted, shared, options),
    options.tableIdleMs ?? 600_000,
    (id, key) => createUpstreamVersions(catalog, id, key),
  );
  const opened = createOpenedTables(descriptions, storages, options);

  async function openTable(call: Call, id: Identifier, isPassing = false): Promise<OpenedTable> {
    // Upkeep deletes old versions, so it follows the properties and the place that the table has now.
    return opened.open(call, await descriptions.describe(call, id, isPassing), isPassing);
  }
  const openPassing = (call: Call, id: Identifier) => openTable(call, id, true);
  const jobCalls = createJobCalls({ catalog, openTable, maxPageSize: shared.maxPageSize, noted });

  function rowHandler(kind: keyof BackendOperations, name: string): AnyHandler {
    const isStream = METHODS[name as keyof typeof METHODS].methodKind === "server_streaming";
    const check = isReadOperation(name) ? () => {} : refuseKey;
    const handlerFor = ({ storage }: OpenedTable): AnyHandler =>
      storage[kind as "operations"][name as "countTableRows"] as AnyHandler;
    if (isStream) {
      return async function* stream(...args): AsyncGenerator<unknown> {
        const call = callIn(args);
        check(call);
        const table = await openTable(call, tableOf(name, call));
        let failure: unknown;
        try {
          yield* handlerFor(table)(...args) as AsyncIterable<unknown>;
        } catch (error) {
          failure = error;
          throw error;
        } finally {
          table.release(failure);
        }
      };
    }
    return async (...args) => {
      const call = callIn(args);
      check(call);
      const table = await openTable(call, tableOf(name, call));
      return using(table, () => handlerFor(table)(...args) as Promise<unknown>);
    };
  }
  function rowHandlers(kind: keyof BackendOperations, methods: object): Record<string, AnyHandler> {
    const names = Object.keys(ROW_OPERATIONS).filter((name) => Object.hasOwn(methods, name));
    return Object.fromEntries(names.map((name) => [name, rowHandler(kind, name)]));
  }

  async function describeTable(request: DescribeTableRequest, call: Call): Promise<DescribeTableResponse> {
    const handler = catalog.operations.describeTable;
    if (handler === undefined)
      throw new LanceError("Unsupported", "the upstream catalog does not describe tables");
    if (!describesData(request)) return handler(request, call);
    checkReference(request);
    const described = await descriptions.describe(call, call.id);
    const table = await opened.open(call, described);
    const { storageOptions, ...response } = described.response;
    const given = request.vendCredentials === false ? {} : storageOptions;
    return Object.assign(
      create(DescribeTableResponseSchema, {
        ...response,
        context: { ...response.context },
        storageOptions: given,
      }),
      { table: call.id.at(-1) ?? "", namespace: call.id.slice(0, -1) },
      await using(table, () => describeData(table.storage.context, table.table, request)),
    );
  }
  const creation = createTableCreation({ catalog, descriptions, opened, uploads: shared });
  const ofCatalog: Partial<LanceNamespace> = {
    ...catalog.operations,
    ...withoutUpkeep(catalog.operations, exclusion.histories),
    ...creation,
    async createTable(request, data, call) {
      refuseKey(call);
      return creation.createTable(request, data, call);
    },
  };
  const lacksExists = { learned: false };
  const tableExists: LanceNamespace["tableExists"] = async (request, call) => {
    const handler = catalog.operations.tableExists;
    if (request.version !== undefined) {
      const table = await openTable(call, call.id);
      const reference = { version: request.version, readsNoRows: true };
      await using(table, () => withData(table.storage.context, table.table, reference, async () => {}));
      return create(TableExistsResponseSchema);
    }
    if (handler !== undefined && !lacksExists.learned) {
      try {
        return await handler(request, call);
      } catch (error) {
        if (!isLanceError(error, "Unsupported")) throw error;
        lacksExists.learned = true;
      }
    }
    await descriptions.describe(call, call.id);
    return create(TableExistsResponseSchema);
  };

  const foreign = { catalog, openTable: openPassing, readAhead: shared.readAhead, log: options.log };
  const upkeep =
    options.upkeep !== undefined && catalog.readOnly === undefined
      ? startUpkeep(createForeignTables(foreign), options.log, options.upkeep)
      : undefined;
  const served: BackendOperations = {
    operations: {
      ...forgetting({ ...ofCatalog, ...withCheckedLocations(ofCatalog) }, descriptions.forget),
      ...rowHandlers("operations", LanceNamespaceService.method),
      describeTable,
      tableExists,
    } as Partial<LanceNamespace>,
    extensions: {
      ...catalog.extensions,
      ...rowHandlers("extensions", LanceDbService.method),
      ...jobCalls.extensions,
    },
  };
  return {
    name: catalog.name,
    place: catalog.place && `${catalog.place}; rows are read and written here`,
    missing:
      "the upstream catalog has no such operation; with --rows here, the gateway serves the rows of its tables, and no other operations",
    handsOut: catalog.handsOut,
    readOnly: catalog.readOnly,
    hasPlainPageTokens: catalog.hasPlainPageTokens,
    rootDatabases: catalog.rootDatabases,
    ...(upkeep === undefined ? served : noteWrites(upkeep.note, served)),
    tableOfJob: jobCalls.tableOfJob,
    async optimize(id, wanted) {
      const opened = await openPassing(callOfUpkeep("describeTable", id, options.log), id);
      return using(opened, async () => {
        const { context, leases } = tendedIn(opened.storage, opened.table);
        return optimizeFound(context, { ...wanted, leases }, opened.table);
      });
    },
    forwardsJobs: catalog.extensions?.describeJob !== undefined && catalog.tableOfJob === undefined,
    ready: () => catalog.ready(),
    async close() {
      await upkeep?.close();
      await Promise.all([...shared.storageJobs].map((jobs) => jobs.close()));
      await storages.close();
      noted.close();
      await catalog.close();
    },
  };
}

/** @throws LanceError Unsupported for a change whose answer a client expects to be kept */
function refuseKey({ headers }: Call): void {
  if (headers["idempotency-key"] === undefined) return;
  throw new LanceError(
    "Unsupported",
    "with --rows here the gateway keeps no answers for idempotency keys; leave out the header idempotency-key",
  );
}

/** Returns the table of a call: a transaction is one of the table before its name. */
function tableOf(name: string, { id }: Call): Identifier {
  return factsOf(name)?.by === "transaction" ? id.slice(0, -1) : id;
}

/** Longest wait of a drop for upkeep and jobs that run on its table, in milliseconds. */
const DRAIN_MS = 5_000;

/** Makes a drop wait for work on its table: the engine would commit it to a new table that is made in the same place. */
function withoutUpkeep({ dropTable }: Partial<LanceNamespace>, histories: WriteGate) {
  const drop: LanceNamespace["dropTable"] = async (request, call) => {
    const open = await histories.close(joinIdentifier(call.id), DRAIN_MS);
    try {
      return await (dropTable as LanceNamespace["dropTable"])(request, call);
    } finally {
      open();
    }
  };
  return dropTable === undefined ? {} : { dropTable: drop };
}

/** Makes the operations that declare tables check who chooses their locations. */
function withCheckedLocations({
  declareTable,
  batchCommitTables,
}: Partial<LanceNamespace>): Partial<LanceNamespace> {
  return {
    ...(declareTable !== undefined && {
      async declareTable(request, call) {
        await checkChosenLocation(call, request.location);
        return declareTable(request, call);
      },
    }),
    ...(batchCommitTables !== undefined && {
      async batchCommitTables(request, call) {
        for (const { operation } of request.operations)
          if (operation.case === "declareTable") await checkChosenLocation(call, operation.value.location);
        return batchCommitTables(request, call);
      },
    }),
  };
}

/** Makes operations that change the catalog forget the descriptions of the objects that they name, and of those below. */
function forgetting(
  operations: Partial<LanceNamespace>,
  forget: (id: Identifier) => void,
): Partial<LanceNamespace> {
  const clearing = createClearing(forget);
  return Object.fromEntries(
    Object.entries(operations).map(([name, handler]) => [
      name,
      isReadOperation(name) ? handler : clearing(METHODS[name as keyof typeof METHODS], handler),
    ]),
  );
}
