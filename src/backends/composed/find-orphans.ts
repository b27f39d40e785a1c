import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { createWorkNotes } from "../dir/batch/work-notes.ts";
import { versionsDirectory } from "../dir/format/dataset.ts";
import { keyIn, type ObjectEntry, type ObjectStore } from "../dir/format/storage.ts";
import { createStorageClock, MACHINE_CLOCK, type StorageClock } from "../dir/format/storage-clock.ts";
import { otherFiles, TABLE_BASE } from "../dir/format/table-files.ts";
import { latestVersion } from "../dir/format/versions/version-files.ts";
import { findJobFiles } from "../dir/jobs/store.ts";
import {
  directoryLeftover,
  fileLeftover,
  type Leftover,
  type LeftoverKind,
  type LeftoverPlace,
} from "../dir/maintenance/leftover.ts";
import { openStore, placeOf } from "../dir/stores/open-store.ts";
import type { StorageOptions } from "../dir/stores/storage-options.ts";

/** Options of {@link findOrphans}. */
export interface OrphanOptions {
  /** Directories and places in buckets below which the tables of the catalog are. */
  readonly places: readonly string[];
  readonly storageOptionsOf: (root: string) => StorageOptions;
  /** Yields the locations of all tables of the catalog. */
  locations(): AsyncIterable<string>;
  /** Minimum age of everything in a leftover, in milliseconds. */
  readonly olderThan: number;
  /** Whether leftovers are to be removed. Ages are then measured by the clock of each storage, which takes a probe in each place. */
  readonly removes: boolean;
}

/** Deepest directory below a place that is looked at. */
const MAX_DEPTH = 32;

/** Names that the gateway gives to staged rows, with an id of 32 digits: other programs may have directories with similar names there. */
const STAGED: readonly (readonly [RegExp, LeftoverKind])[] = [
  [/^\.staging-upload-[0-9a-f]{32}(?:-taken)?$/, "upload"],
  [/^\.staging-[0-9a-f]{32}$/, "staged data"],
];

/** Name of an object that asked the storage for the time. */
const PROBE = /^\.probe-[0-9a-f]{16}$/;

/**
 * Finds what crashes left in the places of a foreign catalog's tables: staged rows and manifests, probes, files of jobs, and directories of the table format that no
 * table of the catalog has.
 *
 * Only staged rows and manifests, probes and files of jobs can be removed. A catalog may list tables late or not to everybody, and another catalog may have tables in the same places,
 * so data without an entry is only shown.
 */
export async function* findOrphans(options: OrphanOptions): AsyncGenerator<Leftover> {
  const { places, storageOptionsOf, locations, olderThan, removes } = options;
  const found = new Map<string, Leftover>();
  for (const place of places) {
    const { root, key } = spotOf(place);
    const { store } = await openStore(root, root === "/" ? {} : storageOptionsOf(root));
    const clock = removes ? createStorageClock(store, key) : MACHINE_CLOCK;
    const before = async () => (await clock.now()) - olderThan;
    for await (const leftover of walk(store, key, clock, before, 0))
      found.set(`${root} ${leftover.path}`, { ...leftover, path: store.uriOf(leftover.path) });
  }
  // The catalog is read after the storage, so it has the tables that came in between.
  for await (const location of locations()) {
    const { root, key } = spotOf(location);
    found.delete(`${root} ${key}`);
  }
  yield* found.values();
}

/** Returns the storage of a location, and the key in it. */
function spotOf(location: string): { readonly root: string; readonly key: string } {
  const place = placeOf(location);
  if (place !== undefined && place.scheme !== "file")
    return { root: `${place.scheme}://${place.bucket}`, key: place.key };
  return { root: "/", key: resolve(place === undefined ? location : fileURLToPath(location)).slice(1) };
}

/** Returns the kind of leftover of a directory with staged rows; undefined for a name that the gateway gives to no such directory. */
const stagedKind = (name: string) => STAGED.find(([pattern]) => pattern.test(name))?.[1];

