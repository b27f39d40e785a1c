import { basename, dirname } from "node:path/posix";
import { type DatasetRef, parseManifestName, versionsDirectory } from "./dataset.ts";
import type { ObjectStore } from "./storage.ts";

/** Versions of a dataset that this process knows. */
interface Known {
  /** All versions up to this one are known. */
  upTo: bigint;
  /** Later versions that this process has made. */
  readonly own: Set<bigint>;
}

/** Maximum number of datasets that are remembered, and of own versions ahead of the known ones. */
const MAX_DATASETS = 10_000;
const MAX_OWN = 1_000;

const ledgers = new WeakMap<ObjectStore, Map<string, Known>>();

/** Returns what is known of the datasets of a store by their directories of versions, the least used first. */
function ledgerOf(store: ObjectStore): Map<string, Known> {
  const ledger = ledgers.get(store) ?? new Map<string, Known>();
  ledgers.set(store, ledger);
  return ledger;
}

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
  const known = ledgerOf(store).get(directory);
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
  /** Whether this process looks at the dataset for the first time; then only the newest version is in the list. */
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
  const ledger = ledgerOf(dataset.store);
  const directory = versionsDirectory(dataset);
  const known = ledger.get(directory);
  // A table may be dropped and made again, and a branch, too.
  const first = known === undefined || latest < known.upTo;
  const versions: bigint[] = [];
  for (let version = first ? latest : known.upTo + 1n; version <= latest; version++)
    if (first || !known.own.has(version)) versions.push(version);
  ledger.delete(directory);
  ledger.set(directory, {
    upTo: latest,
    own: new Set([...(known?.own ?? [])].filter((version) => version > latest)),
  });
  for (const oldest of ledger.keys()) {
    if (ledger.size <= MAX_DATASETS) break;
    ledger.delete(oldest);
  }
  return { versions, first, forget: () => void ledger.delete(directory) };
}
