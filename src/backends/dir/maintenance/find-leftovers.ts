import { randomUUID } from "node:crypto";
import { type ChangeContext, INTENTS_DIRECTORY } from "../batch/journal.ts";
import { resolvePending } from "../batch/resolve.ts";
import { WORK_DIRECTORY } from "../batch/work-notes.ts";
import type { TableContext } from "../catalog/catalog-context.ts";
import { MANIFEST_NAME } from "../catalog/manifest/manifest-table.ts";
import type { CatalogView } from "../catalog/state/view.ts";
import { keyIn, listNames, type ObjectEntry } from "../format/storage.ts";
import { hasOtherFiles, isTableFile, measure } from "../format/table-files.ts";
import { openFunctionsOf, warnOfDamaged } from "../function-homes.ts";
import { findOldDays } from "../idempotency/records.ts";
import { findJobFiles, JOBS_DIRECTORY } from "../jobs/store.ts";
import { findGoneLeases, isGone } from "../upkeep/directory-tables.ts";
import { UPKEEP_DIRECTORY } from "../upkeep/lease.ts";
import { directoryLeftover, fileLeftover, isOld, type Leftover, type LeftoverKind } from "./leftover.ts";
import { createReferredSearch } from "./referred-directories.ts";
import { findTableFiles, findUnnamed } from "./unnamed-files.ts";

/**
 * Finds what crashes left in a base directory. It writes nothing.
 *
 * It skips everything that was written to since `before`, because a process may still use it. A directory counts as a
 * table's only by its contents, and is skipped
 *
 * - while a row has it, or a directory in it, or a version of a table names it;
 * - when it shows as a table of the root by itself (`*.lance` with a version or a reservation, and not marked);
 * - when it contains anything that the table format does not define.
 *
 * @param before in milliseconds since 1970
 * @param beforeInTables the same for the files in the directories of tables, where other programs may write for long before they commit
 */
export async function* findLeftovers(
  context: ChangeContext,
  before: number,
  beforeInTables: number = before,
): AsyncGenerator<Leftover> {
  const { store, layout } = context;
  yield* abandonedNotes(context);
  yield* brokenNotes(context, before);
  yield* findOwnFiles(context, before);
  // The state is newer than the listing, so it has the rows that were added in between.
  const entries: ObjectEntry[] = [];
  for await (const page of store.list(layout.baseKey)) entries.push(...page);
  const state = await context.catalog.read();
  const isReferred = createReferredSearch(context);
  for (const { name, isDirectory } of entries) {
    if (!isDirectory && PROBE.test(name)) {
      yield* fileLeftover(context, "probe", keyIn(layout.baseKey, name), before);
    }
    const kind = isDirectory ? await kindOf(context, state, name) : undefined;
    if (kind === undefined || (OF_TABLES.has(kind) && (await isReferred(name)))) continue;
    yield* directory(context, kind, name, before);
  }
  yield* findTableFiles(context, beforeInTables, isReferred);
}

const PROBE = /^\.probe-[0-9a-f]+$/;

/** Directories in which tables of the catalog may keep files. */
const OF_TABLES: ReadonlySet<LeftoverKind> = new Set(["unfinished table", "unlisted data"]);

/** Directories that are recognised by their names. */
const NAMED: readonly (readonly [RegExp, LeftoverKind])[] = [
  [/^\.dropped-[0-9a-f]+$/, "dropped table"],
  [/^\.staging-upload-[0-9a-f]+(?:-taken)?$/, "upload"],
  [/^\.staging-[0-9a-f]+$/, "staged data"],
];

/** Returns the kind of leftover of a directory in the base, by its contents; undefined if it is not a leftover. */
async function kindOf(
  context: TableContext,
  state: CatalogView,
  name: string,
): Promise<LeftoverKind | undefined> {
  const named = NAMED.find(([pattern]) => pattern.test(name))?.[1];
  if (named !== undefined) return named;
  if (name.startsWith(".") || name === MANIFEST_NAME || isReferenced(state, name)) return undefined;
  const { store, layout } = context;
  const key = keyIn(layout.baseKey, name);
  if ((await listNames(store, key)).length === 0 || (await hasOtherFiles(store, key))) return undefined;
  if (name.endsWith(".lance") && (await layout.isUnlistedTable(name))) return undefined;
  return (await layout.hasData(name)) ? "unlisted data" : "unfinished table";
}

