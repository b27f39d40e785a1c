import { create } from "@bufbuild/protobuf";
import {
  CreateTableMode,
  type CreateTableResponse,
  CreateTableResponseSchema,
} from "../../gen/lance/namespace/v1/data_pb.ts";
import {
  DeclareTableRequestSchema,
  type DeclareTableResponse,
  DeregisterTableRequestSchema,
} from "../../gen/lance/namespace/v1/table_pb.ts";
import type { Call } from "../../namespace/call/call.ts";
import { isLanceError, LanceError } from "../../namespace/errors.ts";
import { type Identifier, joinIdentifier } from "../../namespace/identifier.ts";
import type { Backend, LanceNamespace } from "../../namespace/lance-namespace.ts";
import { METHODS } from "../../namespace/operations/operations.ts";
import { createStorageClock } from "../dir/format/storage-clock.ts";
import { RefusedCommit } from "../dir/format/versions/catalog-store.ts";
import { listVersions } from "../dir/format/versions/version-files.ts";
import type { UploadContext } from "../dir/operations/context.ts";
import { acceptExisting } from "../dir/operations/rows/create-table.ts";
import { writeFirst } from "../dir/operations/rows/first-version.ts";
import { type ReceivedRows, receiveRows } from "../dir/operations/rows/received-rows.ts";
import { tableExists } from "../dir/operations/tables/naming/object-names.ts";
import { isWritten } from "../dir/operations/tables/table-data.ts";
import {
  callOfGateway,
  type DescribedTable,
  type DescribedTables,
  describedTable,
} from "./described-tables.ts";
import { type OpenedTable, type OpenedTables, using } from "./opened-tables.ts";
import { vendedAccess } from "./storage-access.ts";

/** Parts of {@link createTableCreation}. */
export interface CreationParts {
  readonly catalog: Backend;
  readonly descriptions: DescribedTables;
  readonly opened: OpenedTables;
  readonly uploads: UploadContext;
}

/**
 * Creates the operations that add a table. CreateTable has the upstream declare it, and writes its data here. DeclareTable has the upstream declare
 * it, and refuses a place that has the data of another table.
 *
 * The first rows are checked before the declaration, and the answer follows the data. After a crash in between, the upstream has a declared
 * table, which the same call fills when it is repeated. Of several calls that fill one, exactly one succeeds.
 */
