import { fromBinary } from "@bufbuild/protobuf";
import { AnySchema } from "@bufbuild/protobuf/wkt";
import {
  type ColumnMetadata_Page,
  ColumnMetadataSchema,
  type FullZipLayout,
  PageLayoutSchema,
} from "../../../../../gen/lance/format/data_file_pb.ts";
import type { Field } from "../../../../../gen/lance/format/file_pb.ts";
import type { DataFile, Manifest } from "../../../../../gen/lance/format/table_pb.ts";
import { createPace } from "../../../../../runtime/pace.ts";
import { forEachOf } from "../../../concurrency/for-each.ts";
import { type DatasetRef, dataDirectory } from "../../../format/dataset.ts";
import { keyOfBase } from "../../../format/files/base-paths.ts";
import { damagedFile } from "../../../format/files/damaged-file.ts";
import type { ObjectStore } from "../../../format/storage.ts";
import { misreadsEntry, type PageBudget } from "./full-zip-levels.ts";

/** Number of files that are read at a time. */
const FILES = 8;

/** Maximum number of files whose columns are remembered; they take about 200 bytes each. */
const MAX_KNOWN = 50_000;

/** Maximum number of bytes of pages that are read for a version, beside what is remembered. It takes about a second. */
const MAX_PAGE_BYTES = 256 * 1024 * 1024;

/** The columns of data files that the engine misreads, by store and by the files and columns asked about. Data files never change. */
const known = new WeakMap<ObjectStore, Map<string, readonly number[]>>();

/**
 * Finds the columns of a version that the engine misreads, by what its data files say of their pages. It reads the end of each file
 * with such a column once, and the pages that may be misread.
 *
 * Long values are in pages where each value follows a number that says which of the layers around it is missing. The reader of lance
 * 12.0.0 (version 0.39.0 of the engine's package) takes too many of these numbers for values: it counts structs outside of the innermost
 * list, too. If such a struct is null somewhere in the page and a list elsewhere has no values, later values move to neighbours; see
 * {@link misreadsEntry}.
 *
 * @returns the paths of {@link suspectsOf}; files in another storage than the table's count as sound
 * @throws LanceError DataLoss for a file that is missing or damaged
 */
export async function findMisread(
  dataset: DatasetRef,
  manifest: Manifest,
): Promise<readonly (readonly string[])[]> {
  const suspects = new Map(suspectsOf(manifest).map(({ id, path }) => [id, path]));
  if (suspects.size === 0) return [];
  const found = new Set<readonly string[]>();
  const budget = { bytes: MAX_PAGE_BYTES };
  const pace = createPace();
  const files = manifest.fragments.flatMap((fragment) => fragment.files);
  await forEachOf(files, FILES, async (file) => {
    // Files that the memory knows are looked up without a wait, in which other calls would run.
    await pace.pauseIfDue();
    if (file.fileMajorVersion < 2) return;
    const columns = new Map<number, readonly string[]>();
    for (const [at, id] of file.fields.entries()) {
      const [path, column = -1] = [suspects.get(id), file.columnIndices[at]];
      if (path !== undefined && column >= 0 && !found.has(path)) columns.set(column, path);
    }
    if (columns.size === 0) return;
    for (const column of await misreadIn(dataset, manifest, file, [...columns.keys()], budget))
      found.add(columns.get(column) as readonly string[]);
  });
  return [...found];
}

/**
 * Finds a column for which the engine should not write the rows of a version again: it misreads the column, or might misread it in the
 * files that it would write.
 *
 * @returns its path as in {@link findMisread}; undefined without such a column
 * @throws LanceError the errors of {@link findMisread}
 */
export async function findUnsafe(
  dataset: DatasetRef,
  manifest: Manifest,
): Promise<readonly string[] | undefined> {
  const unsafe = suspectsOf(manifest).find(({ isSafe }) => !isSafe);
  return unsafe?.path ?? (await findMisread(dataset, manifest))[0];
}

async function misreadIn(
  dataset: DatasetRef,
  manifest: Manifest,
  file: DataFile,
  columns: number[],
  budget: PageBudget,
) {
  const { store } = dataset;
  const remembered = known.get(store) ?? new Map<string, readonly number[]>();
  known.set(store, remembered);
  const key = keyOf(dataset, manifest, file);
  if (key === undefined) return [];
  const question = `${key}\n${columns}`;
  const before = remembered.get(question);
  if (before !== undefined) return before;
  const misread = await readColumns(store, key, columns, budget);
  if (budget.bytes < 0) return misread;
  if (remembered.size >= MAX_KNOWN) remembered.clear();
  remembered.set(question, misread);
  return misread;
}

/** Returns the key of a data file, which a shallow clone or a branch has in another dataset; undefined if that is in another storage. */
function keyOf(dataset: DatasetRef, { basePaths }: Manifest, { path, baseId }: DataFile): string | undefined {
  const base = baseId === undefined ? undefined : basePaths.find(({ id }) => id === baseId);
  if (base === undefined) return `${dataDirectory(dataset)}/data/${path}`;
  const key = keyOfBase(dataset, base);
  return key && (base.isDatasetRoot ? `${key}/data/${path}` : `${key}/${path}`);
}

/** Size of the end of a data file that is read first: it has the metadata of a few hundred pages. */
const TAIL_BYTES = 64 * 1024;
const FOOTER_BYTES = 40;
const ENTRY_BYTES = 16;