/** Whether a row has a directory of the base, or a directory in it. */
function isReferenced(state: CatalogView, name: string): boolean {
  for (const _ of state.locationsInside(name)) return true;
  return state.ownerOf(name) !== undefined;
}

async function* directory(
  context: TableContext,
  kind: LeftoverKind,
  name: string,
  before: number,
): AsyncGenerator<Leftover> {
  const { store, layout, engine, catalog } = context;
  const key = keyIn(layout.baseKey, name);
  const extent = await measure(store, key);
  // A directory without files has no age, but dropped tables need none.
  if (!isOld(extent.modifiedMillis, before) && kind !== "dropped table") return;
  yield {
    kind,
    path: name,
    ...extent,
    async remove() {
      const { modifiedMillis } = await measure(store, key);
      if (!isOld(modifiedMillis, before) && kind !== "dropped table") return false;
      // Before the rows, because whatever follows a claim has a row.
      const isOwn = name.startsWith(".");
      const isClaimed = !isOwn && (await layout.isClaimed(name));
      if ((await kindOf(context, await catalog.read(), name)) !== kind) return false;
      engine.forget(store.uriOf(key));
      if (isClaimed) return removeClaimed(context, name, before);
      if (!isOwn)
        return layout.removeIf(
          name,
          async (at) =>
            !isReferenced(await catalog.read(), name) &&
            isOld((await measure(store, at)).modifiedMillis, before),
        );
      await store.deleteDirectory(key, kind === "dropped table" ? { owns: isTableFile } : {});
      return true;
    },
  };
}

/** Removes a directory with an old claim. A gateway may take the location over meanwhile, so this takes it first. */
async function removeClaimed({ layout }: TableContext, name: string, before: number): Promise<boolean> {
  const claim = randomUUID();
  const isOwn = (await layout.expireClaim(name, before)) && (await layout.claim(name, claim));
  return isOwn && layout.unclaim(name, claim);
}

/** Notes reveal whether a process is at work on them, so they need no age. */
async function* abandonedNotes(context: ChangeContext): AsyncGenerator<Leftover> {
  const { journal, store, layout } = context;
  for (const pending of await journal.abandoned()) {
    const path = `${INTENTS_DIRECTORY}/${pending.id}.json`;
    const info = await store.head(keyIn(layout.baseKey, path));
    yield {
      kind: "note",
      path,
      files: 1,
      bytes: info?.size ?? 0,
      modifiedMillis: info?.modifiedMillis,
      remove: async () => (await resolvePending(context, pending)).done,
    };
  }
}

async function* brokenNotes(context: ChangeContext, before: number): AsyncGenerator<Leftover> {
  for (const key of await context.journal.broken()) yield* fileLeftover(context, "note", key, before);
}

/** Finds what crashes left among the files that the catalog keeps beside its tables; see `findLeftovers`. */
export async function* findOwnFiles(context: ChangeContext, before: number): AsyncGenerator<Leftover> {
  const { store, layout } = context;
  for (const key of await findJobFiles(store, layout.baseKey)) {
    yield* fileLeftover(context, "job file", key, before);
  }
  const functions = openFunctionsOf(context);
  const onDamaged = warnOfDamaged(context);
  for (const { key, remove } of await functions.contents.findGone(onDamaged)) {
    for await (const leftover of fileLeftover(context, "function file", key, before))
      yield { ...leftover, remove };
  }
  const ofGone = functions.findOfGoneTables((location) => isGone(context, location), onDamaged);
  for await (const key of ofGone) yield* directoryLeftover(context, "function file", key, before);
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
