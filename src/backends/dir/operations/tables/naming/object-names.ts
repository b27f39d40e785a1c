import { LanceError } from "../../../../../namespace/errors.ts";
import {
  checkNewName,
  type Identifier,
  isSpecifiedName,
  joinIdentifier,
  unspecifiedName,
} from "../../../../../namespace/identifier.ts";
import { rootLocation } from "../../../catalog/base/location-names.ts";
import type { CatalogContext } from "../../../catalog/catalog-context.ts";
import type { CatalogView } from "../../../catalog/state/view.ts";

/** Returns the form of an identifier in the manifest; the root is the empty string. */
export function objectIdOf(id: Identifier): string {
  return id.length === 0 ? "" : joinIdentifier(id);
}

/**
 * Refuses the root, and names that a new object must not have. The object keeps its name if it exists, or moves under it.
 *
 * @param moved the name of the object before the change. Default: it is new, if it does not exist
 * @throws LanceError InvalidInput
 */
export async function checkNewIdentifier(
  context: CatalogContext,
  id: Identifier,
  moved?: string,
): Promise<void> {
  const name = id.at(-1);
  if (name === undefined) throw new LanceError("InvalidInput", "the identifier of a table must not be empty");
  for (const each of id) checkNewName(each);
  if (context.names === "unicode" || isSpecifiedName(name) || name === moved) return;
  const state = await context.catalog.read();
  if (state.get(objectIdOf(id)) !== undefined) return;
  if (await isUnlistedTable(context, state, id)) return;
  throw unspecifiedName(name);
}

export function tableNotFound(id: Identifier): LanceError {
  return new LanceError("TableNotFound", `Table '${joinIdentifier(id)}' was not found`);
}

export function tableExists(id: Identifier): LanceError {
  return new LanceError("TableAlreadyExists", `Table '${joinIdentifier(id)}' already exists`);
}

export function namespaceNotFound(id: Identifier): LanceError {
  return new LanceError("NamespaceNotFound", `Namespace not found: ${joinIdentifier(id)}`);
}

/** Whether a namespace exists; the root always does. */
export function isNamespace(state: CatalogView, id: Identifier): boolean {
  return id.length === 0 || state.get(objectIdOf(id))?.objectType === "namespace";
}

/**
 * Checks that a namespace can be listed: it exists, or has children although another writer left its row out. The decision about a cascade
 * reads several lists, which therefore have to agree.
 *
 * @throws LanceError NamespaceNotFound
 */
export function requireListed(state: CatalogView, id: Identifier): void {
  if (!isNamespace(state, id) && !state.hasChildren(objectIdOf(id))) throw namespaceNotFound(id);
}

/**
 * Checks that the parent namespace of a new object exists.
 *
 * @throws LanceError NamespaceNotFound
 */
export function requireParent(state: CatalogView, id: Identifier): void {
  const parent = id.slice(0, -1);
  if (!isNamespace(state, parent)) throw namespaceNotFound(parent);
}

/**
 * Whether the root has a table of this name that has a directory but no row.
 *
 * The rows are read again after the directory, because the directory may belong to a table that was declared after the
 * first look. The directory of a table that is being dropped may show for a moment, but does not count: its note ends
 * after it has gone, so it is looked for once more after the notes.
 */
export async function isUnlistedTable(
  { layout, catalog, journal }: CatalogContext,
  state: CatalogView,
  id: Identifier,
): Promise<boolean> {
  if (!mayBeUnlisted(id)) return false;
  const location = rootLocation(id);
  if (state.ownerOf(location) !== undefined || !(await layout.isUnlistedTable(location))) return false;
  if ((await catalog.read()).ownerOf(location) !== undefined) return false;
  return !(await journal.removing()).has(location) && layout.isUnlistedTable(location);
}

/** Whether a directory alone can be a table of this name: only in the root, and only under the name of a directory. */
export function mayBeUnlisted(id: Identifier): boolean {
  return id.length === 1 && !/[/\\\0]/.test(id[0] ?? "");
}
