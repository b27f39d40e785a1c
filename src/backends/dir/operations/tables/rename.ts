import { create } from "@bufbuild/protobuf";
import { RenameTableResponseSchema } from "../../../../gen/lance/namespace/v1/table_pb.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import { checkIdentifier, type Identifier } from "../../../../namespace/identifier.ts";
import type { LanceNamespace } from "../../../../namespace/lance-namespace.ts";
import { resolveAbandoned } from "../../batch/resolve.ts";
import { runBatch } from "../../batch/run.ts";
import { isRootDirectory } from "../../catalog/base/location-names.ts";
import type { Draft } from "../../catalog/state/draft.ts";
import type { CatalogDataContext } from "../context.ts";
import { requireRow } from "./find-table.ts";
import {
  checkNewIdentifier,
  isUnlistedTable,
  objectIdOf,
  requireParent,
  tableExists,
  tableNotFound,
} from "./naming/object-names.ts";

/**
 * Renames tables. The row of the catalog changes and the directory stays where it is (docs/adr/0009), so open tables
 * remain usable.
 */
export function createRenameOperations(context: CatalogDataContext): Pick<LanceNamespace, "renameTable"> {
  const { catalog } = context;
  return {
    async renameTable({ newTableName, newNamespaceId }, { id, signal }) {
      if (newTableName === "") throw new LanceError("InvalidInput", "new_table_name must not be empty");
      const target = [...(newNamespaceId.length === 0 ? id.slice(0, -1) : newNamespaceId), newTableName];
      checkIdentifier(target);
      await checkNewIdentifier(context, target, id.at(-1));
      const { location } = await requireRow(context, id);
      if (await isUnlistedTable(context, await catalog.read(), target)) throw tableExists(target);

      const rename = (draft: Draft) => renameRow(draft, id, target);
      if (isRootDirectory(location)) {
        await resolveAbandoned(context);
        await runBatch(context, { changes: [rename], departing: "keep", locations: [location] }, signal);
      } else {
        await catalog.mutate(rename);
      }
      return create(RenameTableResponseSchema);
    },
  };
}

/**
 * Gives a table another name, as a mutation of the catalog.
 *
 * @throws LanceError TableNotFound, NamespaceNotFound, TableAlreadyExists
 */
function renameRow(draft: Draft, id: Identifier, target: Identifier): void {
  const row = draft.get(objectIdOf(id));
  if (row?.objectType !== "table" || row.location === undefined) throw tableNotFound(id);
  requireParent(draft, target);
  if (draft.get(objectIdOf(target)) !== undefined) throw tableExists(target);
  draft.delete(row.objectId);
  const { location, properties } = row;
  draft.put({ objectId: objectIdOf(target), objectType: "table", location, properties });
}