async function* walk(
  store: ObjectStore,
  directory: string,
  clock: StorageClock,
  before: () => Promise<number>,
  depth: number,
): AsyncGenerator<Leftover> {
  const entries: ObjectEntry[] = [];
  for await (const page of store.list(directory)) entries.push(...page);
  const directories = entries.filter(({ isDirectory }) => isDirectory);
  const context = { store, layout: { baseKey: "" } };
  for (const { name } of directories) {
    const kind = stagedKind(name);
    if (kind !== undefined) yield* directoryLeftover(context, kind, keyIn(directory, name), await before());
  }
  if (depth === 0) yield* probesAmong(entries, context, directory, before);
  if (directories.some(({ name }) => name === TABLE_BASE)) {
    const base = keyIn(directory, TABLE_BASE);
    for (const key of await findJobFiles(store, base))
      yield* fileLeftover(context, "job file", key, await before());
    for (const key of await createWorkNotes(base, store, clock).stale())
      yield* fileLeftover(context, "work note", key, await before());
    for await (const page of store.list(base)) yield* probesAmong(page, context, base, before);
  }
  if (await isTable(store, directory, directories)) {
    yield* stagedManifests(store, directory, before);
    const hasVersion = (await latestVersion({ store, root: directory })) !== undefined;
    const kind = hasVersion ? "unlisted data" : "unfinished table";
    const keep = async () => false;
    yield* directoryLeftover(context, kind, directory, await before(), keep);
  } else if (depth < MAX_DEPTH)
    for (const { name } of directories)
      if (!name.startsWith(".")) yield* walk(store, keyIn(directory, name), clock, before, depth + 1);
}

async function* probesAmong(
  entries: readonly ObjectEntry[],
  context: LeftoverPlace,
  directory: string,
  before: () => Promise<number>,
): AsyncGenerator<Leftover> {
  for (const { name, isDirectory } of entries)
    if (!isDirectory && PROBE.test(name))
      yield* fileLeftover(context, "probe", keyIn(directory, name), await before());
}

/** Name of the manifest of a commit that was interrupted, or has taken place in a catalog that has not moved the manifest yet. */
const STAGED_MANIFEST = /^(\d{1,20}\.manifest)-[0-9a-f-]{32,36}$/;

/**
 * Finds the staged manifests of a table or a branch, and of the branches below, that cannot be versions: those beside a different manifest with the
 * name of their version. A catalog may name a staged manifest for good, and one that is equal to the version's may be the one that it names.
 *
 * @param depth number of names of branches that lead to the directory; 0 for the table
 */
async function* stagedManifests(
  store: ObjectStore,
  directory: string,
  before: () => Promise<number>,
  depth = 0,
): AsyncGenerator<Leftover> {
  const context = { store, layout: { baseKey: "" } };
  const versions = versionsDirectory({ root: directory });
  for await (const page of store.list(versions))
    for (const { name } of page) {
      const own = STAGED_MANIFEST.exec(name)?.[1];
      if (own !== undefined && (await areDifferent(store, keyIn(versions, own), keyIn(versions, name))))
        yield* fileLeftover(context, "table file", keyIn(versions, name), await before());
    }
  if (depth === MAX_DEPTH) return;
  // The branch `a/b` is inside of the branch `a`.
  const branches = depth === 0 ? keyIn(directory, "tree") : directory;
  for await (const page of store.list(branches))
    for (const { name, isDirectory } of page)
      if (isDirectory && !name.startsWith("_") && name !== "data")
        yield* stagedManifests(store, keyIn(branches, name), before, depth + 1);
}

/** Whether two objects exist and have different bytes. */
async function areDifferent(store: ObjectStore, one: string, other: string): Promise<boolean> {
  const sizes = await Promise.all([one, other].map(async (key) => (await store.head(key))?.size));
  if (sizes.includes(undefined) || sizes[0] !== sizes[1]) return !sizes.includes(undefined);
  const [first, second] = await Promise.all([store.get(one), store.get(other)]);
  return first !== undefined && second !== undefined && Buffer.compare(first, second) !== 0;
}

/** Directories of which a table has at least one. */
const OF_TABLES: ReadonlySet<string> = new Set(["_versions", "_transactions", "data"]);

/** Whether a directory is that of a table: it has directories of the format, and nothing else than the format and the gateway put there. */
async function isTable(
  store: ObjectStore,
  directory: string,
  directories: readonly ObjectEntry[],
): Promise<boolean> {
  if (!directories.some(({ name }) => OF_TABLES.has(name))) return false;
  for await (const path of otherFiles(store, directory))
    if (stagedKind(path.split("/", 1)[0] ?? "") === undefined) return false;
  return true;
}
