import { LanceError } from "../../../namespace/errors.ts";
import { type Identifier, isNewName, joinIdentifier } from "../../../namespace/identifier.ts";
import type { Catalog } from "./catalog.ts";

/** Checks of identifiers against the form of a catalog. */
export interface Checks {
  /** Returns the identifier in the catalog of one in the gateway's tree. */
  full(id: Identifier): Identifier;
  /** @throws LanceError InvalidInput for a name that the catalog cannot keep, or would keep as another one */
  names(id: Identifier): void;
  /** @throws LanceError NamespaceNotFound for a depth at which the catalog has no namespaces */
  namespace(id: Identifier): void;
  /** @throws LanceError InvalidInput for a namespace that the catalog cannot create */
  newNamespace(id: Identifier): void;
  /** @throws LanceError TableNotFound for a depth at which the catalog has no tables */
  table(id: Identifier): void;
  /** @throws LanceError InvalidInput for a table that the catalog cannot create */
  newTable(id: Identifier): void;
}

/** Creates the checks for a catalog whose part below a namespace is the gateway's tree. */
export function createChecks(catalog: Catalog, within: Identifier): Checks {
  const full = (id: Identifier) => [...within, ...id];

  function names(id: Identifier): void {
    for (const name of id) {
      const fault = catalog.refuseName?.(name);
      if (fault !== undefined) throw new LanceError("InvalidInput", `name ${JSON.stringify(name)} ${fault}`);
    }
  }

  function newNames(id: Identifier): void {
    names(id);
    const name = id.at(-1) ?? "";
    if (!isNewName(name))
      throw new LanceError("InvalidInput", `${JSON.stringify(name)} is not a name for a new object`);
  }

  /** Returns how many names are missing (negative) or too many (positive) for a range. */
  function excess({ length }: Identifier, [least, most]: readonly [number, number]): number {
    return length < least ? length - least : Math.max(0, length - most);
  }

  const tableNamespace = (id: Identifier) => full(id).slice(0, -1);

  return {
    full,
    names,
    namespace(id) {
      names(id);
      if (full(id).length <= catalog.depths[1]) return;
      throw new LanceError("NamespaceNotFound", `there is no namespace ${shown(id)}: ${levels(catalog)}`);
    },
    newNamespace(id) {
      newNames(id);
      if (excess(full(id), catalog.depths) === 0) return;
      throw new LanceError("InvalidInput", `${shown(id)} cannot be a namespace: ${levels(catalog)}`);
    },
    table(id) {
      names(id);
      if (excess(tableNamespace(id), catalog.tableDepths) === 0 && id.length > 0) return;
      throw new LanceError("TableNotFound", `there is no table ${shown(id)}: ${levels(catalog)}`);
    },
    newTable(id) {
      newNames(id);
      if (excess(tableNamespace(id), catalog.tableDepths) === 0) return;
      throw new LanceError("InvalidInput", `${shown(id)} cannot be a table: ${levels(catalog)}`);
    },
  };
}

/** Returns an identifier for people. */
export function shown(id: Identifier): string {
  return JSON.stringify(joinIdentifier(id));
}

function levels({ name, tableDepths: [least, most] }: Catalog): string {
  const count =
    least === most
      ? `${least}`
      : most === Number.POSITIVE_INFINITY
        ? `at least ${least}`
        : `${least} to ${most}`;
  return `tables of ${name} are in namespaces of ${count} ${count === "1" ? "name" : "names"}`;
}
