import type { Manifest } from "../../../../gen/lance/format/table_pb.ts";

/** Versions of data files without the encoding that the engine misreads. */
const SOUND_FORMATS: readonly (string | undefined)[] = ["0.1", "0.2", "2.0"];

/** Types of lists, and of maps, which are lists of keys and values. */
const LIST = /^(?:large_)?list\b|^map\b/;

/** Types whose values are at most a few bytes, and never in that encoding. */
const NARROW = /^(?:null|bool|u?int\d|halffloat|float|double|decimal:|date|time|duration|dict:)/;

/**
 * Whether the engine may misread a column of a table: one with lists of texts, bytes or vectors in a struct that may be null. Where the struct
 * and its list have nulls, and some values are long, the values of a row move into its neighbours, or the read fails (lance 12.0.0, which
 * is in version 0.39.0 of its package). The files are right, and newer versions of lance read them.
 */
export function mayBeMisread({ fields, dataFormat }: Manifest): boolean {
  if (SOUND_FORMATS.includes(dataFormat?.version)) return false;
  const byId = new Map(fields.map((field) => [field.id, field]));
  const parents = new Set(fields.map(({ parentId }) => parentId));
  return fields.some((leaf) => {
    if (parents.has(leaf.id) || NARROW.test(leaf.logicalType)) return false;
    let inList = false;
    for (let above = byId.get(leaf.parentId); above !== undefined; above = byId.get(above.parentId)) {
      if (LIST.test(above.logicalType)) inList = true;
      else if (inList && above.logicalType === "struct" && above.nullable) return true;
    }
    return false;
  });
}
