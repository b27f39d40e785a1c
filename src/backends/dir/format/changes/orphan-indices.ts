import { create } from "@bufbuild/protobuf";
import type { IndexMetadata, Manifest } from "../../../../gen/lance/format/table_pb.ts";
import { Transaction_CreateIndexSchema } from "../../../../gen/lance/format/transaction_pb.ts";
import { isLanceError } from "../../../../namespace/errors.ts";
import type { DatasetRef } from "../dataset.ts";
import { readSegments } from "../files/index-section.ts";
import { readVersion } from "../versions/version-files.ts";
import { commitChange } from "./commit.ts";

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
