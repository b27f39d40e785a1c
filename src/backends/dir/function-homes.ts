import { LanceError } from "../../namespace/errors.ts";
import { type Identifier, joinIdentifier } from "../../namespace/identifier.ts";
import type { Catalog } from "./catalog/catalog.ts";
import type { TableContext } from "./catalog/catalog-context.ts";
import type { CatalogView } from "./catalog/state/view.ts";
import { type FunctionsKey, openFunctions, type StoredFunctions } from "./jobs/functions/open-functions.ts";
import type { Homes, OnDamaged, Placed } from "./jobs/functions/placed-files.ts";

/**
 * Property of a namespace with functions or secrets. Its value is the home of these, which no other namespace has, also
 * not one of the same name; and after a dot the number of creations, by which a drop sees that there was another one.
 */
export const HOME_PROPERTY = "lance_gateway.functions";

/** The home of functions and secrets of the root, which is never dropped. */
const ROOT_HOME = "";

/** Opens what the catalog of a directory keeps about functions. */
export function openFunctionsOf(
  {
    store,
    layout,
    catalog,
  }: Pick<TableContext, "store"> & {
    readonly layout: Pick<TableContext["layout"], "baseKey">;
    readonly catalog: Pick<Catalog, "read" | "mutate">;
  },
  key: FunctionsKey = {},
): StoredFunctions {
  return openFunctions({ store, base: layout.baseKey, homes: createFunctionHomes(catalog) }, key);
}

/** Returns what warns of damaged files of functions, for work that goes on without them. */
export function warnOfDamaged({ log, store }: Pick<TableContext, "log" | "store">): OnDamaged {
  return (key, error) =>
    log.warn({ err: error, file: store.uriOf(key) }, "skipped a damaged file of functions");
}

/** Creates the homes of the namespaces of a catalog. */
function createFunctionHomes(catalog: Pick<Catalog, "read" | "mutate">): Homes {
  return {
    async read() {
      const state = await catalog.read();
      return (namespace) => homeIn(state, namespace);
    },
    async gone(places) {
      const isGone = (state: CatalogView, { id, home }: Placed) => homeIn(state, id.slice(0, -1)) !== home;
      const state = await catalog.read();
      const found = places.filter((place) => isGone(state, place));
      // Reads may be older than a new namespace.
      return found.length === 0
        ? []
        : catalog.mutate((draft) => found.filter((place) => isGone(draft, place)));
    },
    async enter(namespace) {
      if (namespace.length === 0) return ROOT_HOME;
      const fresh = crypto.randomUUID();
      // Reads may be older than a new namespace; a mutation that changes nothing commits nothing.
      return catalog.mutate((draft) => {
        const row = rowOf(draft, namespace);
        if (row === undefined) throw gone(namespace);
        const present = homeIn(draft, namespace);
        if (present !== undefined) return present;
        draft.put({ ...row, properties: { ...row.properties, [HOME_PROPERTY]: `${fresh}.0` } });
        return fresh;
      });
    },
    async confirm(namespace, home) {
      if (namespace.length === 0) return;
      await catalog.mutate((draft) => {
        const row = rowOf(draft, namespace);
        if (row === undefined || homeIn(draft, namespace) !== home) throw gone(namespace);
        const [, count] = (row.properties[HOME_PROPERTY] ?? "").split(".");
        const value = `${home}.${Number(count) + 1}`;
        draft.put({ ...row, properties: { ...row.properties, [HOME_PROPERTY]: value } });
      });
    },
  };
}

/** Returns the properties of a namespace that answers show: with the home of the functions, they could not be those of another namespace. */
export function shownProperties(properties: Readonly<Record<string, string>> = {}): Record<string, string> {
  const { [HOME_PROPERTY]: _, ...shown } = properties;
  return shown;
}

/** Returns the home in the value of the property. */
export function homeOf(value: string): string {
  return value.split(".")[0] ?? "";
}

function homeIn(state: CatalogView, namespace: Identifier): string | undefined {
  if (namespace.length === 0) return ROOT_HOME;
  const value = rowOf(state, namespace)?.properties[HOME_PROPERTY];
  return value === undefined ? undefined : homeOf(value);
}

function rowOf(state: CatalogView, namespace: Identifier) {
  const row = state.get(joinIdentifier(namespace));
  return row?.objectType === "namespace" ? row : undefined;
}

function gone(namespace: Identifier): LanceError {
  return new LanceError("NamespaceNotFound", `Namespace not found: ${joinIdentifier(namespace)}`);
}
