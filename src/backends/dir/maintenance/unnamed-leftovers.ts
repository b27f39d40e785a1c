import { isLanceError } from "../../../namespace/errors.ts";
import type { ChangeContext } from "../batch/change-context.ts";
import { walkAllTables } from "../catalog/walk.ts";
import type { DatasetRef } from "../format/dataset.ts";
import { isForCluster } from "../jobs/job.ts";
import { directoryLeftover, fileLeftover, type Leftover, type LeftoverKind } from "./leftover.ts";
import { findReferred, locationOf } from "./referred-directories.ts";
import { findUnnamedFiles, type UnnamedFile } from "./unnamed-files.ts";

type Context = Pick<ChangeContext, "store" | "layout" | "log">;

/** Yields the files of a dataset that none of its versions names. It passes over a dataset with a version that cannot be read. */
export async function* findUnnamed(
  context: Context,
  kind: LeftoverKind,
  dataset: DatasetRef,
  before: number,
): AsyncGenerator<Leftover> {
  for (const file of await unnamedFiles(context, dataset)) yield* leftoverOf(context, kind, file, before);
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
 * tables with tags or branches, those on which a process works for long or a cluster may, and those to which another table of the catalog refers.
 */
export async function* findTableFiles(context: ChangeContext, before: number): AsyncGenerator<Leftover> {
  const { jobs, layout, store, work } = context;
  // A driver goes on while no gateway runs, and commits when one runs again.
  const onCluster = new Set((await jobs.open()).filter(isForCluster).map(({ spec }) => spec["location"]));
  let isReferred: ((directory: string) => boolean) | undefined;
  for await (const id of walkAllTables(context)) {
    const location = await locationOf(context, id);
    if (location === undefined || onCluster.has(location) || (await work.isAtWork(location))) continue;
    const dataset = { store, root: store.keyOf(layout.pathOf(location)) };
    for await (const leftover of findUnnamed(context, "table file", dataset, before)) {
      // Reading all tables takes long, so that a file to remove is found before.
      isReferred ??= await findReferred(context);
      if (isReferred(dataset.root)) break;
      const remove = async () => !(await work.isAtWork(location)) && leftover.remove();
      yield { ...leftover, remove };
    }
  }
}
