import type { ChangeContext } from "../batch/change-context.ts";
import { INTENTS_DIRECTORY } from "../batch/journal.ts";
import { WORK_DIRECTORY } from "../batch/work-notes.ts";
import { MANIFEST_NAME } from "../catalog/manifest/manifest-table.ts";
import { keyIn, listNames } from "../format/storage.ts";
import { findOldDays } from "../idempotency/record-days.ts";
import { findJobFiles, JOBS_DIRECTORY } from "../jobs/store.ts";
import { findGoneLeases } from "../upkeep/gone-leases.ts";
import { UPKEEP_DIRECTORY } from "../upkeep/lease.ts";
import { directoryLeftover, fileLeftover, type Leftover } from "./leftover.ts";
import { findUnnamed } from "./unnamed-leftovers.ts";

/** Finds what crashes left among the files that the catalog keeps beside its tables; see `findLeftovers`. */
export async function* findOwnFiles(context: ChangeContext, before: number): AsyncGenerator<Leftover> {
  const { store, layout } = context;
  for (const key of await findJobFiles(store, layout.baseKey)) {
    yield* fileLeftover(context, "job file", key, before);
  }
  for (const key of await context.work.stale()) yield* fileLeftover(context, "work note", key, before);
  for await (const key of findGoneLeases(context)) yield* directoryLeftover(context, "lease", key, before);
  for (const key of await findOldDays(layout.baseKey, store, before)) {
    yield* directoryLeftover(context, "kept answer", key, before);
  }
  const leased = store.files && (await listNames(store, keyIn(layout.baseKey, UPKEEP_DIRECTORY)));
  for (const directory of [...DIRECTORIES, ...(leased ?? []).map((name) => `${UPKEEP_DIRECTORY}/${name}`)]) {
    const found = (await store.files?.temporaries(keyIn(layout.baseKey, directory))) ?? [];
    for (const { key } of found) yield* fileLeftover(context, "temporary file", key, before);
  }
  const manifest = { store, root: keyIn(layout.baseKey, MANIFEST_NAME) };
  yield* findUnnamed(context, "manifest file", manifest, before);
}

/** Directories of the catalog's own files. */
const DIRECTORIES = [
  ...["data", "_versions", "_transactions", "_deletions"].map((part) => `${MANIFEST_NAME}/${part}`),
  ...["open", "claims", "cancelled", "done"].map((part) => `${JOBS_DIRECTORY}/${part}`),
  INTENTS_DIRECTORY,
  WORK_DIRECTORY,
];
