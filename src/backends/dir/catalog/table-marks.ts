import { isRootDirectory, recurs, rootName } from "./base/location-names.ts";
import type { CatalogContext } from "./catalog-context.ts";

/** Maximum number of updates of a mark while the row changes. */
const MAX_LOOKS = 5;

/** Whether a directory is hidden from implementations that list directories, because its table has another name there or none. */
export function isHiddenUnder(location: string, owner: string | undefined): boolean {
  return isRootDirectory(location) && owner !== rootName(location);
}

/**
 * Updates the mark of a directory to agree with the catalog: implementations that list directories treat an unmarked
 * `<name>.lance` as the root's table of that name. Changes that are about to take the directory keep their mark.
 * Elsewhere, only these changes mark a directory.
 *
 * @param ended a change that needs its mark no longer. Default: none
 */
export async function updateMark(context: CatalogContext, location: string, ended?: string): Promise<void> {
  if (!recurs(location)) return;
  const { layout, journal } = context;
  let owner = await ownerOf(context, location);
  for (let look = 1; look <= MAX_LOOKS; look++) {
    // Without a row, the directory may be that of a change which is to be completed.
    const isDeparting = async (change: string) =>
      change !== ended && (owner === undefined || (await journal.isOpen(change)));
    await layout.setDeregistered(location, isHiddenUnder(location, owner), isDeparting);
    const before = owner;
    owner = await ownerOf(context, location);
    if (owner === before) return;
  }
}

/**
 * Returns the table to which a location belongs, according to the newest rows: unlike a read, a mutation always uses
 * them.
 */
export function ownerOf(
  { catalog }: Pick<CatalogContext, "catalog">,
  location: string,
): Promise<string | undefined> {
  return catalog.mutate((draft) => draft.ownerOf(location));
}

/**
 * Age from which a claim of a location belongs to a process that has ended, in milliseconds. The row follows the claim
 * at once, and the claim of a batch lives for a quarter of an hour at most.
 */
const CLAIM_AGE_MS = 60 * 60_000;

/**
 * Takes the old claim of a location away whose row never came; see {@link Layout.expireClaim}.
 *
 * @returns whether the location is empty now
 */
export async function expireClaim(context: CatalogContext, location: string): Promise<boolean> {
  const { layout, clock } = context;
  if (!(await layout.isClaimed(location)) || (await ownerOf(context, location)) !== undefined) return false;
  return layout.expireClaim(location, (await clock.now()) - CLAIM_AGE_MS);
}
