import type { DataFragment, Manifest } from "../../../gen/lance/format/table_pb.ts";
import { deletionKey } from "./deletion-file.ts";
import type { DatasetRef } from "./layout.ts";
import { dataDirectory, refsDirectory, transactionKey } from "./layout.ts";
import { readManifestFile } from "./manifest-file.ts";
import { listNames } from "./storage.ts";
import { writeVersionHint } from "./version-hint.ts";
import { type FoundVersion, findVersions } from "./versions.ts";

/** Which versions go. */
export interface PruneOptions {
  /** How many of the newest versions stay. */
  readonly keep: number;
  /** How old a version has to be to go, in milliseconds. */
  readonly minAgeMs: number;
  /** Whether a version that may go by its age and its number goes. */
  readonly mayGo: (manifest: Manifest) => boolean;
  /** The versions that were found to stay; they are not looked at again. */
  readonly staying: Set<bigint>;
  /** Ends the work early. */
  readonly signal: AbortSignal;
}

/** What pruning left. */
export interface Pruned {
  readonly versions: number;
  /** Whether there are versions that only their age keeps. */
  readonly hasYoung: boolean;
}

/**
 * Deletes old versions, the oldest first, and the files that only they need.
 *
 * A table with tags or branches is left as it is. Files that no version ever needed, such as those of a commit that
 * was cut off, stay.
 */
export async function pruneVersions(dataset: DatasetRef, options: PruneOptions): Promise<Pruned> {
  const { keep, minAgeMs, staying, signal } = options;
  if (await hasRefs(dataset)) return { versions: 0, hasYoung: false };
  const found = (await findVersions(dataset)).sort((a, b) => (a.version < b.version ? -1 : 1));
  const old = found.slice(0, Math.max(0, found.length - keep)).filter(({ version }) => !staying.has(version));
  const newest = found.at(-1);
  if (old.length === 0 || newest === undefined) return { versions: 0, hasYoung: false };
  const doomed: Manifest[] = [];
  const names: FoundVersion[] = [];
  let oldestLeft: FoundVersion = found[found.length - Math.min(keep, found.length)] ?? newest;
  let hasYoung = false;
  for (const name of old) {
    if (signal.aborted) break;
    const info = await dataset.store.head(name.key);
    if (info !== undefined && Date.now() - info.modifiedMillis < minAgeMs) {
      oldestLeft = name;
      hasYoung = true;
      break;
    }
    const manifest = (await readManifestFile(dataset.store, name.key))?.manifest;
    if (manifest === undefined) continue;
    if (!options.mayGo(manifest)) {
      staying.add(name.version);
      continue;
    }
    doomed.push(manifest);
    names.push(name);
  }
  if (doomed.length === 0) return { versions: 0, hasYoung };
  const needed = await filesNeeded(dataset, [oldestLeft, newest]);
  await writeVersionHint(dataset, newest.version);
  for (const { key } of names) await dataset.store.delete(key);
  for (const file of new Set(doomed.flatMap((manifest) => filesOf(dataset, manifest)))) {
    if (!needed.has(file)) await dataset.store.delete(file);
  }
  return { versions: names.length, hasYoung };
}

/** Whether tags or branches, which name versions by themselves, are in a table. */
export async function hasRefs(dataset: DatasetRef): Promise<boolean> {
  for (const kind of ["tags", "branches"] as const) {
    if ((await listNames(dataset.store, refsDirectory(dataset, kind))).length > 0) return true;
  }
  return false;
}

/**
 * The files of some versions. A file that a version has lost does not come back in a later one, but by a restore to
 * an older version, which makes it a file of the newest.
 */
async function filesNeeded(
  dataset: DatasetRef,
  versions: readonly FoundVersion[],
): Promise<ReadonlySet<string>> {
  const manifests = await Promise.all(versions.map(({ key }) => readManifestFile(dataset.store, key)));
  if (manifests.includes(undefined)) throw new Error("the table changes faster than it can be read");
  return new Set(manifests.flatMap((file) => (file === undefined ? [] : filesOf(dataset, file.manifest))));
}

/** The keys of the files that a version needs, but for its indices. */
export function filesOf(dataset: DatasetRef, { fragments, transactionFile }: Manifest): string[] {
  const own = transactionFile === "" ? [] : [transactionKey(dataset, transactionFile)];
  return [...own, ...fragments.flatMap((fragment) => fragmentFiles(dataset, fragment))];
}

function fragmentFiles(dataset: DatasetRef, fragment: DataFragment): string[] {
  const files = fragment.files.map(({ path }) => `${dataDirectory(dataset)}/data/${path}`);
  const deletions = deletionKey(dataset, fragment);
  return deletions === undefined ? files : [...files, deletions];
}
