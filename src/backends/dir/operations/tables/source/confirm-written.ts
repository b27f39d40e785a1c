import type { ChangeContext } from "../../../batch/change-context.ts";
import { isRootDirectory } from "../../../catalog/base/location-names.ts";
import type { CatalogContext } from "../../../catalog/catalog-context.ts";
import { ownerOf, updateMark } from "../../../catalog/table-marks.ts";
import { droppedMeanwhile } from "../../rows/staged-write.ts";

/**
 * Checks that a declared table was not dropped before it got its data: the drop would have removed the directory with
 * its mark, and the data would have created another one.
 *
 * A directory with a mark was deregistered after it got its data. Nothing is removed, because others may have written
 * there, too. The directory of a dropped table is hidden, and `gc` finds it.
 *
 * @throws LanceError ConcurrentModification
 */
export async function confirmWritten(
  context: CatalogContext & Pick<ChangeContext, "journal">,
  location: string,
): Promise<void> {
  const { journal, layout } = context;
  if ((await ownerOf(context, location)) !== undefined) {
    // The directory was hidden until its row existed, and its writer finished before it became visible.
    if (isRootDirectory(location) && (await layout.isDeregistered(location)))
      await updateMark(context, location);
    return;
  }
  if ((await layout.isMarked(location)) && !(await journal.removing()).has(location)) return;
  await updateMark(context, location);
  throw droppedMeanwhile();
}
