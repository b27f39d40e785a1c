import type { Manifest } from "../../../gen/lance/format/table_pb.ts";
import { FLAG_TABLE_CONFIG } from "../format/manifest.ts";

/*
 * The Rust implementation looks for a new version only where the number after its own would be, unless the version
 * that it holds has a setting that begins with `lance.auto_cleanup.`: then it looks for the newest. So versions that
 * are written here have such a setting, one that the engine's own cleanup does not know, and nobody who holds one of
 * them misses the others when the number after it is gone. Other implementations take the setting away when they
 * write; who holds a version without it still finds the one after, because that is not pruned.
 */

const KEY = "lance.auto_cleanup.gaps_since";

/** Marks a manifest that becomes a version; the mark says since which version all have it. */
export function markGaps(manifest: Manifest, version: bigint): Manifest {
  if (Object.hasOwn(manifest.config, KEY)) return manifest;
  return {
    ...manifest,
    config: { ...manifest.config, [KEY]: String(version) },
    writerFeatureFlags: manifest.writerFeatureFlags | FLAG_TABLE_CONFIG,
  };
}

/** Whether nobody misses a version when it is gone: the one before it has the mark, too. */
export function mayLeaveGap({ config, version }: Manifest): boolean {
  const since = config[KEY] ?? "";
  return /^\d+$/.test(since) && BigInt(since) < version;
}
