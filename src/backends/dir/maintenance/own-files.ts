import { isLanceError } from "../../../namespace/errors.ts";
import type { ChangeContext } from "../batch/change-context.ts";
import { INTENTS_DIRECTORY } from "../batch/journal.ts";
import type { TableContext } from "../catalog/catalog-context.ts";
import { MANIFEST_NAME } from "../catalog/manifest-table.ts";
import { measure } from "../format/extent.ts";
import { keyIn } from "../format/storage.ts";
import { findJobFiles, JOBS_DIRECTORY } from "../jobs/store.ts";
import { fileLeftover, isOld, type Leftover, relativeKey } from "./leftover.ts";
import { findUnnamedFiles, type UnnamedFile } from "./unnamed-files.ts";

/** Finds what crashes left among the files that the catalog keeps beside its tables; see `findLeftovers`. */
export async function* findOwnFiles(context: ChangeContext, before: number): AsyncGenerator<Leftover> {
  const { store, layout } = context;
  for (const key of await findJobFiles(store, layout.baseKey)) {
    yield* fileLeftover(context, "job file", key, before);
  }
  for (const directory of DIRECTORIES) {
    const found = (await store.files?.temporaries(keyIn(layout.baseKey, directory))) ?? [];
    for (const { key } of found) yield* fileLeftover(context, "temporary file", key, before);
  }
  for (const file of await unnamedFiles(context)) yield* manifestFile(context, file, before);
}

/** Directories of the catalog's own files. */
const DIRECTORIES = [
  ...["data", "_versions", "_transactions", "_deletions"].map((part) => `${MANIFEST_NAME}/${part}`),
  ...["open", "claims", "cancelled", "done"].map((part) => `${JOBS_DIRECTORY}/${part}`),
  INTENTS_DIRECTORY,
];

/** Yields the files of interrupted commits of the manifest, and of its replaced indices. */
async function unnamedFiles({
  store,
  layout,
  log,
}: Pick<ChangeContext, "layout" | "log" | "store">): Promise<readonly UnnamedFile[]> {
  try {
    return await findUnnamedFiles({ store, root: keyIn(layout.baseKey, MANIFEST_NAME) });
  } catch (error) {
    if (!isLanceError(error, "DataLoss") && !isLanceError(error, "Unsupported")) throw error;
    log.warn({ err: error }, "the files of the manifest are passed over: one of its versions cannot be read");
    return [];
  }
}

async function* manifestFile(
  context: TableContext,
  { key, isDirectory, isNamedNow }: UnnamedFile,
  before: number,
): AsyncGenerator<Leftover> {
  const { store, layout } = context;
  if (!isDirectory) {
    for await (const leftover of fileLeftover(context, "manifest file", key, before)) {
      yield { ...leftover, remove: async () => !(await isNamedNow()) && leftover.remove() };
    }
    return;
  }
  const extent = await measure(store, key);
  if (!isOld(extent.modifiedMillis, before)) return;
  yield {
    kind: "manifest file",
    path: relativeKey(layout.baseKey, key),
    ...extent,
    async remove() {
      if (!isOld((await measure(store, key)).modifiedMillis, before) || (await isNamedNow())) return false;
      await store.deleteDirectory(key);
      return true;
    },
  };
}
