import { isLanceError } from "../../../namespace/errors.ts";
import type { ChangeContext } from "../batch/change-context.ts";
import { walkAllTables } from "../catalog/walk.ts";
import type { DatasetRef } from "../format/dataset.ts";
import { isForCluster } from "../jobs/job.ts";
import { directoryLeftover, fileLeftover, type Leftover, type LeftoverKind } from "./leftover.ts";
import { type IsReferred, placeOf } from "./referred-directories.ts";
import { findUnnamedFiles, type UnnamedFile } from "./unnamed-files.ts";

type Context = Pick<ChangeContext, "store" | "layout" | "log">;

/** Yields the files of a dataset that none of its versions names. It passes over a dataset with a version that cannot be read. */
export async function* findUnnamed(
  context: Context,
  kind: LeftoverKind,
  dataset: DatasetRef,
  before: number,
): AsyncGenerator<Leftover> {
  const { files } = dataset.store;
  // Another program may use the target of a link.
  for (const file of await unnamedFiles(context, dataset))
    if (!(await files?.leadsThroughLink(file.key))) yield* leftoverOf(context, kind, file, before);
}

async function unnamedFiles({ log }: Context, dataset: DatasetRef): Promise<readonly UnnamedFile[]> {
  try {
    return await findUnnamedFiles(dataset);
  } catch (error) {
    if (!isLanceError(error, "DataLoss") && !isLanceError(error, "Unsupported")) throw error;
    const text = "the files of a table are passed over: one of its versions cannot be read";
    log.warn({ err: error, directory: dataset.root }, text);
    return [];
  }
}

async function* leftoverOf(
  context: Context,
  kind: LeftoverKind,
  { key, isDirectory, isNamedNow }: UnnamedFile,
  before: number,
): AsyncGenerator<Leftover> {
  const mayGo = async () => !(await isNamedNow());
  if (isDirectory) {
    yield* directoryLeftover(context, kind, key, before, mayGo);
    return;
  }
  for await (const leftover of fileLeftover(context, kind, key, before))
    yield { ...leftover, remove: async () => (await mayGo()) && leftover.remove() };
}

/**
 * Yields the files of tables that no version has: those of failed commits, and of work on a cluster that was given up. It passes over
 * tables with tags or branches, those on which a process works for long or a cluster may, those to which another table of the catalog refers,
 * and those outside of the base.
 */
export async function* findTableFiles(
  context: ChangeContext,
  before: number,
  isReferred: IsReferred,
): AsyncGenerator<Leftover> {
  const { jobs, store, work } = context;
  // A driver goes on while no gateway runs, and commits when one runs again.
  const onCluster = new Set((await jobs.open()).filter(isForCluster).map(({ spec }) => spec["location"]));
  for await (const id of walkAllTables(context)) {
    const place = await placeOf(context, id);
    if (place === undefined || onCluster.has(place.location)) continue;
    const { location, dataset } = place;
    if ((await store.files?.leadsThroughLink(dataset.root)) || (await work.isAtWork(location))) continue;
    for await (const leftover of findUnnamed(context, "table file", dataset, before)) {
      if (await isReferred(dataset.root)) break;
      const remove = async () => !(await work.isAtWork(location)) && leftover.remove();
      yield { ...leftover, remove };
    }
  }
}
