import { create } from "@bufbuild/protobuf";
import {
  type DeregisterTableResponse,
  DeregisterTableResponseSchema,
  DropTableResponseSchema,
} from "../../../../gen/lance/namespace/v1/table_pb.ts";
import { type Identifier, joinIdentifier } from "../../../../namespace/identifier.ts";
import type { LanceNamespace } from "../../../../namespace/lance-namespace.ts";
import { type Steps, stepsOf } from "../../../../runtime/pace.ts";
import { type ChangeContext, refuseWhileRemoved } from "../../batch/journal.ts";
import { resolveAbandoned } from "../../batch/resolve.ts";
import { runBatch } from "../../batch/run.ts";
import { isRootDirectory } from "../../catalog/base/location-names.ts";
import type { CatalogContext } from "../../catalog/catalog-context.ts";
import type { Mutation } from "../../catalog/commits/decide.ts";
import type { Draft } from "../../catalog/state/draft.ts";
import type { FoundTable } from "../../data/table-source.ts";
import type { CatalogDataContext, EngineContext } from "../context.ts";
import { requireRow } from "./find-table.ts";
import { objectIdOf, tableNotFound } from "./naming/object-names.ts";

/** The operations that drop and deregister tables. */
export function createDropOperations(
  context: CatalogDataContext & Pick<EngineContext, "cluster">,
): Pick<LanceNamespace, "dropTable" | "deregisterTable"> {
  const { journal, engine, cluster } = context;

  return {
    async dropTable(_request, { id, signal }) {
      const { location } = await requireRow(context, id);
      // Before the drop: a table that takes the place of this one in the root must not have the functions of its columns.
      if (isRootDirectory(location)) await cluster?.functions?.forgetTable(location);
      const dropped = await withoutChanges(context, { id, location }, () =>
        mutateAndRemove(context, (draft) => takeRow(context, draft, id), signal),
      );
      return create(DropTableResponseSchema, {
        id: [...id],
        location: dropped.path,
        properties: { ...dropped.properties },
      });
    },
    async deregisterTable(_request, { id, signal }) {
      await resolveAbandoned(context);
      const table = await requireRow(context, id);
      // Otherwise the other change would take what this one puts aside for its own.
      await refuseWhileRemoved(journal, table.location);
      const take = (draft: Draft) => {
        takeRow(context, draft, id);
      };
      await runBatch(context, { changes: [take], departing: "keep" }, signal);
      engine.forget(table.path);
      return deregisteredTable(id, table);
    },
  };
}

/** Longest wait of a drop for the changes of its table that run, in milliseconds. */
const DRAIN_MS = 5_000;

/**
 * Drops a table while none of its changes runs. In the root, the engine would make the directory again, which shows as the dropped table.
 * Long work is not waited for, because its note keeps the directory.
 */
async function withoutChanges<T>(
  { histories, work }: Pick<ChangeContext, "histories" | "work">,
  { id, location }: Pick<FoundTable, "id" | "location">,
  drop: () => Promise<T>,
): Promise<T> {
  if (!isRootDirectory(location)) return drop();
  const open = await histories.close(joinIdentifier(id), (await work.isActive(location)) ? 0 : DRAIN_MS);
  try {
    return await drop();
  } finally {
    open();
  }
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
  return { id, location, path: layout.pathOf(location), properties, listed: true };
}
