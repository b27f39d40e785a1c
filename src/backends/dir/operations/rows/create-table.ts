import { create } from "@bufbuild/protobuf";
import { checkSameColumns } from "../../../../arrow/upload/compatible.ts";
import {
  CreateTableMode,
  type CreateTableRequest,
  type CreateTableResponse,
  CreateTableResponseSchema,
} from "../../../../gen/lance/namespace/v1/data_pb.ts";
import type { Call } from "../../../../namespace/call/call.ts";
import { isLanceError, LanceError } from "../../../../namespace/errors.ts";
import type { Identifier } from "../../../../namespace/identifier.ts";
import type { LanceNamespace } from "../../../../namespace/lance-namespace.ts";
import { runBatch } from "../../batch/run.ts";
import type { Draft } from "../../catalog/state/draft.ts";
import { sameProperties } from "../../catalog/state/row.ts";
import type { CatalogState } from "../../catalog/state/state.ts";
import type { DataContext } from "../../data/data-context.ts";
import type { FoundTable } from "../../data/table-source.ts";
import { engineCall } from "../../engine/failures/errors.ts";
import { afterChange } from "../../format/changes/after-change.ts";
import type { CatalogDataContext, UploadContext } from "../context.ts";
import { checkTableProperties } from "../properties.ts";
import { findTable, requireUnchanged } from "../tables/find-table.ts";
import { checkNewIdentifier, objectIdOf, requireParent, tableExists } from "../tables/naming/object-names.ts";
import { withData } from "../tables/open-data.ts";
import { createNew } from "./create-new.ts";
import { writeFirst } from "./first-version.ts";
import { type ReceivedRows, receiveRows, takesNext } from "./received-rows.ts";

/** Maximum number of attempts of a creation when the table comes or goes meanwhile. */
const MAX_LOOKS = 3;

/** The operation that creates a table from rows. */
export function createCreateOperations(context: CatalogDataContext & UploadContext): Pick<
  LanceNamespace,
  "createTable"
> & {
  /** Creates a table as `createTable` does, also with properties that callers must not give it. */
  readonly createOwnTable: LanceNamespace["createTable"];
} {
  const { catalog, layout } = context;

  /** Returns the mutation that adds the row of a table; undefined when the row exists. */
  function rowChange(id: Identifier, table: FoundTable, properties: Record<string, string>) {
    if (table.listed && sameProperties(table.properties, properties)) return undefined;
    return (draft: Draft): void => {
      requireParent(draft, id);
      requireUnchanged(draft, id, table);
      draft.put({ objectId: objectIdOf(id), objectType: "table", location: table.location, properties });
    };
  }

  /**
   * Gives an existing table its data and its row, both or none.
   *
   * @param written whether the table has data, which is replaced
   */
  async function writeWithRow(
    table: FoundTable,
    rows: ReceivedRows,
    written: boolean,
    row: (draft: Draft) => void,
    { id, signal }: Pick<Call, "id" | "signal">,
  ): Promise<number> {
    if (written && !(await takesNext(context, table))) {
      const version = await rows.replace(table);
      await afterChange(() => catalog.mutate(row), "ConcurrentModification");
      return version;
    }
    for (let tries = 1; ; tries++) {
      try {
        return await rows.asNext(table, async (version) => {
          if (!written && version.version > 1n) throw tableExists(id);
          await runBatch(context, { changes: [row], departing: "keep", versions: [version] }, signal);
          return Number(version.version);
        });
      } catch (error) {
        // Another writer has made a version meanwhile.
        if (!isLanceError(error, "ConcurrentModification") || tries === MAX_LOOKS) throw error;
      }
    }
  }

  /**
   * Creates a table from rows, or gives an existing one its data.
   *
   * @param seen the state without the table when the call began; undefined if the table existed
   */
  async function createFrom(
    { mode, properties }: CreateTableRequest,
    rows: ReceivedRows,
    { id, signal }: Pick<Call, "id" | "signal">,
    seen: CatalogState | undefined,
  ): Promise<CreateTableResponse> {
    for (let look = 1; ; look++) {
      // The commit notices a table that was made meanwhile; only rows that can be written again may wait for that.
      const isNew = look === 1 && seen !== undefined && rows.isRepeatable;
      const state = isNew ? seen : await catalog.read();
      requireParent(state, id);
      const table = isNew ? undefined : await findTable(context, state, id);
      try {
        if (table === undefined) {
          const { path, version } = await createNew(context, id, rows, properties);
          return create(CreateTableResponseSchema, { location: path, version: BigInt(version), properties });
        }
        const written = await layout.hasData(table.location);
        if (written && mode === CreateTableMode.EXIST_OK) {
          return await acceptExisting(context, table, rows);
        }
        if (written && mode !== CreateTableMode.OVERWRITE) throw tableExists(id);
        await layout.checkNoEscape(table.location);
        const kept = written || Object.keys(properties).length > 0 ? properties : { ...table.properties };
        const row = rowChange(id, table, kept);
        const version = await (row !== undefined
          ? writeWithRow(table, rows, written, row, { id, signal })
          : written
            ? rows.replace(table)
            : writeFirst(context, table, () => rows.create(table)));
        return create(CreateTableResponseSchema, {
          location: table.path,
          version: BigInt(version),
          properties: kept,
        });
      } catch (error) {
        const raced = isLanceError(error, "TableAlreadyExists");
        const acceptsExisting = mode === CreateTableMode.EXIST_OK || mode === CreateTableMode.OVERWRITE;
        if (raced && acceptsExisting && table === undefined && !rows.isRepeatable) {
          throw new LanceError(
            "ConcurrentModification",
            "another caller made the table meanwhile; try again",
          );
        }
        if (raced && acceptsExisting && look < MAX_LOOKS) continue;
        throw raced ? tableExists(id) : error;
      }
    }
  }

  const createOwnTable: LanceNamespace["createTable"] = async (request, data, call) => {
    const { id } = call;
    await checkNewIdentifier(context, id);
    const state = await catalog.read();
    const table = await findTable(context, state, id);
    const seen = table === undefined ? state : undefined;
    const place = { storage: context, table };
    return receiveRows(context, data, call, { place, overwrite: true }, (rows) =>
      createFrom(request, rows, call, seen),
    );
  };

  return {
    createOwnTable,
    async createTable(request, data, call) {
      checkTableProperties(context, call.id, request.properties);
      return createOwnTable(request, data, call);
    },
  };
}

/**
 * Returns the answer to a creation that accepts an existing table.
 *
 * @throws LanceError TableSchemaValidationError for rows of other columns
 */
export async function acceptExisting(
  context: DataContext,
  table: FoundTable,
  rows: Pick<ReceivedRows, "schema">,
): Promise<CreateTableResponse> {
  const schema = await withData(context, table, {}, (_, { schema }) => engineCall(schema));
  checkSameColumns(rows.schema.fields, schema.fields);
  return create(CreateTableResponseSchema, { location: table.path, properties: { ...table.properties } });
}
