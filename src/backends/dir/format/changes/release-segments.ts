import { create } from "@bufbuild/protobuf";
import type { IndexMetadata, Manifest } from "../../../../gen/lance/format/table_pb.ts";
import { Transaction_CreateIndexSchema } from "../../../../gen/lance/format/transaction_pb.ts";
import type { DatasetRef } from "../dataset.ts";
import { coverOf, readSegments } from "../files/index-section.ts";
import { readVersion } from "../versions/version-files.ts";
import { commitChange } from "./commit.ts";

/*
 * The engine appends a segment to an index of vectors each time that it brings the index up to date, and merges them
 * only when a partition has outgrown its size. Each search reads all segments, and fragments of different segments are
 * not joined.
 */

/** Number of segments of an index from which on small ones are released. */
const MANY_SEGMENTS = 8;

/** Maximum size of the data files of the fragments that are released at a time, in bytes. */
const RELEASED_BYTES = 64 * 1024 * 1024;

const VECTOR_INDEX = /[./]VectorIndexDetails$/;

/**
 * Takes the small segments out of the indices of vectors that have many, so that the engine adds their rows again, in a
 * single segment. The largest segment of an index stays. Until then, searches read the rows without an index.
 *
 * @returns the number of segments that were released
 * @throws LanceError as {@link commitChange}
 */
export async function releaseSegments(dataset: DatasetRef, signal: AbortSignal): Promise<number> {
  const file = await readVersion(dataset);
  if (smallSegments(file.manifest, await readSegments(file)).length === 0) return 0;
  let released: readonly IndexMetadata[] = [];
  await commitChange(
    dataset,
    (manifest) => {
      const value = create(Transaction_CreateIndexSchema);
      return {
        operation: { case: "createIndex", value },
        changeIndices(segments) {
          released = smallSegments(manifest, segments);
          value.removedIndices = [...released];
          return segments.filter((segment) => !released.includes(segment));
        },
      };
    },
    { signal },
  );
  return released.length;
}

/** Returns the segments to release: of each index with many, the smallest ones. */
function smallSegments(manifest: Manifest, segments: readonly IndexMetadata[]): IndexMetadata[] {
  const vectors = segments.filter(({ indexDetails }) => VECTOR_INDEX.test(indexDetails?.typeUrl ?? ""));
  return [...Map.groupBy(vectors, ({ name }) => name).values()]
    .filter((own) => own.length >= MANY_SEGMENTS)
    .flatMap((own) => smallest(manifest, own));
}

function smallest(manifest: Manifest, segments: readonly IndexMetadata[]): IndexMetadata[] {
  // A segment that does not say what it covers may cover everything.
  if (segments.some(({ fragmentBitmap }) => fragmentBitmap.byteLength === 0)) return [];
  const sized = segments.map((segment) => ({ segment, bytes: coveredBytes(manifest, segment) }));
  sized.sort((a, b) => a.bytes - b.bytes);
  let sum = 0;
  const chosen = sized.slice(0, -1).filter(({ bytes }) => {
    sum += bytes;
    return sum <= RELEASED_BYTES;
  });
  return chosen.length < 2 ? [] : chosen.map(({ segment }) => segment);
}

/** Returns the size of the data files of the fragments that a segment covers, as far as it is known. */
function coveredBytes({ fragments }: Manifest, segment: IndexMetadata): number {
  const covers = coverOf(segment);
  return fragments
    .filter(({ id }) => covers(Number(id)))
    .flatMap(({ files }) => files)
    .reduce((sum, { fileSizeBytes }) => sum + Number(fileSizeBytes), 0);
}
