import { createHash } from "node:crypto";

/**
 * What a change of several files is about to do, so that it can be completed or undone after a crash.
 *
 * Everything in it is decided: numbers of versions, not ranges that are open; the very locations that lose their rows.
 * It is JSON.
 */
export interface Intent {
  /** Manifests that become versions. */
  readonly versions: readonly IntendedVersion[];
  /** Versions whose manifests are deleted after everything else. */
  readonly deletions: readonly {
    readonly dataset: IntendedDataset;
    readonly ranges: readonly { readonly start: string; readonly end: string }[];
  }[];
  /** Locations whose marker files have to follow the catalog. */
  readonly locations: readonly string[];
  /** Locations that get a row as declared tables. */
  readonly declared: readonly string[];
  /** Locations that lose their row. */
  readonly departures: readonly Departure[];
}

/** A location that loses its row. */
export interface Departure {
  readonly location: string;
  /** Whether its directory goes too. */
  readonly remove: boolean;
}

/** A dataset, by its place in the storage. */
export interface IntendedDataset {
  readonly root: string;
  readonly branch: string | null;
}

/** A manifest that becomes a version. */
export interface IntendedVersion {
  readonly dataset: IntendedDataset;
  readonly version: string;
  readonly key: string;
  /** Null for one that was not staged by a client. */
  readonly stagedKey: string | null;
  /** {@link digestOf} its bytes, which tells it from a version that somebody else commits under the number. */
  readonly digest: string;
  /** Whether it was a version before: then it is not taken back. */
  readonly exists: boolean;
}

/** What a manifest is recognized by. */
export function digestOf(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}
