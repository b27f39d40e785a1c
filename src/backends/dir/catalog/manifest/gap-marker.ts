import type { Manifest } from "../../../../gen/lance/format/table_pb.ts";
import { FLAG_TABLE_CONFIG } from "../../format/files/manifest.ts";

/*
 * The Rust implementation looks for a new version only at the number after its own, unless the version that it holds
 * has a setting that begins with `lance.auto_cleanup.`: then it looks for the newest. Versions that are written here
 * therefore have a setting with that prefix, which the engine's own cleanup ignores. A reader that holds any of them
 * finds newer versions even if the next number is gone. Other implementations remove the setting when they write. A
 * reader that holds a version without it finds the next one, because that is not pruned.
 */

const KEY = "lance.auto_cleanup.gaps_since";

/** Marks a manifest that becomes a version; the mark names the version from which on all have it. */
export function markGaps(manifest: Manifest, version: bigint): Manifest {
  if (Object.hasOwn(manifest.config, KEY)) return manifest;
  return {
    ...manifest,
    config: { ...manifest.config, [KEY]: String(version) },
    writerFeatureFlags: manifest.writerFeatureFlags | FLAG_TABLE_CONFIG,
  };
}

/** Whether a version can be removed unnoticed: the one before it has the mark, too. */
export function mayLeaveGap({ config, version }: Manifest): boolean {
  const since = config[KEY] ?? "";
  return /^\d+$/.test(since) && BigInt(since) < version;
}
