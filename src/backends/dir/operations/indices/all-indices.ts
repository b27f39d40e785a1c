import { isLanceError } from "../../../../namespace/errors.ts";
import type { DataContext } from "../../data/data-context.ts";
import type { NativeIndex, NativeIndexStats } from "../../engine/native/index.ts";
import { type ManifestIndex, readIndices } from "../../format/files/index-section.ts";
import { readVersion } from "../../format/versions/version-files.ts";
import type { Guarded } from "../tables/call-data.ts";
import { datasetOf } from "../tables/open-data.ts";

type Storage = Pick<DataContext, "store">;
type Data = Pick<Guarded, "table" | "found">;

/**
 * Lists all indices of the version of a handle, except those that the table keeps for its own use.
 *
 * The engine leaves out the types that it cannot build, although its queries use them, and lists nothing at all if an
 * index of another writer does not say what it covers. The manifest has the rest.
 */
export async function allIndices(
  storage: Storage,
  data: Data,
  branch: string | undefined,
): Promise<NativeIndex[]> {
  const inManifest = await indicesInManifest(storage, data, branch);
  const listed = await data.table.listIndices().catch((error: unknown) => {
    if (inManifest.length === 0) throw error;
    return [];
  });
  const known = new Set(listed.map(({ name }) => name));
  const others = inManifest.filter(({ name }) => !known.has(name)).map(toNativeIndex);
  return [...listed, ...others].filter(({ name }) => !isSystemIndex(name));
}

/** Returns the figures of an index; null if there is none of the name. */
export async function statsOfIndex(
  storage: Storage,
  data: Data,
  branch: string | undefined,
  name: string,
): Promise<NativeIndexStats | null> {
  if (isSystemIndex(name)) return null;
  const found = (await indicesInManifest(storage, data, branch)).find((index) => index.name === name);
  if (found === undefined) return data.table.indexStats(name);
  const stats = await data.table.indexStats(name).catch(() => null);
  if (stats !== null && stats.indexType !== UNKNOWN) return stats;
  const { indexedRows = 0n, rows, segments } = found;
  return {
    numIndices: segments,
    numIndexedRows: Number(indexedRows),
    numUnindexedRows: Number(rows - indexedRows),
    ...stats,
    indexType: typeName(found),
  };
}

/** Whether an index is one that the table keeps for its own use. */
export function isSystemIndex(name: string): boolean {
  return name.startsWith("__lance");
}

async function indicesInManifest(
  storage: Storage,
  { table, found }: Data,
  branch: string | undefined,
): Promise<ManifestIndex[]> {
  const version = BigInt(await table.version());
  try {
    return await readIndices(await readVersion(datasetOf(storage, found, branch), version));
  } catch (error) {
    // The engine may know features of newer manifests that the gateway does not know.
    if (isLanceError(error, "Unsupported")) return [];
    throw error;
  }
}

/** The engine's word for a type that it does not know. */
const UNKNOWN = "UNKNOWN";

/** Types whose names in requests and answers are not those of the format in upper case. */
const NAMES: Readonly<Record<string, string>> = { LabelList: "LABEL_LIST", Inverted: "FTS" };

function typeName({ type = UNKNOWN }: ManifestIndex): string {
  return NAMES[type] ?? type.toUpperCase();
}

function toNativeIndex(index: ManifestIndex): NativeIndex {
  const { name, columns, typeUrl, createdAt, formatVersion, indexedRows, rows, sizeBytes } = index;
  return {
    name,
    columns,
    indexType: typeName(index),
    indexUuid: index.uuid,
    numSegments: index.segments,
    ...(typeUrl !== undefined && { typeUrl }),
    ...(createdAt !== undefined && { createdAt }),
    ...(formatVersion !== undefined && { indexVersion: formatVersion }),
    ...(indexedRows !== undefined && {
      numIndexedRows: Number(indexedRows),
      numUnindexedRows: Number(rows - indexedRows),
    }),
    ...(sizeBytes !== undefined && { sizeBytes: Number(sizeBytes) }),
  };
}
