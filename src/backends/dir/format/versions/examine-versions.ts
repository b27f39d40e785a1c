import type { Manifest } from "../../../../gen/lance/format/table_pb.ts";
import type { DatasetRef } from "../dataset.ts";
import type { FoundVersion } from "./version-files.ts";
import { readParts, type VersionParts } from "./version-parts.ts";

/** Facts about versions, by the identity of their files. */
export type KnownVersions = Map<string, KnownVersion>;

/** Facts about a version. */
export interface KnownVersion extends VersionParts {
  readonly mayGo: boolean;
}

/** How versions are examined. */
export interface ExamineOptions {
  /** Whether a version may be deleted whose age and position allow it. Default: yes. */
  readonly mayGo?: ((manifest: Manifest) => boolean) | undefined;
  /** Results of earlier runs, with which each version is read once. Default: versions are read when they are needed. */
  readonly known?: KnownVersions | undefined;
}

/** Number of versions that are read concurrently. */
const READS = 16;

/** Examines all existing versions, and forgets the others. */
export async function examineAll(
  dataset: DatasetRef,
  versions: readonly FoundVersion[],
  options: ExamineOptions,
  visit: (version: KnownVersion) => void,
): Promise<void> {
  const { known } = options;
  const current: KnownVersions | undefined = known && new Map();
  for (let at = 0; at < versions.length; at += READS) {
    const some = versions.slice(at, at + READS);
    const examined = await Promise.all(some.map((version) => examine(dataset, version, options, current)));
    for (const version of examined) if (version !== undefined) visit(version);
  }
  if (known === undefined || current === undefined) return;
  known.clear();
  for (const [identity, entry] of current) known.set(identity, entry);
}

/** Examines a version; returns undefined if it has been deleted. */
export async function examine(
  dataset: DatasetRef,
  version: FoundVersion,
  { known, mayGo }: ExamineOptions,
  into: KnownVersions | undefined = known,
): Promise<KnownVersion | undefined> {
  if (known === undefined) return readKnown(dataset, version, mayGo);
  const identity = await identityOf(dataset, version);
  if (identity === undefined) return undefined;
  const entry = known.get(identity) ?? (await readKnown(dataset, version, mayGo));
  if (entry !== undefined) into?.set(identity, entry);
  return entry;
}

async function readKnown(
  dataset: DatasetRef,
  version: FoundVersion,
  mayGo: ExamineOptions["mayGo"],
): Promise<KnownVersion | undefined> {
  const parts = await readParts(dataset, version);
  if (parts === undefined) return undefined;
  const { manifest, files, directories } = parts;
  return { mayGo: mayGo?.(manifest) ?? true, files, directories };
}

/** Identifies the file of a version among others that have had its name. */
export async function identityOf(
  { store }: DatasetRef,
  { key, info }: Pick<FoundVersion, "key" | "info">,
): Promise<string | undefined> {
  if (store.files !== undefined) {
    const stamp = store.files.fileStamp(key);
    return stamp && `${key} ${stamp}`;
  }
  const found = info?.eTag === undefined ? await store.head(key) : info;
  return found && `${key} ${found.eTag} ${found.modifiedMillis}`;
}
