import type { Identifier } from "../../../../../namespace/identifier.ts";
import type { ChangeContext } from "../../../batch/change-context.ts";
import { ownerOf, updateMark } from "../../../catalog/table-marks.ts";
import type { FoundTable, TableSource } from "../../../data/table-source.ts";
import { findTable, listedTable } from "../find-table.ts";
import { objectIdOf } from "../naming/object-names.ts";
import { createCatalogProperties } from "./catalog-properties.ts";
import { confirmWritten } from "./confirm-written.ts";
import { duringNotedWork } from "./noted-work.ts";

/** Creates the source of the tables that the manifest of a directory lists. */
export function createCatalogTables(context: ChangeContext): TableSource {
  const { catalog, layout, store } = context;
  function lastFound(id: Identifier): FoundTable | undefined {
    const row = catalog.known().get(objectIdOf(id));
    return row && listedTable(layout, id, row);
  }
  return {
    find: async (_call, id) => findTable(context, await catalog.read(), id),
    // On a disk, a check takes less time than the opening would.
    ...(store.files === undefined && { lastFound }),
    isOwned: async ({ location }) => (await ownerOf(context, location)) !== undefined,
    hideRemains: ({ location }) => updateMark(context, location),
    confirmWritten: ({ location }) => confirmWritten(context, location),
    duringWork: (place, work) => duringNotedWork(context, place, work),
    dataState: ({ location }) => layout.dataState(location),
    checkNoEscape: ({ location }) => layout.checkNoEscape(location),
    stagingBaseOf: () => layout.baseKey,
    properties: createCatalogProperties(context),
  };
}