async function readColumns(
  store: ObjectStore,
  key: string,
  columns: readonly number[],
  budget: PageBudget,
): Promise<number[]> {
  const tail = await store.getTail(key, TAIL_BYTES);
  if (tail === undefined) throw damagedFile(key, "is missing");
  const tailStart = tail.size - tail.bytes.byteLength;
  const read = async (start: number, length: number): Promise<Buffer> => {
    const bytes =
      start >= tailStart
        ? tail.bytes.subarray(start - tailStart, start - tailStart + length)
        : await store.getRange(key, start, start + length);
    if (bytes?.byteLength !== length) throw damagedFile(key, "is shorter than its footer says");
    return Buffer.from(bytes.buffer, bytes.byteOffset, length);
  };
  try {
    const footer = await read(tail.size - FOOTER_BYTES, FOOTER_BYTES);
    const entriesAt = Number(footer.readBigUInt64LE(8));
    const misread: number[] = [];
    for (const column of columns) {
      const entry = await read(entriesAt + column * ENTRY_BYTES, ENTRY_BYTES);
      const [at, size] = [entry.readBigUInt64LE(0), entry.readBigUInt64LE(8)].map(Number) as [number, number];
      const { pages } = fromBinary(ColumnMetadataSchema, await read(at, size));
      for (const page of pages) {
        const layout = fullZipOf(page);
        if (layout === undefined || !(await misreadsEntry(page, layout, read, budget))) continue;
        misread.push(column);
        break;
      }
    }
    return misread;
  } catch (error) {
    if (error instanceof RangeError) throw damagedFile(key, "has a broken footer", error);
    throw error;
  }
}

/** Returns the layout of a page with long values; undefined for a page of another kind. */
function fullZipOf({ encoding }: ColumnMetadata_Page): FullZipLayout | undefined {
  if (encoding?.location.case !== "direct") return undefined;
  const { typeUrl, value } = fromBinary(AnySchema, encoding.location.value.encoding);
  if (!typeUrl.endsWith(".PageLayout")) return undefined;
  const { layout } = fromBinary(PageLayoutSchema, value);
  return layout.case === "fullZipLayout" ? layout.value : undefined;
}

/** Versions of data files without the encoding that the engine misreads. */
const SOUND_FORMATS: readonly (string | undefined)[] = ["0.1", "0.2", "2.0"];

/** Types of lists, and of maps, which are lists of keys and values. */
const LIST = /^(?:large_)?list\b|^map\b/;

/** Types whose values are at most a few bytes, and in that encoding only beside thousands of empty lists in a single row. */
const NARROW = /^(?:null|bool|u?int\d|halffloat|float|double|decimal:|date|time|duration|dict:)/;

/** A column of data files that the engine may misread. */
interface Suspect {
  /** The id of the field whose values are in the column. */
  readonly id: number;
  /** The names from the column of the table to the outermost list around the values. */
  readonly path: readonly string[];
  /** Whether files with these values are written so that the engine reads them right. */
  readonly isSafe: boolean;
}

/** Metadata of a column of the table that chooses the encoding of all values in it. */
export const ENCODING_KEY = "lance-encoding:structural-encoding";
/** The encoding that the engine reads right. */
export const SOUND_ENCODING = "miniblock";
/** The encoding of long values, here for values of any length. */
const LONG_ENCODING = "fullzip";

/** Metadata of a struct whose values are in one column, which then always has the encoding of long values if one of them is a text. */
const PACKED_KEY = "lance-encoding:packed";

/**
 * Returns the columns of data files that the engine may misread: those of values in a list that is in a struct that may be null. Whether it
 * does depends on the pages; see {@link findMisread}.
 */
export function suspectsOf({ fields, dataFormat }: Pick<Manifest, "fields" | "dataFormat">): Suspect[] {
  if (SOUND_FORMATS.includes(dataFormat?.version)) return [];
  const byId = new Map(fields.map((field) => [field.id, field]));
  const parents = new Set(fields.map(({ parentId }) => parentId));
  return fields.flatMap((leaf) => {
    // A struct has no column of its own unless it is packed.
    if (parents.has(leaf.id) && leaf.logicalType !== "struct") return [];
    const around: Field[] = [];
    for (let above = byId.get(leaf.parentId); above !== undefined; above = byId.get(above.parentId))
      around.unshift(above);
    const lists = around.flatMap(({ logicalType }, at) => (LIST.test(logicalType) ? [at] : []));
    const [outermost = 0, innermost = 0] = [lists[0], lists.at(-1)];
    const encoding = encodingOf(around[0]);
    const isNarrow = NARROW.test(leaf.logicalType) && encoding !== LONG_ENCODING;
    if (lists.length < (isNarrow ? 2 : 1)) return [];
    const mayHide = around.slice(0, innermost).some((layer, at) => layer.nullable && !lists.includes(at));
    if (!mayHide) return [];
    const isSafe = parents.has(leaf.id)
      ? leaf.metadata[PACKED_KEY] === undefined
      : isNarrow || encoding === SOUND_ENCODING;
    return [{ id: leaf.id, path: around.slice(0, outermost + 1).map(({ name }) => name), isSafe }];
  });
}

function encodingOf(column: Field | undefined): string {
  return Buffer.from(column?.metadata[ENCODING_KEY] ?? [])
    .toString()
    .toLowerCase();
}
