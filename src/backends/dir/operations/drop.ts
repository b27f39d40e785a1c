import { create } from "@bufbuild/protobuf";
import {
  type DeregisterTableResponse,
  DeregisterTableResponseSchema,
  DropTableResponseSchema,
} from "../../../gen/lance/namespace/v1/table_pb.ts";
import { LanceError } from "../../../namespace/errors.ts";
import type { Identifier } from "../../../namespace/identifier.ts";
import type { LanceNamespace } from "../../../namespace/port.ts";
import { removeTables } from "../batch/remove-tables.ts";
import { runBatch } from "../batch/run.ts";
import { settleAbandoned } from "../batch/settle.ts";
import { isRootDirectory } from "../catalog/layout.ts";
import type { Draft } from "../catalog/state.ts";
import type { DirContext } from "./context.ts";
import { type FoundTable, objectIdOf, requireTable, tableNotFound } from "./lookup.ts";

/** The operations that take tables away. */
export function createDropOperations(
  context: DirContext,
): Pick<LanceNamespace, "dropTable" | "deregisterTable"> {
  const { catalog, layout, engine } = context;

  return {
    async dropTable(_request, { id, signal }) {
      const table = await requireTable(context, id);
      const dropped = table.listed
        ? await mutateAndRemove(context, [table.location], (draft) => takeRow(context, draft, id), signal)
        : await dropUnlisted(context, id, table);
      return create(DropTableResponseSchema, {
        id: [...id],
        location: dropped.path,
        properties: { ...dropped.properties },
      });
    },
    async deregisterTable(_request, { id, signal }) {
      // What a drop that was cut off left to remove must not be taken for data that is put aside here.
      await settleAbandoned(context);
      const table = await requireTable(context, id);
      const { location, listed } = table;
      const take = (draft: Draft) => {
        takeRow(context, draft, id);
      };
      if (!listed) await layout.setDeregistered(location, true);
      else if (!isRootDirectory(location)) await catalog.mutate(take);
      else {
        const departures = [{ location, remove: false }];
        await runBatch(
          context,
          { versions: [], changes: [take], deletions: [], locations: [], departures },
          signal,
        );
      }
      engine.forget(table.path);
      return deregisteredTable(id, table);
    },
  };
}

/** Removes a table that only its directory tells of. @throws LanceError TableNotFound, when another caller did */
async function dropUnlisted(context: DirContext, id: Identifier, table: FoundTable): Promise<FoundTable> {
  const { engine, layout, catalog } = context;
  // Unlike a read, a mutation is decided on the newest rows in any case.
  const isListed = await catalog.mutate((draft) => draft.ownerOf(table.location) !== undefined);
  if (isListed) throw new LanceError("ConcurrentModification", "the table got its row meanwhile; try again");
  engine.forget(table.path);
  if (!(await layout.remove(table.location))) throw tableNotFound(id);
  return table;
}

/**
 * Takes tables out of the catalog and then removes their directories, also after a crash between the two: what is
 * about to happen is noted first (docs/adr/0019).
 *
 * @param expected the locations that will lose their rows, as far as they are known
 * @param change returns the location of a table that lost its row, or those of several
 */
export async function mutateAndRemove<
  T extends { readonly location: string } | { readonly removed: string[] },
>(
  context: DirContext,
  expected: readonly string[],
  change: (draft: Draft) => T,
  signal: AbortSignal,
): Promise<T> {
  let answer: T | undefined;
  const changes = [
    (draft: Draft) => {
      answer = change(draft);
    },
  ];
  if (expected.length === 0) answer = await context.catalog.mutate(change);
  else {
    const departures = expected.map((location) => ({ location, remove: true }));
    await runBatch(context, { versions: [], changes, deletions: [], locations: [], departures }, signal);
  }
  const result = answer as T;
  const locations = "removed" in result ? result.removed : [result.location];
  // Those that came between the look and the commit.
  await removeTables(
    context,
    locations.filter((location) => !expected.includes(location)),
  );
  return result;
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
