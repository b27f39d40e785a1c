import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { formatFieldPath } from "../../../../arrow/field-path.ts";
import type { Field } from "../../../../gen/lance/format/file_pb.ts";
import {
  type IndexMetadata,
  IndexSectionSchema,
  type Manifest,
} from "../../../../gen/lance/format/table_pb.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import { damagedFile } from "./damaged-file.ts";
import { countRows } from "./manifest.ts";
import { type ManifestFile, readSection } from "./manifest-file.ts";
import { type Contains, readRoaring } from "./roaring.ts";

/** An index as a manifest describes it: its segments together. */
export interface ManifestIndex {
  readonly name: string;
  /** Field paths. */
  readonly columns: readonly string[];
  /** The type in the words of the format, for example `ZoneMap`; undefined for indices of old writers. */
  readonly type: string | undefined;
  readonly typeUrl: string | undefined;
  /** The id of the first segment. */
  readonly uuid: string;
  readonly segments: number;
  /** Number of rows in fragments that the segments cover; undefined if a segment does not say what it covers. */
  readonly indexedRows: bigint | undefined;
  /** Number of rows of the table. */
  readonly rows: bigint;
  /** Size of the files; undefined if a segment does not list them. */
  readonly sizeBytes: bigint | undefined;
  /** When the oldest segment was made. */
  readonly createdAt: Date | undefined;
  readonly formatVersion: number | undefined;
}

/** Reads the indices of a version, ordered by name. */
export async function readIndices(file: ManifestFile): Promise<ManifestIndex[]> {
  return indicesOf(file.manifest, await readSegments(file));
}

/** Describes the indices that consist of some segments, ordered by name. */
export function indicesOf(manifest: Manifest, segments: readonly IndexMetadata[]): ManifestIndex[] {
  const byName = Map.groupBy(segments, ({ name }) => name);
  return [...byName]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, own]) => describeIndex(manifest, name, own));
}

/** Reads the ids of all segments of a version's indices, which are the names of their directories. */
export async function readSegmentIds(file: ManifestFile): Promise<string[]> {
  return (await readSegments(file)).map(segmentId);
}

/** Reads the sizes of all segments of a version's indices by their ids, in bytes; 0 where the version has no size. */
export async function readSegmentSizes(file: ManifestFile): Promise<Map<string, number>> {
  const segments = await readSegments(file);
  return new Map(segments.map((segment) => [segmentId(segment), Number(sizeOf([segment]) ?? 0n)]));
}

/** Reads the segments of all indices of a version. */
export async function readSegments(file: ManifestFile): Promise<readonly IndexMetadata[]> {
  const { indexSection } = file.manifest;
  if (indexSection === undefined) return [];
  const section = await readSection(file, indexSection);
  try {
    return fromBinary(IndexSectionSchema, section).indices;
  } catch (error) {
    throw damagedFile(file.key, "has a list of indices that cannot be decoded", error);
  }
}

/**
 * Returns the fragments that a segment of an index covers.
 *
 * @throws LanceError DataLoss
 */
export function coverOf({ name, fragmentBitmap }: IndexMetadata): Contains {
  try {
    return readRoaring(fragmentBitmap);
  } catch (cause) {
    throw new LanceError("DataLoss", `the fragments of the index ${JSON.stringify(name)} cannot be read`, {
      cause,
    });
  }
}

/** Encodes indices as a section of a manifest's file, with its length in front. */
export function encodeIndices(indices: readonly IndexMetadata[]): Uint8Array {
  const section = toBinary(IndexSectionSchema, create(IndexSectionSchema, { indices: [...indices] }));
  const length = Buffer.alloc(4);
  length.writeUInt32LE(section.byteLength);
  return Buffer.concat([length, section]);
}

function describeIndex(manifest: Manifest, name: string, segments: IndexMetadata[]): ManifestIndex {
  const first = segments[0] as IndexMetadata;
  const keyed = first.fields.slice(0, first.fields.length - first.coveringFields.length);
  const typeUrl = segments.find(({ indexDetails }) => indexDetails !== undefined)?.indexDetails?.typeUrl;
  const made = segments.flatMap(({ createdAt }) => (createdAt === undefined ? [] : [Number(createdAt)]));
  return {
    name,
    columns: keyed.map((id) => pathOf(manifest.fields, id)),
    type: typeUrl === undefined ? undefined : indexType(typeUrl),
    typeUrl,
    uuid: segmentId(first),
    segments: segments.length,
    indexedRows: rowsOf(manifest, segments),
    rows: countRows(manifest).rows,
    sizeBytes: sizeOf(segments),
    createdAt: made.length === 0 ? undefined : new Date(Math.min(...made)),
    formatVersion: first.indexVersion,
  };
}

/** Returns the name of a type of indices: `/lance.table.ZoneMapIndexDetails` is that of `ZoneMap`. */
export function indexType(typeUrl: string): string {
  return typeUrl.replace(/^.*[./]/, "").replace(/(?:Index)?Details$/, "");
}

function rowsOf(manifest: Manifest, segments: readonly IndexMetadata[]): bigint | undefined {
  if (segments.some(({ fragmentBitmap }) => fragmentBitmap.byteLength === 0)) return undefined;
  const covers = segments.map(coverOf);
  const fragments = manifest.fragments.filter(({ id }) => covers.some((contains) => contains(Number(id))));
  return countRows({ fragments }).rows;
}

function sizeOf(segments: readonly IndexMetadata[]): bigint | undefined {
  if (segments.some(({ files }) => files.length === 0)) return undefined;
  return segments.flatMap(({ files }) => files).reduce((sum, { sizeBytes }) => sum + sizeBytes, 0n);
}

function pathOf(fields: readonly Field[], id: number): string {
  const names: string[] = [];
  // Parents precede their children, so that no damaged manifest leads in a circle.
  for (let at = fields.findIndex((field) => field.id === id); at >= 0; ) {
    const { name, parentId } = fields[at] as Field;
    names.unshift(name);
    at = fields.slice(0, at).findIndex((field) => field.id === parentId);
  }
  return formatFieldPath(names);
}

/** Returns the id of a segment, which is the name of its directory. */
export function segmentId({ uuid }: IndexMetadata): string {
  return Buffer.from(uuid?.uuid ?? [])
    .toString("hex")
    .replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}