export function createTableCreation({
  catalog,
  descriptions,
  opened,
  uploads,
}: CreationParts): Pick<LanceNamespace, "createTable"> & Partial<Pick<LanceNamespace, "declareTable">> {
  const { declareTable, deregisterTable } = catalog.operations;

  /** Returns the table if the upstream has it. */
  async function find(call: Call): Promise<DescribedTable | undefined> {
    try {
      return await descriptions.describe(call, call.id, true);
    } catch (error) {
      if (isLanceError(error, "TableNotFound")) return undefined;
      throw error;
    }
  }
  /** Returns the table that the upstream has declared, and since when, by the process's monotonic clock, if it is this call's declaration. */
  async function declare(call: Call, properties: Record<string, string>): Promise<Declared> {
    if (declareTable === undefined)
      throw new LanceError("Unsupported", "the upstream catalog declares no tables, so none can be created");
    const { id } = call;
    const request = create(DeclareTableRequestSchema, { id: [...id], vendCredentials: true, properties });
    const since = performance.now();
    try {
      const answer = await declareTable(request, callOfGateway(call, METHODS.declareTable, id));
      return { table: describedTable(id, answer), since };
    } catch (error) {
      // Another caller was faster, or the upstream repeated a declaration whose answer was lost.
      const found = isLanceError(error, "TableAlreadyExists") ? await find(call) : undefined;
      if (found === undefined) throw error;
      return { table: found };
    }
  }

  /**
   * Returns the description of a table that a call has declared, with the caller's credentials. An answer without them does not tell whether the
   * upstream has none or denies them.
   *
   * @throws LanceError PermissionDenied
   */
  async function withAccess(call: Call, declared: DescribedTable): Promise<DescribedTable> {
    const hasAccess = vendedAccess(declared.location, declared.storageOptions, {}) !== undefined;
    return hasAccess ? declared : descriptions.describe(call, call.id, true);
  }

  /** Takes a declaration of a call back, and returns why. */
  async function takeBack(call: Call, why: LanceError): Promise<LanceError> {
    const { id } = call;
    try {
      if (deregisterTable === undefined) return why;
      const request = create(DeregisterTableRequestSchema, { id: [...id] });
      await deregisterTable(request, callOfGateway(call, METHODS.deregisterTable, id));
    } catch (error) {
      call.log.warn(
        { err: error },
        "the upstream catalog keeps the declaration of a table that was not created",
      );
    }
    return why;
  }

  /**
   * Checks that the place of a new table has no data that is older than its declaration. That of a table that was deregistered stays, and may
   * be another table's by now.
   */
  async function checkFresh(
    call: Call,
    { storage: { context }, table }: OpenedTable,
    since: number,
  ): Promise<void> {
    const { store } = context;
    const dataset = { store, root: table.location, branch: undefined, table: table.id };
    const [oldest] = await listVersions(dataset, { limit: 1 });
    if (oldest === undefined) return;
    const now = await createStorageClock(store, table.location).now();
    // Otherwise another caller has filled the table since.
    if (oldest.timestampMillis >= now - (performance.now() - since)) return;
    throw await takeBack(call, placeTaken(table.id));
  }

  /**
   * Checks the place that the upstream has chosen for a declaration of a client. Where the gateway may not open the storage it serves no rows, so
   * that nothing is to be shown.
   *
   * @throws LanceError, after which the upstream does not have the declaration any more
   */
  async function checkPlace(call: Call, answer: DeclareTableResponse, since: number): Promise<void> {
    if (answer.location === undefined) return;
    try {
      const place = await opened.open(call, await withAccess(call, describedTable(call.id, answer)));
      await using(place, () => checkFresh(call, place, since));
    } catch (error) {
      if (isLanceError(error, "InvalidTableState")) throw error;
      if (isLanceError(error, "PermissionDenied") || isLanceError(error, "Unsupported")) return;
      throw error instanceof LanceError ? await takeBack(call, error) : error;
    }
  }

  /** Gives a table that the upstream has its data. */
  async function fill(
    { storage: { context }, table }: OpenedTable,
    rows: ReceivedRows,
    mode: CreateTableMode | undefined,
    properties: Record<string, string>,
  ): Promise<CreateTableResponse> {
    const isReplaced = mode === CreateTableMode.OVERWRITE;
    const version = async () => {
      if (await isWritten(context, table)) {
        if (isReplaced) return rows.replace(table);
        throw tableExists(table.id);
      }
      return writeFirst(context, table, () => rows.create(table));
    };
    if (mode === CreateTableMode.EXIST_OK && (await isWritten(context, table)))
      return acceptExisting(context, table, rows);
    refuseOtherProperties(table.properties, properties);
    return create(CreateTableResponseSchema, {
      location: table.path,
      version: BigInt(await version()),
      properties: { ...table.properties },
    });
  }

  const createTable: LanceNamespace["createTable"] = async ({ mode, properties }, data, call) => {
    const found = await find(call);
    let place: OpenedTable | undefined;
    let isDeclared = false;
    const makePlace = async () => {
      const { table: described, since }: Declared =
        found === undefined ? await declare(call, properties) : { table: found };
      isDeclared = since !== undefined;
      try {
        place = await opened.open(call, since === undefined ? described : await withAccess(call, described));
      } catch (error) {
        if (since !== undefined && isLanceError(error, "PermissionDenied")) throw await takeBack(call, error);
        throw error;
      }
      if (since !== undefined) await checkFresh(call, place, since);
      return { storage: place.storage.context, table: place.table };
    };
    const use: Pick<OpenedTable, "release" | "explain"> = {
      release: (failure) => place?.release(failure),
      explain: (failure) => (place === undefined ? failure : place.explain(failure)),
    };
    return using(use, async () => {
      const existing = found === undefined ? undefined : await makePlace();
      try {
        return await receiveRows(
          uploads,
          data,
          call,
          { place: existing ?? makePlace, overwrite: true },
          (rows) => fill(place as OpenedTable, rows, mode, properties),
        );
      } catch (error) {
        const isMine = isDeclared && error instanceof RefusedCommit;
        throw isMine && (await isEmpty(place as OpenedTable)) ? await takeBack(call, error) : error;
      }
    });
  };
  if (declareTable === undefined) return { createTable };
  return {
    createTable,
    async declareTable(request, call) {
      // The upstream may repeat an earlier answer, and the table may have data by now.
      const isRepeated = "idempotency-key" in call.headers && (await find(call)) !== undefined;
      // An answer that passes through as the upstream wrote it does not show its location.
      call.takes = undefined;
      const since = performance.now();
      const answer = await declareTable(request, call);
      if (!request.location && !isRepeated) await checkPlace(call, answer, since);
      return answer;
    },
  };
}

/** A table that the upstream has, since when by declaration of the call itself. */
interface Declared {
  readonly table: DescribedTable;
  readonly since?: number;
}

/** Whether no caller has given a table data. If that cannot be known, it may have some. */
async function isEmpty({ storage: { context }, table }: OpenedTable): Promise<boolean> {
  return !(await isWritten(context, table).catch(() => true));
}

/** Properties of an existing table are the upstream's, and no operation of its changes them. */
function refuseOtherProperties(
  existing: Readonly<Record<string, string>>,
  wanted: Readonly<Record<string, string>>,
): void {
  for (const name in wanted) {
    if (existing[name] === wanted[name]) continue;
    throw new LanceError(
      "Unsupported",
      `the table exists with another property ${JSON.stringify(name)}, and the upstream catalog has no operation to change it`,
    );
  }
}

function placeTaken(id: Identifier): LanceError {
  const name = joinIdentifier(id);
  return new LanceError(
    "InvalidTableState",
    `the upstream catalog has given '${name}' a place that has the data of another table; register that data, or take another name`,
  );
}
