import { isLanceError } from "../../../../../namespace/errors.ts";
import { type Identifier, parseIdentifier } from "../../../../../namespace/identifier.ts";
import { isRootDirectory, rootName } from "../../../catalog/base/location-names.ts";
import type { CatalogContext } from "../../../catalog/catalog-context.ts";
import { withoutEndSlashes } from "../../../format/files/base-paths.ts";
import { isUnlistedTable } from "./object-names.ts";

/**
 * Returns the table at a location, as answers give it, or of a name whose parts `$` joins; undefined if the catalog has
 * none there. Only locations of its own tables count, whatever else a path or a URI leads to.
 */
export async function tableAt(context: CatalogContext, place: string): Promise<Identifier | undefined> {
  const { catalog, layout } = context;
  const location = layout.relativeTo(pathOf(place));
  const state = await catalog.read();
  if (location === undefined) return identifierOf(place);
  const owner = state.ownerOf(location);
  if (owner !== undefined) return parseIdentifier(owner);
  return unlistedAt(context, location);
}

/** Returns the table of the root that has a directory at a location and no row; undefined if there is none. */
async function unlistedAt(context: CatalogContext, location: string): Promise<Identifier | undefined> {
  if (!isRootDirectory(location)) return undefined;
  const id = [rootName(location)];
  return (await isUnlistedTable(context, await context.catalog.read(), id)) ? id : undefined;
}

/** Returns the table of the root whose directory is at a location or around it, by its name alone. */
export function rootTableAt(
  { layout }: Pick<CatalogContext, "layout">,
  location: string,
): Identifier | undefined {
  const [first = ""] = (layout.relativeTo(location) ?? location).split("/");
  return isRootDirectory(first) ? [rootName(first)] : undefined;
}

/** Removes the scheme of a path's URI, and slashes at the end. */
function pathOf(place: string): string {
  return withoutEndSlashes(place.replace(/^file:\/\/(?=\/)/, ""));
}

/** Reads a name; undefined for text that is not one, such as another path. */
function identifierOf(text: string): Identifier | undefined {
  try {
    const id = parseIdentifier(text);
    return text.includes("/") || id.length === 0 ? undefined : id;
  } catch (error) {
    if (isLanceError(error, "InvalidInput")) return undefined;
    throw error;
  }
}
