import { createHash } from "node:crypto";

/**
 * Plan of a change of several files, by which it can be completed or undone after a crash.
 *
 * It contains only decisions: numbers of versions instead of open ranges, and the exact locations that lose their
 * rows. It is JSON.
 */
export interface Intent {
  /** Manifests that become versions. */
  readonly versions: readonly IntendedVersion[];
  /** Versions whose manifests are deleted after everything else. */
  readonly deletions: readonly IntendedDeletion[];
  /** Locations whose marker files must follow the catalog. */
  readonly locations: readonly string[];
  /** Locations that get a row as declared tables. */
  readonly declared: readonly string[];
  /** Locations that lose their row. */
  readonly departures: readonly Departure[];
}

/** A location that loses its row. */
export interface Departure {
  readonly location: string;
  /** Whether its directory is removed, too. */
  readonly remove: boolean;
}

/** A dataset, by its location in the storage. */
export interface IntendedDataset {
  readonly root: string;
  readonly branch: string | null;
}

/** Versions whose manifests are deleted. */
export interface IntendedDeletion {
  readonly dataset: IntendedDataset;
  readonly ranges: readonly { readonly start: string; readonly end: string }[];
  /**
   * {@link digestOf} the manifests of those that are newer than all that stay, by their numbers: until the deletion is
   * completed, new versions may have got the numbers. Notes of older releases lack it, and then none of these is deleted.
   */
  readonly last?: Readonly<Record<string, string>>;
}

/** A manifest that becomes a version. */
export interface IntendedVersion {
  readonly dataset: IntendedDataset;
  readonly version: string;
  readonly key: string;
  /** Null for a manifest that no client staged. */
  readonly stagedKey: string | null;
  /** {@link digestOf} its bytes, which distinguishes it from another writer's version with that number. */
  readonly digest: string;
  /** Whether it was a version before; then it is not taken back. */
  readonly exists: boolean;
}

/** Returns the digest that identifies a manifest. */
export function digestOf(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}
