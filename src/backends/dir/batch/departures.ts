import { isLanceError } from "../../../namespace/errors.ts";
import { ITEMS_PER_STEP, type Steps } from "../../../runtime/pace.ts";
import { isRootDirectory, recurs } from "../catalog/base/location-names.ts";
import type { CatalogContext } from "../catalog/catalog-context.ts";
import type { Draft } from "../catalog/state/draft.ts";
import type { CatalogView } from "../catalog/state/view.ts";
import { ownerOf, updateMark } from "../catalog/table-marks.ts";
import type { Departure } from "./intent.ts";
import type { ChangeContext } from "./journal.ts";

/**
 * Returns the locations that have a row in a view and none in a draft on it, if they need work: all that are removed,
 * and those of the root's directories, which need their mark.
 */
export function* departuresOf(view: CatalogView, draft: Draft, remove: boolean): Steps<Departure[]> {
  const found = new Map<string, Departure>();
  let count = 0;
  for (const objectId of draft.changes.keys()) {
    if (++count % ITEMS_PER_STEP === 0) yield;
    const location = view.get(objectId)?.location;
    if (location === undefined || draft.ownerOf(location) !== undefined) continue;
    if (remove || isRootDirectory(location)) found.set(location, { location, remove });
  }
  return [...found.values()];
}

/** Whether two lists contain the same locations. */
export function sameDepartures(a: readonly Departure[], b: readonly Departure[]): boolean {
  const locations = new Set(a.map(({ location }) => location));
  return locations.size === b.length && b.every(({ location }) => locations.has(location));
}

/**
 * Marks the directories of departures before their rows go; otherwise they would show as tables without a row.
 *
 * @param change the id of the change
 */
export async function markDepartures(
  { layout }: Pick<CatalogContext, "layout">,
  departures: readonly Departure[],
  change: string,
): Promise<void> {
  for (const { location } of departures) if (recurs(location)) await layout.putAside(location, change);
}

/**
 * The process that finishes a change: its owner, whose commit has just landed, or a successor at any later time. Either
 * may pause for longer than others wait, and find that they have finished the change and begun new ones.
 */
export interface Finisher {
  /** Id of the change. */
  readonly change: string;
  /** Whether no other process can have taken the change over yet; never for a successor. */
  isAlone(): boolean;
  /** Whether the change is still unfinished. */
  isOpen(): Promise<boolean>;
}

/**
 * Does the work after the commit that took the rows of departures: removes directories, and lets the marks of the
 * others follow the catalog.
 *
 * @returns whether nothing is left to do; a failure to remove is logged
 */
export async function finishDepartures(
  context: ChangeContext,
  departures: readonly Departure[],
  finisher: Finisher,
): Promise<boolean> {
  const { log } = context;
  let all = true;
  for (const { location, remove } of departures) {
    if (!(await mayGoOn(finisher))) return false;
    if (!finisher.isAlone()) await context.layout.completeRemoval(location, finisher.change);
    if (!remove || (await isInUse(context, location))) {
      await updateMark(context, location, finisher.change);
      continue;
    }
    try {
      if (await removeDeparted(context, location, finisher)) continue;
      log.info({ location }, "the directory of a dropped table stays until the work on the table ends");
    } catch (error) {
      log.warn({ err: error, location }, "the directory of a dropped table is left behind");
      // A location that leads out of the base stays refused.
      if (isLanceError(error, "InvalidInput")) continue;
    }
    all = false;
  }
  return all;
}

/** Whether a row has a location, or one inside of it, to which another program may have put a table. */
function isInUse({ catalog }: ChangeContext, location: string): Promise<boolean> {
  return catalog.mutate((draft) => {
    for (const _ of draft.locationsInside(location)) return true;
    return draft.ownerOf(location) !== undefined;
  });
}

/** Whether a process may still do a part of a change that must not follow the change's end. */
export async function mayGoOn(finisher: Finisher): Promise<boolean> {
  return finisher.isAlone() || (await finisher.isOpen());
}

/**
 * Removes a directory that has lost its row. If several processes finish the change, the directory may have been removed
 * already, and another caller may have claimed the location. If that can be, the mark that was put before the commit
 * shows that the directory is still the former one.
 *
 * @returns false if the directory stays, because work on the table goes on, which would write to a new table in its
 *   place
 */
async function removeDeparted(
  context: ChangeContext,
  location: string,
  finisher: Finisher,
): Promise<boolean> {
  const { layout, engine, jobs, work } = context;
  const { change, isAlone } = finisher;
  const mayRecur = recurs(location);
  if (mayRecur && !isAlone() && !(await layout.isPutAside(location, change))) return true;
  await jobs.cancelAt(location);
  if (await work.isAtWork(location)) return false;
  engine.forget(layout.pathOf(location));
  // A table that has lost its directory has no mark, so another caller may have claimed the location since the commit.
  const isLeft = async () => isAlone() && (await ownerOf(context, location)) === undefined;
  await (mayRecur ? layout.removePutAside(location, change, isLeft) : layout.remove(location));
  return true;
}

/** Removes the marks of the departures of a change whose rows exist; the directories stay. */
export async function undoDepartures(
  context: CatalogContext,
  departures: readonly Departure[],
  change: string,
): Promise<void> {
  for (const { location } of departures) {
    // If another change has taken the row, the mark belongs to that change.
    if ((await ownerOf(context, location)) !== undefined) await updateMark(context, location, change);
  }
}
