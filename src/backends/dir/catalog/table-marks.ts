import { isRootDirectory } from "./base-layout.ts";
import type { CatalogContext } from "./catalog-context.ts";

/** How often a mark is set again because the row changed meanwhile. */
const MAX_LOOKS = 5;

/**
 * Makes the mark of a directory agree with the catalog: implementations that list directories take `<name>.lance` for
 * the root's table of that name, unless it is marked.
 */
export async function updateMark(context: CatalogContext, location: string): Promise<void> {
  if (!isRootDirectory(location)) return;
  const own = location.slice(0, -".lance".length);
  let owner = await ownerOf(context, location);
  for (let look = 1; look <= MAX_LOOKS; look++) {
    await context.layout.setDeregistered(location, owner !== own);
    const before = owner;
    owner = await ownerOf(context, location);
    if (owner === before) return;
  }
}

/** Returns the table that a location belongs to, by the newest rows: unlike a read, a mutation is decided on them. */
export function ownerOf(
  { catalog }: Pick<CatalogContext, "catalog">,
  location: string,
): Promise<string | undefined> {
  return catalog.mutate((draft) => draft.ownerOf(location));
}
