import { randomUUID } from "node:crypto";
import { releaseClaims } from "../../../batch/resolve.ts";
import { isRefusal } from "../../../batch/run.ts";
import { LocationTaken } from "../../../catalog/base/location-names.ts";
import type { CatalogContext } from "../../../catalog/catalog-context.ts";
import type { Draft } from "../../../catalog/state/draft.ts";
import { ownerOf, updateMark } from "../../../catalog/table-marks.ts";
import { afterChange } from "../../../format/changes/after-change.ts";

/** A plan to take a name. */
export interface Claim {
  /** The location of the table, relative to the base. */
  readonly location: string;
  /** Whether no other caller can know the location, because it was drawn at random for this claim. */
  readonly isPrivate: boolean;
  /** Whether the directory stays hidden from implementations that list directories, because it has another table's name. */
  readonly isHidden: boolean;
  /** Plans to take the name at a private location, if another caller takes this one first. Default: that is an error. */
  readonly elsewhere?: () => Claim;
  /** Takes the name as a mutation of the catalog. @throws LocationTaken */
  apply(draft: Draft): void;
}

/**
 * Takes a name for a new table, which is declared from then on.
 *
 * The mark is written before the row, so that the table never looks as if it had lost its directory.
 *
 * @returns the location, relative to the base
 */
export async function takeName(context: CatalogContext, claim: Claim): Promise<string> {
  return claim.isPrivate ? takePrivately(context, claim) : takeOpenly(context, claim);
}

/** Takes a name at a private location: another caller finds it only through its row, and then its mark exists. */
async function takePrivately(
  { catalog, layout }: CatalogContext,
  { location, apply }: Claim,
): Promise<string> {
  await layout.reserveNew(location);
  await catalog.mutate(apply).catch(async (error: unknown) => {
    if (isRefusal(error)) await layout.remove(location);
    throw error;
  });
  return location;
}

/** Takes a name at a location that others may want, too, and that only one of them can claim (docs/adr/0062). */
async function takeOpenly(context: CatalogContext, claim: Claim): Promise<string> {
  const { catalog, layout } = context;
  const { location, isHidden, apply, elsewhere } = claim;
  const text = randomUUID();
  try {
    if (!(await layout.claim(location, text))) throw new LocationTaken();
    await catalog.mutate(apply).catch(async (error: unknown) => {
      if (isRefusal(error)) await releaseClaims(context, [location], text);
      throw error;
    });
  } catch (error) {
    if (!(error instanceof LocationTaken) || elsewhere === undefined) throw error;
    return takePrivately(context, elsewhere());
  }
  await afterChange(() => (isHidden ? updateMark(context, location) : showDeclared(context, location, text)));
  return location;
}

/** Shows the directory of a declared table, unless the table has been dropped meanwhile. */
async function showDeclared(context: CatalogContext, location: string, claim: string): Promise<void> {
  const { layout } = context;
  const isShown = await layout.reveal(location, claim);
  const isOwned = (await ownerOf(context, location)) !== undefined;
  if (isShown && isOwned) return;
  // Another process that completes an old drop may have removed the mark.
  if (isOwned) await layout.reserve(location);
  await updateMark(context, location);
}
