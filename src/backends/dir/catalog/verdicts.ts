import type { Manifest } from "../../../gen/lance/format/table_pb.ts";
import { FLAG_TABLE_CONFIG } from "../format/manifest.ts";

/**
 * What became of a change that has more parts than its rows: `committed` comes into the manifest by the very commit that
 * has its rows, `refused` by whoever takes the change back. The first of both counts, whoever made it (docs/adr/0029).
 */
export type Verdict = "committed" | "refused";

/** The verdicts that a commit records, and the ids of those that nobody asks for any more. */
export interface VerdictChange {
  readonly recorded: ReadonlyMap<string, Verdict>;
  readonly forgotten: ReadonlySet<string>;
}

/** A commit of rows alone. */
export const NO_VERDICTS: VerdictChange = { recorded: new Map(), forgotten: new Set() };

/** Settings of the manifest, which other implementations take over into their commits. */
const PREFIX = "lance_gateway.change.";

/** Returns the verdicts that a version has, by the ids of the changes. */
export function verdictsIn({ config }: Manifest): ReadonlyMap<string, Verdict> {
  const found = new Map<string, Verdict>();
  for (const [key, value] of Object.entries(config)) {
    if (!key.startsWith(PREFIX)) continue;
    found.set(key.slice(PREFIX.length), value === "committed" ? "committed" : "refused");
  }
  return found;
}

/** Puts a change of verdicts into a manifest that becomes a version; the given one stays as it is. */
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
