import { create } from "@bufbuild/protobuf";
import {
  type DeregisterTableResponse,
  DeregisterTableResponseSchema,
  DropTableResponseSchema,
} from "../../../gen/lance/namespace/v1/table_pb.ts";
import type { Identifier } from "../../../namespace/identifier.ts";
import type { LanceNamespace } from "../../../namespace/port.ts";
import { isRootDirectory } from "../catalog/layout.ts";
import type { Draft } from "../catalog/state.ts";
import type { DirContext } from "./context.ts";
import { type FoundTable, objectIdOf, requireTable, tableNotFound } from "./lookup.ts";

/** The operations that take tables away. */
export function createDropOperations(
  context: DirContext,
): Pick<LanceNamespace, "dropTable" | "deregisterTable"> {
  const { catalog, layout, engine } = context;

  /** Takes the row away, if there is one, and returns the table that it was about. */
  async function takeOut(id: Identifier): Promise<FoundTable> {
    const table = await requireTable(context, id);
    return table.listed ? catalog.mutate((draft) => takeRow(context, draft, id)) : table;
  }

  return {
    async dropTable(_request, { id }) {
      const table = await takeOut(id);
      await removeTables(context, [table.location]);
      return create(DropTableResponseSchema, {
        id: [...id],
        location: table.path,
        properties: { ...table.properties },
      });
    },
    async deregisterTable(_request, { id }) {
      const table = await takeOut(id);
      engine.forget(table.path);
      // Without the mark, the directory would go on being a table of the root.
      if (isRootDirectory(table.location)) await layout.setDeregistered(table.location, true);
      return deregisteredTable(id, table);
    },
  };
}

/** The answer to a deregistration. */
export function deregisteredTable(id: Identifier, table: FoundTable): DeregisterTableResponse {
  return create(DeregisterTableResponseSchema, {
    id: [...id],
    location: table.path,
    properties: { ...table.properties },
  });
}

/** Takes the row of a table away, as a mutation of the catalog. @throws LanceError TableNotFound */
export function takeRow({ layout }: DirContext, draft: Draft, id: Identifier): FoundTable {
  const row = draft.get(objectIdOf(id));
  if (row?.objectType !== "table" || row.location === undefined) throw tableNotFound(id);
  draft.delete(row.objectId);
  const { location, properties } = row;
  return { location, path: layout.pathOf(location), properties, listed: true };
}

/**
 * Removes the directories of tables that the catalog no longer has.
 *
 * The tables are gone already, so a directory that cannot be removed is only logged.
 */
export async function removeTables(context: DirContext, locations: readonly string[]): Promise<void> {
  const { layout, engine, log } = context;
  for (const location of locations) {
    try {
      engine.forget(layout.pathOf(location));
      await layout.remove(location);
    } catch (error) {
      log.warn({ err: error, location }, "the directory of a dropped table is left behind");
    }
  }
}
