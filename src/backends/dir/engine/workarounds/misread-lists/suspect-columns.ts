import type { Field } from "../../../../../gen/lance/format/file_pb.ts";
import type { Manifest } from "../../../../../gen/lance/format/table_pb.ts";

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
