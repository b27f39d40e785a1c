import { create } from "@bufbuild/protobuf";
import {
  CreateTableMode,
  type CreateTableRequest,
  type CreateTableResponse,
  CreateTableResponseSchema,
  InsertIntoTableResponseSchema,
  InsertMode,
} from "../../../gen/lance/namespace/v1/data_pb.ts";
import { isLanceError, LanceError } from "../../../namespace/errors.ts";
import type { Identifier } from "../../../namespace/identifier.ts";
import type { LanceNamespace } from "../../../namespace/port.ts";
import { sameProperties } from "../catalog/row.ts";
import type { DirContext } from "./context.ts";
import { createNew } from "./create-new.ts";
import { writeFirst } from "./first-version.ts";
import { insertRows } from "./insert.ts";
import {
  checkNewIdentifier,
  type FoundTable,
  findTable,
  objectIdOf,
  requireParent,
  requireTable,
  tableExists,
} from "./lookup.ts";
import type { MultipartWrites } from "./multipart.ts";
import { type ReceivedRows, receiveRows } from "./received-rows.ts";

/** How often a creation looks again when the table comes or goes meanwhile. */
const MAX_LOOKS = 3;

/** The operations that write rows. */
export function createWriteOperations(
  context: DirContext,
  writes: MultipartWrites,
): Pick<LanceNamespace, "createTable" | "insertIntoTable"> {
  const { catalog, layout } = context;

  async function setProperties(id: Identifier, table: FoundTable, properties: Record<string, string>) {
    if (table.listed && sameProperties(table.properties, properties)) return;
    await catalog.mutate((draft) => {
      requireParent(draft, id);
      if (table.listed && draft.get(objectIdOf(id))?.location !== table.location) {
        throw new LanceError(
          "ConcurrentModification",
          "the table was dropped or renamed while it was written",
        );
      }
      draft.put({ objectId: objectIdOf(id), objectType: "table", location: table.location, properties });
    });
  }

  /** Creates a table of rows, or gives one that is there its data. */
  async function createFrom(
    { mode, properties }: CreateTableRequest,
    rows: ReceivedRows,
    id: Identifier,
  ): Promise<CreateTableResponse> {
    for (let look = 1; ; look++) {
      const state = await catalog.read();
      requireParent(state, id);
      const table = await findTable(context, state, id);
      try {
        if (table === undefined) {
          const { path, version } = await createNew(context, id, rows, properties);
          return create(CreateTableResponseSchema, { location: path, version: BigInt(version), properties });
        }
        const written = await layout.hasData(table.location);
        if (written && mode === CreateTableMode.EXIST_OK) {
          return create(CreateTableResponseSchema, {
            location: table.path,
            properties: { ...table.properties },
          });
        }
        if (written && mode !== CreateTableMode.OVERWRITE) throw tableExists(id);
        await layout.checkNoEscape(table.location);
        const version = written
          ? await rows.replace(table)
          : await writeFirst(context, table, () => rows.create(table));
        const kept = written || Object.keys(properties).length > 0 ? properties : { ...table.properties };
        await setProperties(id, table, kept);
        return create(CreateTableResponseSchema, {
          location: table.path,
          version: BigInt(version),
          properties: kept,
        });
      } catch (error) {
        const raced = isLanceError(error, "TableAlreadyExists");
        const settles = mode === CreateTableMode.EXIST_OK || mode === CreateTableMode.OVERWRITE;
        if (raced && settles && table === undefined && !rows.isRepeatable) {
          throw new LanceError(
            "ConcurrentModification",
            "another caller made the table meanwhile; try again",
          );
        }
        if (raced && settles && look < MAX_LOOKS) continue;
        throw raced ? tableExists(id) : error;
      }
    }
  }

  return {
    async createTable(request, data, call) {
      const { id } = call;
      checkNewIdentifier(id);
      const table = await findTable(context, await catalog.read(), id);
      return receiveRows(context, data, call, { table, overwrite: true }, (rows) =>
        createFrom(request, rows, id),
      );
    },
    async insertIntoTable({ branch, mode, uploadId, uploadPartId }, data, call) {
      const table = await requireTable(context, call.id);
      const overwrite = mode === InsertMode.OVERWRITE;
      if (uploadId !== undefined) {
        const write = { id: uploadId, table, branch };
        await writes.stage({ write, name: uploadPartId ?? "", overwrite }, data, call);
        return create(InsertIntoTableResponseSchema);
      }
      const { rows, version } = await insertRows(context, { table, branch, overwrite }, data, call);
      return create(InsertIntoTableResponseSchema, { numInsertedRows: rows, version });
    },
  };
}
