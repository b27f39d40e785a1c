import { create } from "@bufbuild/protobuf";
import type { IndexMetadata, Manifest } from "../../../../gen/lance/format/table_pb.ts";
import { Transaction_CreateIndexSchema } from "../../../../gen/lance/format/transaction_pb.ts";
import { isLanceError, LanceError } from "../../../../namespace/errors.ts";
import type { DatasetRef } from "../dataset.ts";
import { indexType, readSegments } from "../files/index-section.ts";
import { copyMessage } from "../files/manifest.ts";
import { readVersion } from "../versions/version-files.ts";
import { type CommittedVersion, commitChange } from "./commit.ts";

/**
 * Drops an index in a commit of its own. The engine lets two drops of an index that begin at one version both succeed.
 *
 * @throws LanceError TableIndexNotFound if the newest version has no such index, and the errors of {@link commitChange}
 */
export async function dropIndex(
  dataset: DatasetRef,
  name: string,
  signal: AbortSignal,
): Promise<CommittedVersion> {
  return commitChange(
    dataset,
    () => {
      const value = create(Transaction_CreateIndexSchema);
      return {
        operation: { case: "createIndex", value },
        changeIndices(indices) {
          value.removedIndices = indices.filter((index) => index.name === name);
          if (value.removedIndices.length === 0) throw indexNotFound(name);
          return indices.filter((index) => index.name !== name);
        },
      };
    },
    { signal },
  );
}

/** Returns the error for an index that a table does not have. */
export function indexNotFound(name: string): LanceError {
  return new LanceError("TableIndexNotFound", `index ${JSON.stringify(name)} does not exist`);
}

/** A new name for an index. */
export interface IndexRenaming {
  readonly from: string;
  readonly to: string;
  /** Whether it replaces the indices of the new name. */
  readonly replace: boolean;
  /** The type of the indices that it may replace, as {@link indexType} names it. Default: any. */
  readonly replaceable?: string | undefined;
}

/** Returns the error for an index that the engine ignores, in place of one that it reads. */
export function replacesReadable(name: string): LanceError {
  return new LanceError(
    "Unsupported",
    `the engine of this gateway reads the index ${JSON.stringify(name)} and would ignore the new one; drop the index first, or choose another name`,
  );
}

/**
 * Renames an index in a commit of its own.
 *
 * @throws LanceError TableIndexAlreadyExists if the new name is taken, ConcurrentModification if the index is gone, Unsupported for a
 *   replacement that is not `replaceable`, and the errors of {@link commitChange}
 */
export async function renameIndex(
  dataset: DatasetRef,
  { from, to, replace, replaceable }: IndexRenaming,
  signal: AbortSignal,
): Promise<void> {
  await commitChange(
    dataset,
    () => {
      const value = create(Transaction_CreateIndexSchema);
      return {
        operation: { case: "createIndex", value },
        changeIndices(indices) {
          if (!replace && indices.some(({ name }) => name === to)) {
            throw new LanceError("TableIndexAlreadyExists", `another writer made an index ${to} meanwhile`);
          }
          const isKept = ({ name, indexDetails }: IndexMetadata) =>
            name === to &&
            replaceable !== undefined &&
            (indexDetails === undefined || indexType(indexDetails.typeUrl) !== replaceable);
          if (indices.some(isKept)) throw replacesReadable(to);
          value.removedIndices = indices.filter(({ name }) => name === from || name === to);
          value.newIndices = indices
            .filter(({ name }) => name === from)
            .map((segment) => Object.assign(copyMessage(segment), { name: to }));
          if (value.newIndices.length === 0) {
            throw new LanceError("ConcurrentModification", "another writer dropped the index concurrently");
          }
          const kept = indices.filter((index) => !value.removedIndices.includes(index));
          return [...kept, ...value.newIndices];
        },
      };
    },
    { signal },
  );
}

/**
 * Corrects where a new branch of a branch looks for indices that its parent has inherited itself. The engine looks for
 * all of them in the parent's own directory, so that each call that uses one of them fails.
 *
 * @throws LanceError the errors of {@link commitChange}
 */
export async function locateInherited(
  parent: DatasetRef,
  version: bigint,
  created: DatasetRef,
): Promise<void> {
  const file = await readVersion(parent, version);
  const pathOf = new Map(file.manifest.basePaths.map(({ id, path }) => [id, path]));
  const inherited = new Map<string, string>();
  for (const { uuid, baseId } of await readSegments(file)) {
    const path = baseId === undefined ? undefined : pathOf.get(baseId);
    if (path !== undefined) inherited.set(String(uuid?.uuid), path);
  }
  if (inherited.size === 0) return;
  await commitChange(created, (manifest) => {
    const value = create(Transaction_CreateIndexSchema);
    const idOf = new Map(manifest.basePaths.map(({ id, path }) => [path, id]));
    return {
      operation: { case: "createIndex", value },
      changeIndices(found) {
        return found.map((segment) => {
          const baseId = idOf.get(inherited.get(String(segment.uuid?.uuid)) ?? "");
          if (baseId === undefined || baseId === segment.baseId) return segment;
          const moved = Object.assign(copyMessage(segment), { baseId });
          value.removedIndices.push(segment);
          value.newIndices.push(moved);
          return moved;
        });
      },
    };
  });
}

/**
 * Drops the indices on columns that are gone. The engine commits an index also if its column was dropped, or got another
 * type, while it was built or extended. All later queries with a filter, updates and extensions of indices fail then.
 *
 * @returns the names of these indices
 * @throws LanceError the errors of {@link commitChange}
 */
export async function dropOrphanIndices(dataset: DatasetRef): Promise<ReadonlySet<string>> {
  const names = new Set<string>();
  try {
    const file = await readVersion(dataset);
    if (orphansOf(file.manifest, await readSegments(file)).length === 0) return names;
    await commitChange(dataset, (manifest) => {
      const value = create(Transaction_CreateIndexSchema);
      return {
        operation: { case: "createIndex", value },
        changeIndices(found) {
          value.removedIndices = orphansOf(manifest, found);
          for (const { name } of value.removedIndices) names.add(name);
          return found.filter((segment) => !value.removedIndices.includes(segment));
        },
      };
    });
  } catch (error) {
    // The engine may know a feature that this project does not.
    if (!isLanceError(error, "Unsupported")) throw error;
  }
  return names;
}

function orphansOf({ fields }: Manifest, segments: readonly IndexMetadata[]): IndexMetadata[] {
  const known = new Set(fields.map(({ id }) => id));
  return segments.filter((segment) => segment.fields.some((id) => !known.has(id)));
}
