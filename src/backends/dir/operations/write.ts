import { create } from "@bufbuild/protobuf";
import { checkCompatible } from "../../../arrow/compatible.ts";
import { decodeSchema } from "../../../arrow/schema.ts";
import { splitIpcFile } from "../../../arrow/stream.ts";
import { collectUpload, type Upload } from "../../../arrow/upload.ts";
import {
  CreateTableMode,
  CreateTableResponseSchema,
  InsertIntoTableResponseSchema,
  InsertMode,
} from "../../../gen/lance/namespace/v1/data_pb.ts";
import type { Call } from "../../../namespace/call.ts";
import { isLanceError, LanceError } from "../../../namespace/errors.ts";
import type { Identifier } from "../../../namespace/identifier.ts";
import type { LanceNamespace } from "../../../namespace/port.ts";
import { sameProperties } from "../catalog/row.ts";
import { engineCall } from "../engine/errors.ts";
import type { DirContext } from "./context.ts";
import { claimTable } from "./declare.ts";
import { removeTables } from "./drop.ts";
import {
  checkNewIdentifier,
  type FoundTable,
  findTable,
  isMain,
  objectIdOf,
  type Reference,
  requireParent,
  requireTable,
  tableExists,
  withData,
} from "./lookup.ts";

/** How often a creation looks again when the table comes or goes meanwhile. */
const MAX_LOOKS = 3;

/** The operations that write rows. */
export function createWriteOperations(
  context: DirContext,
): Pick<LanceNamespace, "createTable" | "insertIntoTable"> {
  const { catalog, layout, engine, maxUploadBytes } = context;

  function collect(data: AsyncIterable<Uint8Array>, call: Call): Promise<Upload> {
    return collectUpload(data, { maxBytes: maxUploadBytes, signal: call.signal });
  }

  /** Makes a table that nobody has: first its row, which only one of several callers gets, then its data. */
  async function createNew(id: Identifier, file: Buffer, properties: Record<string, string>) {
    const location = await claimTable(context, id, properties);
    const path = layout.pathOf(location);
    try {
      await layout.setDeregistered(location, false);
      const version = await engine.create(path, file, "create");
      if ((await catalog.read()).get(objectIdOf(id))?.location === location) return { path, version };
      throw new LanceError("ConcurrentModification", "the table was dropped while it was written");
    } catch (error) {
      // Whoever took the declared name over in between has written a table that stays.
      if (!isLanceError(error, "TableAlreadyExists")) await giveUp(id, location);
      throw error;
    }
  }
  async function giveUp(id: Identifier, location: string): Promise<void> {
    await catalog.mutate((draft) => {
      if (draft.get(objectIdOf(id))?.location === location) draft.delete(objectIdOf(id));
    });
    await removeTables(context, [location]);
  }
  async function setProperties(id: Identifier, table: FoundTable, properties: Record<string, string>) {
    if (table.listed && sameProperties(table.properties, properties)) return;
    await catalog.mutate((draft) => {
      requireParent(draft, id);
      draft.put({ objectId: objectIdOf(id), objectType: "table", location: table.location, properties });
    });
  }

  return {
    async createTable({ mode, properties }, data, call) {
      const { id } = call;
      checkNewIdentifier(id);
      const upload = await collect(data, call);
      for (let look = 1; ; look++) {
        const state = await catalog.read();
        requireParent(state, id);
        const table = await findTable(context, state, id);
        try {
          if (table === undefined) {
            const { path, version } = await createNew(id, upload.file, properties);
            return create(CreateTableResponseSchema, {
              location: path,
              version: BigInt(version),
              properties,
            });
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
          const version = await engine.create(table.path, upload.file, written ? "overwrite" : "create");
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
          if (raced && settles && look < MAX_LOOKS) continue;
          throw raced ? tableExists(id) : error;
        }
      }
    },
    async insertIntoTable({ branch, mode }, data, call) {
      const table = await requireTable(context, call.id);
      const upload = await collect(data, call);
      const first = isMain(branch) ? await firstVersion(table, upload.file) : undefined;
      const version = first ?? (await add(table, { branch }, upload, mode === InsertMode.OVERWRITE));
      return create(InsertIntoTableResponseSchema, {
        numInsertedRows: BigInt(upload.rows),
        version: BigInt(version),
      });
    },
  };

  /** Adds rows to what a table has, or puts them in its place. Appending no rows makes no version. */
  function add(table: FoundTable, reference: Reference, upload: Upload, overwrite: boolean): Promise<number> {
    if (overwrite && isMain(reference.branch)) return engine.create(table.path, upload.file, "overwrite");
    return withData(context, table, reference, async (native) => {
      if (overwrite) return (await engineCall(() => native.add(upload.file, "overwrite"))).version;
      const current = await engineCall(() => native.schema());
      checkCompatible(upload.schema, decodeSchema(splitIpcFile(current).schemaMetadata));
      if (upload.rows === 0) return engineCall(() => native.version());
      return (await engineCall(() => native.add(upload.file, "append"))).version;
    });
  }

  /** Gives a declared table its data; undefined when it has some. */
  async function firstVersion(table: FoundTable, file: Buffer): Promise<number | undefined> {
    if (await layout.hasData(table.location)) return undefined;
    try {
      await layout.checkNoEscape(table.location);
      return await engine.create(table.path, file, "create");
    } catch (error) {
      if (isLanceError(error, "TableAlreadyExists")) return undefined;
      throw error;
    }
  }
}
