import { create } from "@bufbuild/protobuf";
import {
  type DeregisterTableResponse,
  DeregisterTableResponseSchema,
  DropTableResponseSchema,
} from "../../../../gen/lance/namespace/v1/table_pb.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import type { Identifier } from "../../../../namespace/identifier.ts";
import type { LanceNamespace } from "../../../../namespace/lance-namespace.ts";
import { type Steps, stepsOf } from "../../../../namespace/pace.ts";
import type { ChangeContext } from "../../batch/change-context.ts";
import { refuseWhileRemoved } from "../../batch/journal.ts";
import { resolveAbandoned } from "../../batch/resolve.ts";
import { runBatch } from "../../batch/run.ts";
import type { CatalogContext } from "../../catalog/catalog-context.ts";
import type { Mutation } from "../../catalog/decide.ts";
import type { Draft } from "../../catalog/draft.ts";
import { unlistedAmong } from "../../catalog/unlisted.ts";
import { decisiveRequest } from "../../format/decisive-request.ts";
import { type FoundTable, objectIdOf, requireTable, tableNotFound } from "./lookup.ts";

/** The operations that drop and deregister tables. */
export function createDropOperations(
  context: ChangeContext,
): Pick<LanceNamespace, "dropTable" | "deregisterTable"> {
  const { journal, layout, engine, store } = context;

  return {
    async dropTable(_request, { id, signal }) {
      const table = await requireTable(context, id);
      const dropped = table.listed
        ? await mutateAndRemove(context, (draft) => takeRow(context, draft, id), signal)
        : await dropUnlisted(context, id, table, signal);
      return create(DropTableResponseSchema, {
        id: [...id],
        location: dropped.path,
        properties: { ...dropped.properties },
      });
    },
    async deregisterTable(_request, { id, signal }) {
      await resolveAbandoned(context);
      const table = await requireTable(context, id);
      // Otherwise the other change would take what this one puts aside for its own.
      await refuseWhileRemoved(journal, table.location);
      const take = (draft: Draft) => {
        takeRow(context, draft, id);
      };
      if (table.listed) await runBatch(context, { changes: [take], departing: "keep" }, signal);
      else await decisiveRequest(store, () => layout.setDeregistered(table.location, true));
      engine.forget(table.path);
      return deregisteredTable(id, table);
    },
  };
}

/**
 * Drops a table that has no row. It gets one first, because only rows can tell which of several callers drops it, and
 * keep its location from others until the directory is gone.
 *
 * @throws LanceError TableNotFound, when another caller dropped it first; ConcurrentModification
 */
async function dropUnlisted(
  context: ChangeContext,
  id: Identifier,
  table: FoundTable,
  signal: AbortSignal,
): Promise<FoundTable> {
  const { catalog } = context;
  await catalog.mutate((draft) => giveRow(draft, id, table));
  const take = (draft: Draft) => takeRow(context, draft, id);
  const [isThere] = await unlistedAmong(context, [table.location]);
  if (isThere !== undefined) return mutateAndRemove(context, take, signal);
  await catalog.mutate(take);
  throw tableNotFound(id);
}

/** Adds the row of a table that has none, as a mutation of the catalog. @throws LanceError ConcurrentModification */
function giveRow(draft: Draft, id: Identifier, { location, properties }: FoundTable): void {
  const objectId = objectIdOf(id);
  if (draft.get(objectId) !== undefined || draft.ownerOf(location) !== undefined) {
    throw new LanceError("ConcurrentModification", "the table got its row meanwhile; try again");
  }
  draft.put({ objectId, objectType: "table", location, properties });
}

/**
 * Takes tables out of the catalog and then removes their directories, also after a crash between the two: a note in the
 * journal precedes both (docs/adr/0019).
 */
export async function mutateAndRemove<T>(
  context: ChangeContext,
  change: Mutation<T>,
  signal: AbortSignal,
): Promise<T> {
  let answer: T | undefined;
  function* answered(draft: Draft): Steps<void> {
    answer = yield* stepsOf(change(draft));
  }
  await runBatch(context, { changes: [answered], departing: "remove" }, signal);
  return answer as T;
}

/** Returns the answer to a deregistration. */
export function deregisteredTable(id: Identifier, table: FoundTable): DeregisterTableResponse {
  return create(DeregisterTableResponseSchema, {
    id: [...id],
    location: table.path,
    properties: { ...table.properties },
  });
}

/** Removes the row of a table, as a mutation of the catalog. @throws LanceError TableNotFound */
export function takeRow(
  { layout }: Pick<CatalogContext, "layout">,
  draft: Draft,
  id: Identifier,
): FoundTable {
  const row = draft.get(objectIdOf(id));
  if (row?.objectType !== "table" || row.location === undefined) throw tableNotFound(id);
  draft.delete(row.objectId);
  const { location, properties } = row;
  return { location, path: layout.pathOf(location), properties, listed: true };
}
