import { basename, dirname } from "node:path/posix";
import { type DatasetRef, parseManifestName, versionsDirectory } from "../dataset.ts";
import type { ObjectStore } from "../storage.ts";
import { createDatasetMemory } from "./known-durable.ts";

/** Versions of a dataset that this process knows. */
interface Known {
  /** All versions up to this one are known. */
  upTo: bigint;
  /** Later versions that this process has made. */
  readonly own: Set<bigint>;
}

/** Maximum number of own versions ahead of the known ones that are remembered. */
const MAX_OWN = 1_000;

/** Maximum number of versions of others that are looked at one by one. */
const MAX_UNKNOWN = 100_000n;

const ledger = createDatasetMemory<Known>();

/** Notes a version that this process has made. */
export function noteOwnVersion(dataset: DatasetRef, version: bigint): void {
  noteOwn(dataset.store, versionsDirectory(dataset), version);
}

/** Notes a version that this process has made, by the key of its manifest. */
export function noteOwnManifest(store: ObjectStore, key: string): void {
  const version = parseManifestName(basename(key))?.version;
  if (version !== undefined) noteOwn(store, dirname(key), version);
}

function noteOwn(store: ObjectStore, directory: string, version: bigint): void {
  const known = ledger.get(store, directory);
  if (known === undefined || version <= known.upTo) return;
  known.own.add(version);
  while (known.own.delete(known.upTo + 1n)) known.upTo++;
  for (const oldest of known.own) {
    if (known.own.size <= MAX_OWN) return;
    known.own.delete(oldest);
  }
}

/** Versions that others have made. */
export interface Unknown {
  /** The versions, ascending. */
  readonly versions: readonly bigint[];
  /**
   * Whether this process looks at the dataset for the first time, or after too many versions; then only the newest is in the
   * list.
   */
  readonly first: boolean;
  /** Makes the versions unknown again, because they could not be adopted. */
  forget(): void;
}

/**
 * Returns the versions of a dataset that this process neither made nor knew, and knows them from then on.
 *
 * @param latest the newest version
 */
export function takeUnknownVersions(dataset: DatasetRef, latest: bigint): Unknown {
  const { store } = dataset;
  const directory = versionsDirectory(dataset);
  const known = ledger.get(store, directory);
  // A table may be dropped and made again, and a branch, too. A file of any number may come from a client.
  const first = known === undefined || latest < known.upTo || latest - known.upTo > MAX_UNKNOWN;
  const versions: bigint[] = [];
  for (let version = first ? latest : known.upTo + 1n; version <= latest; version++)
    if (first || !known.own.has(version)) versions.push(version);
  const own = new Set([...(known?.own ?? [])].filter((version) => version > latest));
  ledger.set(store, directory, { upTo: latest, own });
  return { versions, first, forget: () => ledger.forget(store, directory) };
}
