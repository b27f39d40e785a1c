import { create } from "@bufbuild/protobuf";
import {
  type DataFragment,
  type IndexMetadata,
  IndexMetadataSchema,
  type Manifest,
} from "../../../../gen/lance/format/table_pb.ts";
import { Transaction_CreateIndexSchema } from "../../../../gen/lance/format/transaction_pb.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import type { DatasetRef } from "../dataset.ts";
import { readSegments } from "../files/index-section.ts";
import { createFieldFinder } from "../files/manifest.ts";
import { encodeRoaring } from "../files/roaring.ts";
import { readVersion } from "../versions/version-files.ts";
import { commitChange } from "./commit.ts";

/** A segment of an index that another program has written below the table and not committed. */
export interface WrittenSegment {
  readonly uuid: string;
  readonly fields: readonly number[];
  /** The version that was read. */
  readonly datasetVersion: bigint;
  readonly fragmentIds: readonly number[];
  readonly indexVersion: number;
  readonly typeUrl: string;
  readonly details: Uint8Array;
  readonly files: readonly { readonly path: string; readonly size: number }[];
}

/** Segments of one index. */
export interface WrittenIndex {
  readonly name: string;
  /** Path of the field. */
  readonly column: string;
  readonly segments: readonly WrittenSegment[];
}

/**
 * Commits the segments of an index in place of the indices of its name. Rows that others have added meanwhile are not in it.
 *
 * @throws LanceError ConcurrentModification if others have rewritten the indexed rows meanwhile, TableColumnNotFound, and the errors
 *   of {@link commitChange}
 */
export async function commitSegments(
  dataset: DatasetRef,
  { name, column, segments }: WrittenIndex,
  signal: AbortSignal,
): Promise<void> {
  const read = new Map<bigint, Manifest>();
  for (const { datasetVersion } of segments)
    if (!read.has(datasetVersion))
      read.set(datasetVersion, (await readVersion(dataset, datasetVersion)).manifest);
  await commitChange(
    dataset,
    (manifest) => {
      const { id } = createFieldFinder(manifest)(column);
      for (const segment of segments)
        checkUnchanged(segment, id, read.get(segment.datasetVersion) as Manifest, manifest);
      const newIndices = segments.map((segment) => metadataOf(name, segment));
      const value = create(Transaction_CreateIndexSchema, { newIndices });
      return {
        operation: { case: "createIndex", value },
        changeIndices(indices) {
          value.removedIndices = indices.filter((index) => index.name === name);
          return [...indices.filter((index) => index.name !== name), ...newIndices];
        },
      };
    },
    { signal },
  );
}

/** Whether the newest version has an index of that name with exactly these segments. */
export async function hasSegments(
  dataset: DatasetRef,
  { name, segments }: Pick<WrittenIndex, "name" | "segments">,
): Promise<boolean> {
  const found = (await readSegments(await readVersion(dataset))).filter((index) => index.name === name);
  const ids = new Set(found.map(({ uuid }) => Buffer.from(uuid?.uuid ?? []).toString("hex")));
  return found.length === segments.length && segments.every(({ uuid }) => ids.has(uuid.replaceAll("-", "")));
}

function metadataOf(name: string, segment: WrittenSegment): IndexMetadata {
  return create(IndexMetadataSchema, {
    uuid: { uuid: Buffer.from(segment.uuid.replaceAll("-", ""), "hex") },
    fields: [...segment.fields],
    name,
    datasetVersion: segment.datasetVersion,
    fragmentBitmap: encodeRoaring(segment.fragmentIds),
    indexDetails: { typeUrl: segment.typeUrl, value: segment.details },
    indexVersion: segment.indexVersion,
    createdAt: BigInt(Date.now()),
    files: segment.files.map(({ path, size }) => ({ path, sizeBytes: BigInt(size) })),
  });
}

/** A fragment that is gone only leaves its part of the segment unused, as long as there is another part. */
function checkUnchanged(segment: WrittenSegment, field: number, before: Manifest, now: Manifest): void {
  if (segment.fields.length !== 1 || segment.fields[0] !== field)
    throw new LanceError("ConcurrentModification", "the indexed column has been replaced meanwhile");
  const [old, current] = [before, now].map(
    ({ fragments }) => new Map(fragments.map((fragment) => [Number(fragment.id), fragment])),
  ) as [Map<number, DataFragment>, Map<number, DataFragment>];
  const kept = segment.fragmentIds.filter((id) => current.has(id));
  const isSame = kept.every(
    (id) => filesOf(old.get(id), field) === filesOf(current.get(id), field) && old.has(id),
  );
  if (isSame && (kept.length > 0 || segment.fragmentIds.length === 0)) return;
  throw new LanceError("ConcurrentModification", "others have rewritten the indexed rows meanwhile");
}

/** Returns the files of a fragment that may have the values of a field, as one text. */
function filesOf(fragment: DataFragment | undefined, field: number): string {
  const files = fragment?.files ?? [];
  const own = files.filter(({ fields }) => fields.includes(field));
  return (own.length > 0 ? own : files).map(({ path }) => path).join("\n");
}
