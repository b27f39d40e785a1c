import { isLanceError } from "../../../namespace/errors.ts";
import { joinIdentifier } from "../../../namespace/identifier.ts";
import type { ChangeContext } from "../batch/change-context.ts";
import { rootLocation } from "../catalog/base/location-names.ts";
import { walkAllTables } from "../catalog/walk.ts";
import type { DatasetRef } from "../format/dataset.ts";
import { directoryLeftover, fileLeftover, type Leftover, type LeftoverKind } from "./leftover.ts";
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
 * tables with tags or branches, and those on which a process works for long.
 */
export async function* findTableFiles(context: ChangeContext, before: number): AsyncGenerator<Leftover> {
  const { catalog, layout, store, work } = context;
  for await (const id of walkAllTables(context)) {
    const row = (await catalog.read()).get(joinIdentifier(id));
    // A table without a row is a directory of the root.
    const location = row === undefined ? rootLocation(id) : row.location;
    if (location === undefined || (await work.isAtWork(location))) continue;
    const dataset = { store, root: store.keyOf(layout.pathOf(location)) };
    for await (const leftover of findUnnamed(context, "table file", dataset, before)) {
      const remove = async () => !(await work.isAtWork(location)) && leftover.remove();
      yield { ...leftover, remove };
    }
  }
}
