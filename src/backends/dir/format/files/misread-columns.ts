import type { Field } from "../../../../gen/lance/format/file_pb.ts";
import type { Manifest } from "../../../../gen/lance/format/table_pb.ts";

/** Versions of data files without the encoding that the engine misreads. */
const SOUND_FORMATS: readonly (string | undefined)[] = ["0.1", "0.2", "2.0"];

/** Types of lists, and of maps, which are lists of keys and values. */
const LIST = /^(?:large_)?list\b|^map\b/;

/** Types whose values are at most a few bytes, and in that encoding only beside thousands of empty lists in a single row. */
const NARROW = /^(?:null|bool|u?int\d|halffloat|float|double|decimal:|date|time|duration|dict:)/;

/** A column of data files that the engine may misread. */
export interface Suspect {
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

/**
 * Returns the columns of data files that the engine may misread: those of values in a list that is in a struct that may be null. Whether it
 * does depends on the pages; see {@link findMisread}.
 */
export function suspectsOf({ fields, dataFormat }: Pick<Manifest, "fields" | "dataFormat">): Suspect[] {
  if (SOUND_FORMATS.includes(dataFormat?.version)) return [];
  const byId = new Map(fields.map((field) => [field.id, field]));
  const parents = new Set(fields.map(({ parentId }) => parentId));
  return fields.flatMap((leaf) => {
    if (parents.has(leaf.id)) return [];
    const around: Field[] = [];
    for (let above = byId.get(leaf.parentId); above !== undefined; above = byId.get(above.parentId))
      around.unshift(above);
    const lists = around.flatMap(({ logicalType }, at) => (LIST.test(logicalType) ? [at] : []));
    const [outermost = 0, innermost = 0] = [lists[0], lists.at(-1)];
    if (lists.length < (NARROW.test(leaf.logicalType) ? 2 : 1)) return [];
    const mayHide = around.slice(0, innermost).some((layer, at) => layer.nullable && !lists.includes(at));
    if (!mayHide) return [];
    const encoding = around[0]?.metadata[ENCODING_KEY];
    const isSafe = NARROW.test(leaf.logicalType) || Buffer.from(encoding ?? []).toString() === SOUND_ENCODING;
    return [{ id: leaf.id, path: around.slice(0, outermost + 1).map(({ name }) => name), isSafe }];
  });
}

/** Whether the engine may write files of a table that it then misreads. */
export function mayBecomeMisread(manifest: Pick<Manifest, "fields" | "dataFormat">): boolean {
  return suspectsOf(manifest).some(({ isSafe }) => !isSafe);
}
