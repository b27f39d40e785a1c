import { inSlices } from "../../../../../runtime/pace.ts";
import type { CatalogContext } from "../../../catalog/catalog-context.ts";
import { checkGrowth } from "../../../catalog/state/properties-size.ts";
import { type Row, sameProperties } from "../../../catalog/state/row.ts";
import type { FoundTable, TableProperties } from "../../../data/table-source.ts";
import { checkTableProperties } from "../../properties.ts";
import { findTable } from "../find-table.ts";
import { objectIdOf, requireParent } from "../naming/object-names.ts";
import { requireUnchanged } from "../require-row.ts";

/** Creates the properties of a directory's tables, which are in their rows. */
export function createCatalogProperties(context: CatalogContext): TableProperties {
  const { catalog } = context;
  return {
    maxBytes: catalog.limits.objectBytes,
    async checkAdded({ id }, added) {
      const state = await catalog.read();
      const table = await findTable(context, state, id);
      checkTableProperties(context, id, added, table?.properties);
      if (table === undefined) return;
      const row = withProperties(table, { ...table.properties, ...added });
      const changes = new Map([[row.objectId, row]]);
      await inSlices(checkGrowth(state, changes, state.propertiesBytes, catalog.limits));
    },
    async add(table, added) {
      const properties = { ...table.properties, ...added };
      if (sameProperties(table.properties, properties)) return properties;
      return catalog.mutate((draft) => {
        requireUnchanged(draft, table.id, table);
        requireParent(draft, table.id);
        const current = { ...(draft.get(objectIdOf(table.id)) ?? table).properties, ...added };
        draft.put(withProperties(table, current));
        return current;
      });
    },
  };
}

function withProperties({ id, location }: FoundTable, properties: Record<string, string>): Row {
  return { objectId: objectIdOf(id), objectType: "table", location, properties };
}
