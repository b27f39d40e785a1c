import type { Manifest } from "../../../../gen/lance/format/table_pb.ts";
import { FLAG_TABLE_CONFIG } from "../../format/files/manifest.ts";
import type { Row } from "./row.ts";

/**
 * Outcome of a change that consists of more than its rows: the commit of its rows also records `committed`, and a
 * process that takes the change back records `refused`. The first verdict counts, from any process (docs/adr/0011).
 */
export type Verdict = "committed" | "refused";

/** Verdicts that a commit records, and the ids of forgotten ones, which it removes. */
export interface VerdictChange {
  readonly recorded: ReadonlyMap<string, Verdict>;
  readonly forgotten: ReadonlySet<string>;
}

/** A commit of rows only. */
export const NO_VERDICTS: VerdictChange = { recorded: new Map(), forgotten: new Set() };

/** Prefix of settings of the manifest, which other implementations copy into their commits. */
const PREFIX = "lance_gateway.change.";

/** Returns the verdicts in a version, by the ids of the changes. */
export function verdictsIn({ config }: Manifest): ReadonlyMap<string, Verdict> {
  const found = new Map<string, Verdict>();
  for (const [key, value] of Object.entries(config)) {
    if (!key.startsWith(PREFIX)) continue;
    found.set(key.slice(PREFIX.length), value === "committed" ? "committed" : "refused");
  }
  return found;
}

/** Returns a manifest with a change of verdicts; the given one is not changed. */
export function withVerdicts(manifest: Manifest, { recorded, forgotten }: VerdictChange): Manifest {
  if (recorded.size === 0 && forgotten.size === 0) return manifest;
  const goes = (key: string) => key.startsWith(PREFIX) && forgotten.has(key.slice(PREFIX.length));
  const kept = Object.entries(manifest.config).filter(([key]) => !goes(key));
  const added = [...recorded].map(([id, verdict]) => [`${PREFIX}${id}`, verdict] as const);
  return {
    ...manifest,
    config: Object.fromEntries([...kept, ...added]),
    writerFeatureFlags: manifest.writerFeatureFlags | FLAG_TABLE_CONFIG,
  };
}

/** Facts of a version besides its rows. */
export interface VersionFacts {
  /** Outcomes of changes, by their ids. */
  readonly verdicts: ReadonlyMap<string, Verdict>;
  /** Name of the transaction that made the version, which no other version has; empty if its writer gave it none. */
  readonly transaction: string;
}

/** The facts of a state without a version. */
export const NO_FACTS: VersionFacts = { verdicts: new Map(), transaction: "" };

/** Returns the facts of a version. */
export function factsOf(manifest: Manifest): VersionFacts {
  return { verdicts: verdictsIn(manifest), transaction: manifest.transactionFile };
}

/** Queries of the catalog's rows. */
export interface CatalogView {
  get(objectId: string): Row | undefined;
  /**
   * Yields the ids of everything below a namespace, at any depth; of everything for the root. Changes end the
   * iteration.
   */
  descendants(objectId: string): Iterable<string>;
  /** Whether there are direct children of any kind. */
  hasChildren(objectId: string): boolean;
  /** Returns the table whose directory this is. */
  ownerOf(location: string): string | undefined;
  /** Yields the locations of tables inside a directory, at any depth. Changes end the iteration. */
  locationsInside(directory: string): Iterable<string>;
  /** Returns the outcome of a change, by its id; undefined while it is open, and after it has been forgotten. */
  verdictOf(changeId: string): Verdict | undefined;
}

/** Changes to the rows, by object id; undefined removes a row. */
export type Changes = ReadonlyMap<string, Row | undefined>;
